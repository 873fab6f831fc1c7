"""Preferences to try: directions between the loss ratios that models reached near the ends of the front."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from paretomtl.core import preferences

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

    For two tasks, the angles are equally spaced. For more, directions are :math:`\sum_i \lambda_i e_i / \|e_i\|` with
    the ends :math:`e_i` and weights :math:`\lambda` from :func:`paretomtl.preferences.even`.

    Args:
        ends: losses of a model near the end of each task, ``[m, m]``, in the units of the directions.
        count: how many to return; fewer if they would be less than :data:`APART` degrees apart.

    Example:
        >>> between(torch.tensor([[1.0, 3.0], [3.0, 1.0]]), 3)
        [(0.949, 0.316), (0.707, 0.707), (0.316, 0.949)]
    """
    if not bool((ends.isfinite() & (ends >= 0)).all()) or not bool(ends.any(-1).all()):
        return []
    unit = torch.nn.functional.normalize(ends.double(), dim=-1)
    if len(unit) == 2:
        angles = torch.atan2(unit[:, 1], unit[:, 0]).tolist()
        places = torch.linspace(angles[1], angles[0], count, dtype=torch.float64)
        rows = torch.stack([places.cos(), places.sin()], -1).clamp_min(0.0)
    else:
        rows = torch.nn.functional.normalize(preferences.even(count, len(unit)) @ unit, dim=-1)
    kept: list[Tensor] = []
    for row in rows:
        if all(float(row @ other) < math.cos(math.radians(APART)) for other in kept):
            kept.append(row)
    return [tuple(round(value, _DIGITS) for value in row.tolist()) for row in kept]
