"""From a problem and a method to a front: the loop, and the pieces for a loop of one's own."""

from paretomtl.training._backward import backward
from paretomtl.training._fit import OptimizerFactory, fit, fit_seeds

__all__ = ["OptimizerFactory", "backward", "fit", "fit_seeds"]
