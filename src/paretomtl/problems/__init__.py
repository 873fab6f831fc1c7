"""What to train on: models, losses, and the true front where it is known."""

from collections.abc import Callable

from paretomtl.problems._problem import Problem, Truth
from paretomtl.problems._quadratic import quadratic
from paretomtl.problems._synthetic import synthetic

PROBLEMS: dict[str, Callable[..., Problem]] = {"synthetic": synthetic, "quadratic": quadratic}
"""The built-in problems by name."""

__all__ = ["PROBLEMS", "Problem", "Truth", "quadratic", "synthetic"]
