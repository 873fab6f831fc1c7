"""Whether two sets of numbers, one number a seed, differ by more than seeds explain."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

_STUDENT = (
    (2, 12.71), (3, 4.303), (4, 3.182), (5, 2.776), (6, 2.571), (7, 2.447), (8, 2.365), (9, 2.306), (10, 2.262),
    (12, 2.201), (15, 2.145), (20, 2.086), (30, 2.042), (60, 2.0),
)  # fmt: skip
"""Degrees of freedom under which a quantile of Student's t holds."""


def mean(values: Sequence[float]) -> float:
    """Of what is not NaN; NaN if nothing is left."""
    found = [value for value in values if not math.isnan(value)]
    return statistics.fmean(found) if found else math.nan


def difference(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float, bool]:
    """How far the mean of ours is above that of theirs, and whether seeds alone would rarely do that.

    Rarely is once in twenty, by Welch's t-test.
    """
    gap = mean(ours) - mean(theirs)
    if min(len(ours), len(theirs)) < 2:
        return gap, False
    parts = [statistics.variance(values) / len(values) for values in (ours, theirs)]
    error = math.sqrt(sum(parts))
    if error == 0.0:
        return gap, gap != 0.0
    shares = [part**2 / (len(values) - 1) for part, values in zip(parts, (ours, theirs), strict=True)]
    return gap, abs(gap) > _quantile(sum(parts) ** 2 / sum(shares)) * error


def _quantile(freedom: float) -> float:
    """Of Student's t, what is exceeded once in twenty on either side together; between the entries from above."""
    return next((value for most, value in _STUDENT if freedom < most), 1.96)
