"""The one rule of significance: whether two means over seeds differ by more than seeds explain.

``compare``, ``diagnose`` and the paper's studies all call :func:`difference`, so that they agree on the same numbers.
Means, deviations, confidence intervals and rank correlations are here too.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

_STUDENT = (
    (2, 12.71), (3, 4.303), (4, 3.182), (5, 2.776), (6, 2.571), (7, 2.447), (8, 2.365), (9, 2.306), (10, 2.262),
    (12, 2.201), (15, 2.145), (20, 2.086), (30, 2.042), (60, 2.0),
)  # fmt: skip
"""Degrees of freedom under which a quantile of Student's t holds."""


def mean(values: Sequence[float]) -> float:
    """The mean of the values that are not NaN; NaN if there are none."""
    known = [value for value in values if not math.isnan(value)]
    return statistics.fmean(known) if known else math.nan


def deviation(values: Sequence[float]) -> float:
    """The standard deviation; NaN for fewer than two values."""
    return statistics.stdev(values) if len(values) > 1 else math.nan


@dataclass(frozen=True)
class Difference:
    """The difference of two means over seeds.

    Attributes:
        value: the first mean less the second.
        half_width: half the width of its 95 % confidence interval.
    """

    value: float
    half_width: float

    @property
    def significant(self) -> bool:
        """Whether it is larger than seeds explain: chance alone would exceed that only once in twenty."""
        return abs(self.value) > self.half_width

    @property
    def sign(self) -> int:
        """1 for more, -1 for less, 0 if seeds may explain the difference."""
        return (1 if self.value > 0 else -1) if self.significant else 0


def difference(first: Sequence[float], second: Sequence[float]) -> Difference:
    """The mean of the first less that of the second, with its confidence interval by Welch's t-test.

    It is not significant with fewer than two numbers in a set, nor if one of them is NaN.

    Example:
        >>> difference([2.0, 2.1, 1.9], [1.0, 1.1, 0.9]).sign, difference([2.0], [1.0]).sign
        (1, 0)
    """
    return Difference(mean(first) - mean(second), half_width(first, second))


def half_width(*sets: Sequence[float]) -> float:
    """Half the width of the 95 % confidence interval of a mean, or of the difference of two.

    It is by Student's t, or Welch's, and infinite with fewer than two numbers in a set.

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
    whole = round(freedom, 9)  # sums of rounded variances miss a whole number by a little
    return next((value for most, value in _STUDENT if whole < most), 1.96)


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> float:
    """Spearman's rank correlation, with mean ranks for ties; NaN if all are tied."""
    ranks = [_ranks(first), _ranks(second)]
    try:
        return statistics.correlation(*ranks)
    except statistics.StatisticsError:
        return math.nan


def _ranks(values: Sequence[float]) -> list[float]:
    ordered = sorted(values)
    return [ordered.index(value) + (ordered.count(value) - 1) / 2 for value in values]
