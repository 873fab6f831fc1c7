from __future__ import annotations

import torch
from torch import Tensor

from paretomtl._support.argument_checks import quote
from paretomtl.problems._problem import Problem
from paretomtl.problems._synthetic import simplex_centres
from paretomtl.problems._true_front import PerDevice, Point, TrueFront


def quadratic(dimension: int = 2, tasks: int = 2, *, condition: float = 1.0) -> Problem:
    r"""Convex parabolas with a known convex front, which linear scalarization can cover.

    .. math:: f_i(x) = \tfrac12 (x - c_i)^\top Q_i (x - c_i)

    with the centres of :func:`synthetic` and diagonal :math:`Q_i` whose entries run from 1 to ``condition``, in a
    different order for each task. By convexity every Pareto optimal point minimises some weighted sum; it is
    :math:`x(w) = (\sum_i w_i Q_i)^{-1} \sum_i w_i Q_i c_i` with w on the simplex.

    Args:
        dimension: d, at least ``tasks − 1``.
        tasks: the number of objectives m.
        condition: the largest entry of :math:`Q_i`.

    Example:
        >>> quadratic().losses(torch.zeros(2))
        tensor([0.5000, 0.5000])
    """
    if condition < 1.0:
        raise ValueError(f"'condition' must be at least 1. Got {quote(condition)} instead.")
    centres = simplex_centres(dimension, tasks)
    line = torch.logspace(0.0, 1.0, dimension, base=condition, dtype=torch.float64)
    curvatures = torch.stack([line.roll(i) for i in range(tasks)])

    constants = PerDevice(curvatures, centres)

    def losses(x: Tensor) -> Tensor:
        q, c = constants(x.device, x.dtype)
        return 0.5 * (q * (x[..., None, :] - c).square()).sum(-1)

    def optimum(weights: Tensor) -> Tensor:
        return losses((weights @ (curvatures * centres)) / (weights @ curvatures))

    return Problem(
        model=lambda: Point(dimension),
        losses=losses,
        tasks=[f"f{i + 1}" for i in range(tasks)],
        name="quadratic",
        truth=TrueFront(tasks, optimum),
    )
