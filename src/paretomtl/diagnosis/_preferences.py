"""Preferences to try: directions between the loss ratios that models reached near the ends of the front."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from paretomtl.core import preferences
from paretomtl.core.reachable import spread_between

EDGE = 0.1
"""Near the end of the front for a task, the task has the weight 1 and all others have this."""
APART = 3.0
"""Preferences are at least this many degrees apart: closer ones ask for the same."""
_DIGITS = 3  # of printed directions


def end_weights(factors: Sequence[float]) -> Tensor:
    """For each task the weights of a model near its end of the front ``[m, m]``, for unscaled losses.

    Example:
        >>> end_weights([1.0, 0.01])
        tensor([[1.0000, 0.0010],
                [0.1000, 0.0100]], dtype=torch.float64)
    """
    scaled = torch.tensor(factors, dtype=torch.float64)
    return (EDGE + (1.0 - EDGE) * torch.eye(len(scaled), dtype=torch.float64)) * scaled


def even_factors(sizes: Sequence[float]) -> tuple[float, ...]:
    """Factors that give quantities of these sizes the same size; two digits, the largest is 1.

    Example:
        >>> even_factors([2.0, 300.0])
        (1.0, 0.0067)
    """
    least = min(size for size in sizes if size > 0)
    return tuple(float(f"{least / size:.2g}") if size > 0 else 1.0 for size in sizes)


def between(ends: Tensor, count: int) -> list[tuple[float, ...]]:
    r"""At most ``count`` directions of the losses, spread between those of the ends; none if ends have no direction.

    They are those of :func:`paretomtl.core.reachable.spread_between`, at places from :func:`paretomtl.preferences.even`
    with the axes as ends.

    Args:
        ends: losses of a model near the end of each task, ``[m, m]``, in the units of the directions.
        count: how many to return; fewer if they would be less than :data:`APART` degrees apart.

    Example:
        >>> between(torch.tensor([[1.0, 3.0], [3.0, 1.0]]), 3)
        [(0.949, 0.316), (0.707, 0.707), (0.316, 0.949)]
    """
    places = preferences.even(count, len(ends))
    if len(ends) == 2 and count > 1:
        places = preferences.lattice(count - 1, 2)  # evenly spaced angles, from the end of the second task
    rows = spread_between(ends, (places / places.sum(-1, keepdim=True)).flip(-1 if len(ends) == 2 else ()))
    if rows is None:
        return []
    kept: list[Tensor] = []
    for row in rows:
        if all(float(row @ other) < math.cos(math.radians(APART)) for other in kept):
            kept.append(row)
    return [tuple(round(value, _DIGITS) for value in row.tolist()) for row in kept]
