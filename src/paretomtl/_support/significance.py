"""The one rule of significance: whether means over seeds differ by more than seeds explain.

``compare``, pages, ``diagnose`` and the paper's studies judge all comparisons of one answer together by
:func:`adjusted`. Means, deviations, confidence intervals and rank correlations are here too.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

_LEVEL = 0.05
_STEPS = 200  # of an integral: six digits


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
        p: how often chance alone exceeds it; 1 if it cannot be told.
    """

    value: float
    half_width: float
    p: float

    @property
    def significant(self) -> bool:
        """Whether it is larger than seeds explain: chance alone would exceed that only once in twenty."""
        return self.p <= _LEVEL

    @property
    def sign(self) -> int:
        """1 for more, -1 for less, 0 if seeds may explain the difference."""
        return (1 if self.value > 0 else -1) if self.significant else 0


def difference(first: Sequence[float], second: Sequence[float] | None = None) -> Difference:
    """The mean of the first less that of the second by Welch's t-test, or of differences paired by seed by Student's.

    It is not significant with fewer than two numbers in a set, nor if one of them is not finite.

    Example:
        >>> difference([2.0, 2.1, 1.9], [1.0, 1.1, 0.9]).sign, difference([2.0], [1.0]).sign
        (1, 0)
    """
    sets = [first] if second is None else [first, second]
    value = mean(first) - (0.0 if second is None else mean(second))
    if any(len(values) < 2 or not all(map(math.isfinite, values)) for values in sets):
        return Difference(value, math.inf, 1.0)
    error, freedom = _error([statistics.variance(values) for values in sets], list(map(len, sets)))
    p = _tail(abs(value) / error, freedom) if error else float(value == 0.0)
    return Difference(value, _quantile(freedom) * error, p)


def adjusted(differences: Sequence[Difference], choices: int = 2) -> list[Difference]:
    """The differences with p for all together: chance alone makes any of them significant only once in twenty.

    This is Holm's method, whatever the distributions have in common. If the first mean of all differences was chosen
    as the best of several, each of these could have been, with its own differences, each in one direction: that costs
    a factor of half their number.

    Args:
        differences: of one answer.
        choices: of how many means the first one was chosen as the best; 2 if it was not chosen.
    """
    judged, least = list(differences), 0.0
    for place, i in enumerate(sorted(range(len(judged)), key=lambda i: judged[i].p)):
        least = max(least, min(1.0, judged[i].p * (len(judged) - place) * choices / 2))
        judged[i] = replace(judged[i], p=least)
    return judged


def behind(leader: Mapping[Any, float], others: Sequence[Mapping[Any, float]]) -> list[bool]:
    """Whether each of the others is behind the one with the best mean, by differences of seeds that both have.

    Args:
        leader: the values by seed; more is better.
        others: those of the other candidates.
    """
    pairs = [[(leader[seed], other[seed]) for seed in leader.keys() & other.keys()] for other in others]
    gains = [[0.0 if math.isclose(a, b, rel_tol=1e-12) else a - b for a, b in pair] for pair in pairs]
    return [gap.sign > 0 for gap in adjusted([difference(each) for each in gains], len(others) + 1)]


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
    error, freedom = _error(variances, counts)
    return _quantile(freedom) * error


def _error(variances: Sequence[float], counts: Sequence[int]) -> tuple[float, int]:
    """The standard error of a mean or of a difference of two, and its degrees of freedom, rounded down."""
    parts = [variance / count for variance, count in zip(variances, counts, strict=True)]
    shares = [part**2 / (count - 1) for part, count in zip(parts, counts, strict=True)]
    # Both may underflow where deviations are far below 1; sums of rounded variances miss a whole number by a little.
    freedom = sum(parts) ** 2 / sum(shares) if sum(shares) > 0 else min(counts) - 1
    return math.sqrt(sum(parts)), math.floor(freedom + 1e-9)


def _tail(t: float, freedom: int) -> float:
    """How often Student's t is beyond t on either side: an integral over the angle whose tangent is root(freedom)/t."""
    step = math.atan2(math.sqrt(freedom), t) / _STEPS
    area = step * math.fsum(math.sin((i + 0.5) * step) ** (freedom - 1) for i in range(_STEPS))
    return 2 / math.sqrt(math.pi) * math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) * area


@cache
def _quantile(freedom: int) -> float:
    """The two-sided 95 % quantile of Student's t."""
    low, high = 0.0, 13.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if _tail(middle, freedom) > _LEVEL else (low, middle)
    return high


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
