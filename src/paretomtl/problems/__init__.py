"""What to train on: models, losses, and the true front where it is known."""

from paretomtl.problems._problem import Problem, Truth
from paretomtl.problems._quadratic import quadratic
from paretomtl.problems._synthetic import synthetic

__all__ = ["Problem", "Truth", "quadratic", "synthetic"]
