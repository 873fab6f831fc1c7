"""What to train on: models, losses, data, and the true front where it is known."""

from collections.abc import Callable

from paretomtl.problems._lenet import LeNet, cross_entropies
from paretomtl.problems._multi_digits import multi_digits
from paretomtl.problems._problem import Data, Metric, OptimizerFactory, Problem, Recipe, SchedulerFactory
from paretomtl.problems._quadratic import quadratic
from paretomtl.problems._synthetic import synthetic
from paretomtl.problems._truth import Truth

PROBLEMS: dict[str, Callable[..., Problem]] = {
    "synthetic": synthetic,
    "quadratic": quadratic,
    "multi-digits": multi_digits,
}
"""The built-in problems by name."""

__all__ = [
    "PROBLEMS",
    "Data",
    "LeNet",
    "Metric",
    "OptimizerFactory",
    "Problem",
    "Recipe",
    "SchedulerFactory",
    "Truth",
    "cross_entropies",
    "multi_digits",
    "quadratic",
    "synthetic",
]
