"""Problems to train on: models, losses, data, and the true front if it is known."""

from typing import TYPE_CHECKING

from paretomtl._support.imports.lazy_imports import lazy_names

if TYPE_CHECKING:
    from paretomtl.problems._census.files import Census, load_census, prepare_census
    from paretomtl.problems._census.parity import census_parity
    from paretomtl.problems._census.problem import census
    from paretomtl.problems._localization.files import load_localization, prepare_localization
    from paretomtl.problems._localization.frames import Frames
    from paretomtl.problems._localization.problem import localization
    from paretomtl.problems._losses import (
        accuracy,
        area_under_curve,
        binary_accuracy,
        binary_cross_entropies,
        cross_entropies,
        face_losses,
        parity_gap,
        parity_losses,
        pose_losses,
    )
    from paretomtl.problems._multi_digits import multi_digits
    from paretomtl.problems._multi_mnist.canvases import Canvases
    from paretomtl.problems._multi_mnist.files import prepare_canvases
    from paretomtl.problems._multi_mnist.problem import (
        multi_fashion,
        multi_fashion_3,
        multi_fashion_mnist,
        multi_mnist,
        multi_mnist_3,
    )
    from paretomtl.problems._named_problem import NamedProblem
    from paretomtl.problems._networks.lenet import LeNet
    from paretomtl.problems._networks.posenet import PoseNet
    from paretomtl.problems._networks.resnet import ResNet18
    from paretomtl.problems._networks.tabular import MLP, MixtureOfExperts
    from paretomtl.problems._problem import (
        Data,
        Metric,
        OptimizerFactory,
        Problem,
        Recipe,
        SchedulerFactory,
    )
    from paretomtl.problems._quadratic import quadratic
    from paretomtl.problems._synthetic import synthetic
    from paretomtl.problems._true_front import TrueFront
    from paretomtl.problems._utkface.files import load_utkface, prepare_utkface
    from paretomtl.problems._utkface.folder import Faces
    from paretomtl.problems._utkface.problem import utkface
    from paretomtl.problems.per_task import PerTask
    from paretomtl.problems.registry import PROBLEMS
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "paretomtl.problems._census.files": ("Census", "load_census", "prepare_census"),
            "paretomtl.problems._census.parity": ("census_parity",),
            "paretomtl.problems._census.problem": ("census",),
            "paretomtl.problems._localization.files": ("load_localization", "prepare_localization"),
            "paretomtl.problems._localization.frames": ("Frames",),
            "paretomtl.problems._localization.problem": ("localization",),
            "paretomtl.problems._losses": (
                "accuracy",
                "area_under_curve",
                "binary_accuracy",
                "binary_cross_entropies",
                "cross_entropies",
                "face_losses",
                "parity_gap",
                "parity_losses",
                "pose_losses",
            ),
            "paretomtl.problems._multi_digits": ("multi_digits",),
            "paretomtl.problems._multi_mnist.canvases": ("Canvases",),
            "paretomtl.problems._multi_mnist.files": ("prepare_canvases",),
            "paretomtl.problems._multi_mnist.problem": (
                "multi_fashion",
                "multi_fashion_3",
                "multi_fashion_mnist",
                "multi_mnist",
                "multi_mnist_3",
            ),
            "paretomtl.problems._named_problem": ("NamedProblem",),
            "paretomtl.problems._networks.lenet": ("LeNet",),
            "paretomtl.problems._networks.posenet": ("PoseNet",),
            "paretomtl.problems._networks.resnet": ("ResNet18",),
            "paretomtl.problems._networks.tabular": ("MLP", "MixtureOfExperts"),
            "paretomtl.problems._problem": (
                "Data",
                "Metric",
                "OptimizerFactory",
                "Problem",
                "Recipe",
                "SchedulerFactory",
            ),
            "paretomtl.problems._quadratic": ("quadratic",),
            "paretomtl.problems._synthetic": ("synthetic",),
            "paretomtl.problems._true_front": ("TrueFront",),
            "paretomtl.problems._utkface.files": ("load_utkface", "prepare_utkface"),
            "paretomtl.problems._utkface.folder": ("Faces",),
            "paretomtl.problems._utkface.problem": ("utkface",),
            "paretomtl.problems.per_task": ("PerTask",),
            "paretomtl.problems.registry": ("PROBLEMS",),
        },
    )


__all__ = [
    "MLP",
    "PROBLEMS",
    "Canvases",
    "Census",
    "Data",
    "Faces",
    "Frames",
    "LeNet",
    "Metric",
    "MixtureOfExperts",
    "NamedProblem",
    "OptimizerFactory",
    "PerTask",
    "PoseNet",
    "Problem",
    "Recipe",
    "ResNet18",
    "SchedulerFactory",
    "TrueFront",
    "accuracy",
    "area_under_curve",
    "binary_accuracy",
    "binary_cross_entropies",
    "census",
    "census_parity",
    "cross_entropies",
    "face_losses",
    "load_census",
    "load_localization",
    "load_utkface",
    "localization",
    "multi_digits",
    "multi_fashion",
    "multi_fashion_3",
    "multi_fashion_mnist",
    "multi_mnist",
    "multi_mnist_3",
    "parity_gap",
    "parity_losses",
    "pose_losses",
    "prepare_canvases",
    "prepare_census",
    "prepare_localization",
    "prepare_utkface",
    "quadratic",
    "synthetic",
    "utkface",
]
