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
    return gap, abs(gap) > half_width(ours, theirs)


def half_width(*sets: Sequence[float]) -> float:
    """How far seeds alone move a mean, or a difference of two, to either side: more than that only once in twenty.

    Half of the confidence interval, by Student's t or Welch's; infinite with fewer than two numbers in a set.

    Example:
        >>> round(half_width([1.0, 2.0, 3.0]), 3), half_width([1.0])
        (2.484, inf)
    """
    if any(len(values) < 2 for values in sets):
        return math.inf
    return half_width_of([statistics.variance(values) for values in sets], [len(values) for values in sets])


def half_width_of(variances: Sequence[float], counts: Sequence[int]) -> float:
    """The same from variances and numbers of seeds, also of seeds that are still to be trained."""
    if min(counts) < 2:
        return math.inf
    parts = [variance / count for variance, count in zip(variances, counts, strict=True)]
    error = math.sqrt(sum(parts))
    if error == 0.0:
        return 0.0
    shares = [part**2 / (count - 1) for part, count in zip(parts, counts, strict=True)]
    # Both may underflow where deviations are far below 1.
    freedom = sum(parts) ** 2 / sum(shares) if sum(shares) > 0 else min(counts) - 1
    return _quantile(freedom) * error


def _quantile(freedom: float) -> float:
    """Of Student's t, what is exceeded once in twenty on either side together; between the entries from above."""
    return next((value for most, value in _STUDENT if freedom < most), 1.96)
