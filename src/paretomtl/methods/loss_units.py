"""Whether losses have different units: one threshold for warnings, for ``scale="auto"`` and for a diagnosis."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

DIFFER = 10.0
"""Losses that differ by more than this factor want to be scaled."""


def largest_ratio(rows: Sequence[Sequence[float]]) -> tuple[int, int, float]:
    """The pair of tasks of which one is larger in all rows, by the largest factor that holds in all.

    Example:
        >>> largest_ratio([[0.5, 2000.0], [0.5, 3000.0]])
        (1, 0, 4000.0)
    """
    best = (0, 0, 1.0)
    for i in range(len(rows[0])):
        for j in range(len(rows[0])):
            ratio = min(row[i] / row[j] if row[j] > 0 else math.nan for row in rows)
            if all(row[j] > 0 for row in rows) and ratio > best[2]:
                best = i, j, ratio
    return best


def factors_of(rows: Sequence[Sequence[float]]) -> tuple[float, ...]:
    """The factors of ``scale="auto"`` for first losses of some models: one over their mean where units differ, else 1.

    Example:
        >>> factors_of([[0.5, 2000.0]]), factors_of([[0.5, 2.0]])
        ((2.0, 0.0005), (1.0, 1.0))
    """
    if largest_ratio(rows)[2] <= DIFFER:
        return (1.0,) * len(rows[0])
    means = [sum(column) / len(rows) for column in zip(*rows, strict=True)]
    return tuple(1.0 / mean if 0.0 < mean < math.inf else 1.0 for mean in means)


def factors_by_row(first: Tensor) -> Tensor:
    """The same for each model on its own, from first losses ``[K, m]`` of which zero is not known yet.

    Losses that become known later only widen the range, so that factors change at most once from 1 to others.
    """
    known = first > 0
    largest = torch.where(known, first, 0.0).amax(-1, keepdim=True)
    least = torch.where(known, first, torch.inf).amin(-1, keepdim=True)
    return torch.where((largest > DIFFER * least) & known, 1.0 / first.clamp_min(1e-300), 1.0)


def remembered(first: Tensor, losses: Tensor, present: Tensor) -> Tensor:
    """First losses that are known, and those that are seen for the first time; zero: not known yet."""
    return torch.where((first > 0) | ~present, first, losses.abs())


def ratio_in_words(ratio: float) -> str:
    """A factor with two digits, and commas in thousands."""
    return f"{ratio:.2g}" if ratio < 100 else f"{float(f'{ratio:.2g}'):,.0f}" if ratio < 1e6 else f"{ratio:.0e}"
