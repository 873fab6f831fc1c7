"""Pareto multi-task learning: train a set of models, one per trade-off, spread over the Pareto front."""

from typing import TYPE_CHECKING

from paretomtl._support.imports.lazy_imports import lazy_names
from paretomtl._support.version import __version__

if TYPE_CHECKING:
    from paretomtl import compare, core, diagnosis, front, methods, preferences, problems, report, runs, training
    from paretomtl.diagnosis import Diagnosis, diagnose
    from paretomtl.front import Choice, Front
    from paretomtl.methods import (
        MGDA,
        Auto,
        GradNorm,
        Linear,
        ParetoMTL,
        PNorm,
        RandomSearch,
        SingleTask,
        TorchJD,
        Uncertainty,
        Weigher,
    )
    from paretomtl.problems import Metric, Problem, Recipe
    from paretomtl.training import RayExecutor, TensorBoard, backward, fit, fit_seeds
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "paretomtl.diagnosis": ("Diagnosis", "diagnose"),
            "paretomtl.front": ("Choice", "Front"),
            "paretomtl.methods": (
                "MGDA",
                "GradNorm",
                "Auto",
                "Linear",
                "PNorm",
                "ParetoMTL",
                "RandomSearch",
                "SingleTask",
                "TorchJD",
                "Uncertainty",
                "Weigher",
            ),
            "paretomtl.problems": ("Metric", "Problem", "Recipe"),
            "paretomtl.training": ("RayExecutor", "TensorBoard", "backward", "fit", "fit_seeds"),
        },
        submodules=(
            "compare",
            "core",
            "diagnosis",
            "front",
            "methods",
            "preferences",
            "problems",
            "report",
            "runs",
            "training",
        ),
    )


__all__ = [
    "MGDA",
    "Auto",
    "Choice",
    "Diagnosis",
    "Front",
    "GradNorm",
    "Linear",
    "Metric",
    "PNorm",
    "ParetoMTL",
    "Problem",
    "RandomSearch",
    "RayExecutor",
    "Recipe",
    "SingleTask",
    "TensorBoard",
    "TorchJD",
    "Uncertainty",
    "Weigher",
    "__version__",
    "backward",
    "compare",
    "core",
    "diagnose",
    "diagnosis",
    "fit",
    "fit_seeds",
    "front",
    "methods",
    "preferences",
    "problems",
    "report",
    "runs",
    "training",
]
