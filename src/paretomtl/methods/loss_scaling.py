"""Loss scaling: factors that make losses of different units comparable, and whether losses need any.

Factors are given, or follow from an ideal and a worst point, or from the first losses. Warnings, ``scale="auto"`` and
the diagnosis share one threshold on the ratio of losses.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias, TypeGuard

import torch
from torch import Tensor

from paretomtl._support.argument_checks import quote

BALANCING = ("running", "gradnorm", "uncertainty")
"""The ways to balance losses in the first steps, in which all tasks are trained together."""

UNITS_DIFFER = 10.0
"""Losses that differ by more than this factor need to be scaled."""

Point: TypeAlias = tuple[float, ...]
Scale: TypeAlias = Literal["auto", "first", "running", "gradnorm", "uncertainty"] | Point | tuple[Point, Point]


def as_scale(scale: Any, kinds: Sequence[str], owner: str) -> Any:
    """Convert lists and tensors in a scale to tuples; raise an error for an invalid one.

    Args:
        scale: the value from the user.
        kinds: the strings that it may be.
        owner: the name of the method.
    """
    if scale is None or (isinstance(scale, str) and scale in kinds):
        return scale
    given = scale.tolist() if isinstance(scale, Tensor) else scale
    if isinstance(given, str) or not isinstance(given, (tuple, list)):
        why = ""
        if isinstance(given, str) and given in BALANCING:
            why = f" {given!r} trains tasks together first and spreads them later, which only 'pareto-mtl' does."
        raise ValueError(
            f"'scale' of '{owner}' must be one of {list(kinds)}, one factor per task, an ideal and a worst point, or "
            f"None. Got {quote(scale)} instead.{why}"
        )
    plain = tuple(tuple(part) if isinstance(part, (tuple, list)) else part for part in given)
    if is_range(plain):
        ideal, worst = plain
        if len(ideal) != len(worst) or not all(-math.inf < a < b < math.inf for a, b in zip(ideal, worst, strict=True)):
            raise ValueError(
                f"'scale' must be an ideal point and a worst one, which is larger in every task. Got "
                f"{quote(scale)} instead."
            )
    elif not all(isinstance(c, (int, float)) and 0 < c < math.inf for c in plain):
        raise ValueError(f"'scale' must be positive and finite. Got {quote(scale)} instead.")
    return plain


def is_range(scale: Any) -> TypeGuard[tuple[Point, Point]]:
    """Whether a scale is given by an ideal and a worst point."""
    return isinstance(scale, tuple) and len(scale) == 2 and all(isinstance(part, tuple) for part in scale)


def given_factors(scale: Any, tasks: int) -> Tensor:
    """The factors ``[m]`` of a scale that is known before the first step."""
    if scale is None:
        return torch.ones(tasks, dtype=torch.float64)
    factors = [1.0 / (b - a) for a, b in zip(*scale, strict=True)] if is_range(scale) else list(scale)
    if len(factors) != tasks:
        raise ValueError(f"'scale' must have one factor per task ({tasks}). Got {len(factors)} instead.")
    return torch.tensor(factors, dtype=torch.float64)


def first_factors(known: Tensor, losses: Tensor, present: Tensor) -> Tensor:
    """Keep known factors, and add one over each loss that is seen for the first time; zero means unknown."""
    settled = (known > 0) | ~present | (losses == 0)
    return torch.where(settled, known, 1.0 / losses.abs().clamp_min(1e-300))


def above_ideal(losses: Tensor, ideal: Tensor | None) -> Tensor:
    """Losses relative to the ideal point, if there is one, in float64; losses below it count as zero."""
    if ideal is None:
        return losses
    above = (losses.double() - ideal).clamp_min(0.0)
    return torch.where(losses.isfinite(), above, losses.double())


def largest_ratio(rows: Sequence[Sequence[float]]) -> tuple[int, int, float]:
    """The pair of tasks with the largest ratio that holds in all rows, and that ratio.

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


def auto_factors(rows: Sequence[Sequence[float]]) -> tuple[float, ...]:
    """The factors of ``scale="auto"`` for first losses of some models: one over their mean if units differ, else 1.

    Example:
        >>> auto_factors([[0.5, 2000.0]]), auto_factors([[0.5, 2.0]])
        ((2.0, 0.0005), (1.0, 1.0))
    """
    if largest_ratio(rows)[2] <= UNITS_DIFFER:
        return (1.0,) * len(rows[0])
    means = [sum(column) / len(rows) for column in zip(*rows, strict=True)]
    return tuple(1.0 / mean if 0.0 < mean < math.inf else 1.0 for mean in means)


def auto_factors_by_row(first: Tensor) -> Tensor:
    """The same for each model on its own, from first losses ``[K, m]``, where zero means unknown.

    Losses that become known later can only widen the range, so factors change at most once from 1 to other values.
    """
    known = first > 0
    largest = torch.where(known, first, 0.0).amax(-1, keepdim=True)
    least = torch.where(known, first, torch.inf).amin(-1, keepdim=True)
    return torch.where((largest > UNITS_DIFFER * least) & known, 1.0 / first.clamp_min(1e-300), 1.0)


def update_first_losses(first: Tensor, losses: Tensor, present: Tensor) -> Tensor:
    """Keep known first losses, and add those that are seen for the first time; zero means unknown."""
    return torch.where((first > 0) | ~present, first, losses.abs())


def format_ratio(ratio: float) -> str:
    """Format a factor with two digits and thousands separators."""
    return f"{ratio:.2g}" if ratio < 100 else f"{float(f'{ratio:.2g}'):,.0f}" if ratio < 1e6 else f"{ratio:.0e}"
