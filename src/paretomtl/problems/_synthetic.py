from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from paretomtl._support.argument_checks import check_count, check_tasks, quote
from paretomtl.problems._problem import Problem
from paretomtl.problems._true_front import PerDevice, Point, TrueFront


def synthetic(
    dimension: int = 20, tasks: int = 2, *, difficulties: Sequence[float] | None = None, half: float = 0.5
) -> Problem:
    r"""The paper's synthetic example (section 5; with difficulties, supplement, section 4), for any number of tasks.

    .. math:: f_i(x) = a_i \left(1 - \exp(-\|x - c_i\|^2)\right)

    with unit centres :math:`c_i` at the corners of a regular simplex around the origin; for two objectives these are
    the paper's :math:`\pm(1, \dots, 1)/\sqrt d`. Each objective grows with the distance from its centre, so the Pareto
    set is the convex hull of the centres whatever the difficulties are, and the front is concave.

    Args:
        dimension: d, at least ``tasks − 1``.
        tasks: the number of objectives m.
        difficulties: the factors :math:`a_i`; a larger one makes a task easier, since its gradients are larger.
        half: models start uniformly in ``[−half, half]^d``.

    Example:
        >>> problem = synthetic(tasks=3)
        >>> problem.truth.distance(problem.losses(torch.zeros(20).double())[None]) < 1e-9  # the centre of the simplex
        tensor([True])
    """
    centres = simplex_centres(dimension, tasks)
    factors = torch.tensor([1.0] * tasks if difficulties is None else list(difficulties), dtype=torch.float64)
    if factors.shape != (tasks,) or not bool((factors > 0).all()):
        raise ValueError(
            f"'difficulties' must be {tasks} positive numbers, one per task. Got {quote(difficulties)} instead."
        )

    constants = PerDevice(factors, centres)

    def losses(x: Tensor) -> Tensor:
        a, c = constants(x.device, x.dtype)
        return -a * torch.expm1(-(x[..., None, :] - c).square().sum(-1))

    return Problem(
        model=lambda: Point(dimension, half),
        losses=losses,
        tasks=[f"f{i + 1}" for i in range(tasks)],
        name="synthetic",
        truth=TrueFront(tasks, lambda weights: losses(weights @ centres)),
    )


def simplex_centres(dimension: int, tasks: int) -> Tensor:
    """Unit corners ``[m, d]`` of a regular simplex around the origin; for two tasks plus and minus the diagonal."""
    tasks = check_tasks("tasks", tasks)
    dimension = check_count("dimension", dimension)
    if dimension < tasks - 1:
        raise ValueError(f"'dimension' must be at least tasks - 1 = {tasks - 1}. Got {dimension} instead.")
    # The rows of Helmert's matrix without its constant column are the corners of a regular simplex in R^(m−1).
    helmert = torch.stack([_helmert_column(j, tasks) for j in range(1, tasks)], -1)
    flat = torch.nn.functional.normalize(helmert, dim=-1)
    # Cosine columns are orthonormal and start with the diagonal, so that two tasks give the paper's centres.
    grid = (torch.arange(dimension, dtype=torch.float64) + 0.5) * math.pi / dimension
    waves = torch.stack([torch.cos(j * grid) * math.sqrt((1 if j == 0 else 2) / dimension) for j in range(tasks - 1)])
    return flat @ waves


def _helmert_column(j: int, tasks: int) -> Tensor:
    column = torch.zeros(tasks, dtype=torch.float64)
    column[:j] = 1.0
    column[j] = -float(j)
    return column / math.sqrt(j * (j + 1))
