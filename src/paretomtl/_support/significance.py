"""Statistics over seeds: means, confidence intervals, and whether two means differ by more than seeds explain."""

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
    """The mean of the values that are not NaN; NaN without any."""
    known = [value for value in values if not math.isnan(value)]
    return statistics.fmean(known) if known else math.nan


def difference(first: Sequence[float], second: Sequence[float]) -> tuple[float, bool]:
    """The mean of the first less that of the second, and whether it is significant.

    It is significant where seeds alone would differ that far only once in twenty, by Welch's t-test.
    """
    gap = mean(first) - mean(second)
    return gap, abs(gap) > half_width(first, second)


def half_width(*sets: Sequence[float]) -> float:
    """Half the width of the 95 % confidence interval of a mean, or of the difference of two.

    Seeds alone move it farther only once in twenty, by Student's t or Welch's. It is infinite
    with fewer than two numbers in a set.

    Example:
        >>> round(half_width([1.0, 2.0, 3.0]), 3), half_width([1.0])
        (2.484, inf)
    """
    if any(len(values) < 2 for values in sets):
        return math.inf
    return half_width_of([statistics.variance(values) for values in sets], [len(values) for values in sets])


def half_width_of(variances: Sequence[float], counts: Sequence[int]) -> float:
    """The half width from variances and numbers of seeds, which may include seeds that are still to be trained."""
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
    """The two-sided 95 % quantile of Student's t; between two entries of the table the larger one."""
    return next((value for most, value in _STUDENT if freedom < most), 1.96)
