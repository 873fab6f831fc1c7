"""Means, differences and rank correlations of numbers of rows."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from paretomtl._support.significance import difference, mean
from paretomtl.compare.row_store import Row

__all__ = [
    "deviation",
    "difference",
    "direction_rank_correlation",
    "mean",
    "plus_minus",
    "rank_correlation",
    "significant_sign",
    "starred",
]


def deviation(values: Sequence[float]) -> float:
    """The standard deviation; NaN for fewer than two values."""
    return statistics.stdev(values) if len(values) > 1 else math.nan


def plus_minus(values: Sequence[float], digits: int = 3) -> str:
    """Mean ± standard deviation; the mean alone for fewer than two values."""
    text = f"{mean(values):.{digits}f}"
    return text if len(values) < 2 else f"{text} ± {deviation(values):.{digits}f}"


def starred(result: tuple[float, bool], digits: int = 3) -> str:
    """A result of :func:`difference` as text, with a star where it is more than seeds explain."""
    gap, sure = result
    return f"{gap:+.{digits}f}{'*' if sure else ''}"


def significant_sign(result: tuple[float, bool]) -> int:
    """The sign of a result of :func:`difference`: 1 for more, -1 for less, 0 where seeds may explain it."""
    gap, sure = result
    return ((gap > 0) - (gap < 0)) if sure else 0


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> float:
    """Spearman's rank correlation, with mean ranks for ties; NaN where all are tied."""
    ranks = [_ranks(first), _ranks(second)]
    try:
        return statistics.correlation(*ranks)
    except statistics.StatisticsError:
        return math.nan


def direction_rank_correlation(row: Row, losses: str = "losses") -> float:
    """The rank correlation of the directions of the preference vectors with those of the loss vectors, of two tasks."""
    pairs = [
        (math.atan2(u[1], u[0]), math.atan2(point[1], point[0]))
        for u, point in zip(row["vectors"], row[losses], strict=True)
        if None not in point
    ]
    return rank_correlation(*zip(*pairs, strict=True)) if len(pairs) > 1 else math.nan


def _ranks(values: Sequence[float]) -> list[float]:
    ordered = sorted(values)
    return [ordered.index(value) + (ordered.count(value) - 1) / 2 for value in values]
