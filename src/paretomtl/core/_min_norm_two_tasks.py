"""One subproblem with two tasks and few allowed points, in plain numbers.

The same formulas as in :func:`~paretomtl.core.direction` and :func:`~paretomtl.core.min_norm`, which are for batches of
any size. On a CPU, between two backward passes, their two hundred operations on tiny tensors cost 2 % of a step of
LeNet; the arithmetic itself costs next to nothing.
"""

from __future__ import annotations

import math
from typing import NamedTuple

_FEW = 8  # allowed points; all their pairs are tried
PIVOT_TOLERANCE = 2.3e-16  # a pivot under m times this is rounding, not rank
ENTER_TOLERANCE = 4e-15  # a point enters the support when it violates optimality by more than this

Pair = list[float]


class TwoTaskMinNorm(NamedTuple):
    """What :class:`~paretomtl.core.MinNorm` holds, in plain numbers."""

    weights: list[float]
    combination: Pair
    squared_norm: float
    gap: float
    zero: bool


def two_task_min_norm(c: list[Pair], a: list[Pair], allowed: list[bool], precision: float) -> TwoTaskMinNorm | None:
    """The min-norm point of some rows of ``A L``, ``C = L Lᵀ``; None if the general solver has to do it.

    These cases are: no allowed point or many, non-finite numbers, and the origin inside a triangle of points.

    Args:
        c: the Gramian, 2 by 2.
        a: the rows ``[N, 2]``.
        allowed: which of them take part, ``[N]``.
        precision: the relative error of the Gramian's entries.
    """
    taken = [j for j, is_allowed in enumerate(allowed) if is_allowed]
    if not 0 < len(taken) <= _FEW or not math.isfinite(sum(map(sum, c)) + sum(map(sum, a))):
        return None
    s0, s1 = math.sqrt(max(c[0][0], 0.0)), math.sqrt(max(c[1][1], 0.0))
    cosine = c[0][1] * (1.0 / s0) * (1.0 / s1) if s0 > 0.0 and s1 > 0.0 else 0.0
    cosine = min(max(cosine, -1.0), 1.0)
    square = (1.0 - cosine) * (1.0 + cosine)
    sine = math.sqrt(square) if square > 2 * PIVOT_TOLERANCE else 0.0
    across, up = cosine * s1, sine * s1
    points = [(a[j][0] * s0 + a[j][1] * across, a[j][1] * up) for j in taken]

    lengths = [math.sqrt(px * px + py * py) for px, py in points]
    least, share, ends, foot = math.inf, 0.0, (0, 0), (0.0, 0.0)
    for i, (px, py) in enumerate(points):
        for j, (qx, qy) in enumerate(points):
            if lengths[i] > lengths[j]:  # from the longer end, its weight 1 − share would be rounding
                continue
            dx, dy = px - qx, py - qy
            squares = dx * dx + dy * dy
            t = (px * dx + py * dy) / squares if squares > 0.0 else 0.0
            t = min(max(t, 0.0), 1.0)
            x, y = px - t * dx, py - t * dy
            length = x * x + y * y
            if length < least:
                least, share, ends, foot = length, t, (i, j), (x, y)
    x, y = foot
    worst = max((least - (px * x + py * y)) / (n or 1.0) for (px, py), n in zip(points, lengths, strict=True))

    weights = [0.0] * len(a)
    weights[taken[ends[0]]] += 1.0 - share
    weights[taken[ends[1]]] += share
    terms = sum(weights[j] * (abs(a[j][0]) * s0 + abs(a[j][1]) * s1) for j in taken)
    if not (math.isfinite(least) and worst <= ENTER_TOLERANCE * terms):
        return None
    combination = [sum(weights[j] * a[j][i] for j in taken) for i in (0, 1)]
    zero = least <= 16 * precision * terms * terms
    known = terms if zero else math.sqrt(least)
    return TwoTaskMinNorm(weights, combination, least, max(worst, 0.0) / known if known > 0.0 else 0.0, zero)
