"""Pareto multi-task learning: train a set of models, one per trade-off, spread over the Pareto front."""

from paretomtl import core, methods, preferences, problems
from paretomtl.front import Front
from paretomtl.methods import MGDA, GradNorm, Linear, ParetoMTL, RandomSearch, SingleTask, TorchJD, Uncertainty, Weigher
from paretomtl.problems import Problem
from paretomtl.training import backward, fit, fit_seeds

__all__ = [
    "MGDA",
    "Front",
    "GradNorm",
    "Linear",
    "ParetoMTL",
    "Problem",
    "RandomSearch",
    "SingleTask",
    "TorchJD",
    "Uncertainty",
    "Weigher",
    "backward",
    "core",
    "fit",
    "fit_seeds",
    "methods",
    "preferences",
    "problems",
]
