"""Factors that make losses of different units compare: given ones, or those of an ideal and a worst point."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias, TypeGuard

import torch
from torch import Tensor

BALANCING = ("running", "gradnorm", "uncertainty")
"""What can decide the factors of the losses in the first steps, in which all tasks are trained together."""

Point: TypeAlias = tuple[float, ...]
Scale: TypeAlias = Literal["auto", "first", "running", "gradnorm", "uncertainty"] | Point | tuple[Point, Point]


def as_scale(scale: Any, kinds: Sequence[str], owner: str) -> Any:
    """A scale with tuples in place of lists and tensors; an error for what is none.

    Args:
        scale: what the user gave.
        kinds: the words that it may be.
        owner: the name of the method.
    """
    if scale is None or (isinstance(scale, str) and scale in kinds):
        return scale
    found = scale.tolist() if isinstance(scale, Tensor) else scale
    if isinstance(found, str) or not isinstance(found, (tuple, list)):
        why = ""
        if isinstance(found, str) and found in BALANCING:
            why = f" {found!r} trains tasks together first and spreads them then, which 'pareto-mtl' alone does."
        raise ValueError(
            f"'scale' of '{owner}' must be one of {list(kinds)}, one factor per task, an ideal and a worst point, or "
            f"None. Got {scale!r} instead.{why}"
        )
    found = tuple(tuple(part) if isinstance(part, (tuple, list)) else part for part in found)
    if is_range(found):
        ideal, worst = found
        if len(ideal) != len(worst) or not all(-math.inf < a < b < math.inf for a, b in zip(ideal, worst, strict=True)):
            raise ValueError(
                f"'scale' must be an ideal point and a worst one, which is larger in every task. Got {scale} instead."
            )
    elif not all(isinstance(c, (int, float)) and 0 < c < math.inf for c in found):
        raise ValueError(f"'scale' must be positive and finite. Got {scale} instead.")
    return found


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
    """Factors that are known, and one over each loss that is seen for the first time; zero: not known yet."""
    settled = (known > 0) | ~present | (losses == 0)
    return torch.where(settled, known, 1.0 / losses.abs().clamp_min(1e-300))


def above_ideal(losses: Tensor, ideal: Tensor | None) -> Tensor:
    """Losses counted from the ideal point, in float64, where there is one; what is better than it counts as zero."""
    if ideal is None:
        return losses
    above = (losses.double() - ideal).clamp_min(0.0)
    return torch.where(losses.isfinite(), above, losses.double())
