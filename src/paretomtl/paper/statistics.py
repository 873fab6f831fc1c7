"""Means, differences and orders of stored rows."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from typing import Any

from paretomtl._support.statistics import difference, mean
from paretomtl.compare.row_store import Row

__all__ = [
    "apart",
    "column",
    "deviation",
    "difference",
    "has",
    "mean",
    "order",
    "pick",
    "plus_minus",
    "rank_correlation",
    "starred",
]


def pick(rows: Sequence[Row], **fields: Any) -> list[Row]:
    """The rows with these fields; final ones without a note where nothing else is said. An error for none."""
    wanted = {"stage": "final", "note": "", **fields}
    found = [row for row in rows if all(row.get(name) == value for name, value in wanted.items())]
    if not found:
        said = ", ".join(f"{name} {value!r}" for name, value in fields.items())
        raise ValueError(f"'rows' must hold some of {said}. Got none.")
    return found


def has(rows: Sequence[Row], **fields: Any) -> bool:
    """Whether there are rows with these fields."""
    return any(all(row.get(name) == value for name, value in fields.items()) for row in rows)


def column(rows: Sequence[Row], value: str | Callable[[Row], float]) -> list[float]:
    """A number of each row."""
    return [float(row[value] if isinstance(value, str) else value(row)) for row in rows]


def deviation(values: Sequence[float]) -> float:
    """The standard deviation; NaN for fewer than two values."""
    return statistics.stdev(values) if len(values) > 1 else math.nan


def plus_minus(values: Sequence[float], digits: int = 3) -> str:
    """Mean ± standard deviation; the mean alone for fewer than two values."""
    text = f"{mean(values):.{digits}f}"
    return text if len(values) < 2 else f"{text} ± {deviation(values):.{digits}f}"


def starred(found: tuple[float, bool], digits: int = 3) -> str:
    """What :func:`difference` found, with a star where it is more than seeds explain."""
    gap, sure = found
    return f"{gap:+.{digits}f}{'*' if sure else ''}"


def apart(found: tuple[float, bool]) -> int:
    """What :func:`difference` found as a sign: 1 and -1 for more and less, 0 for what seeds may explain."""
    gap, sure = found
    return ((gap > 0) - (gap < 0)) if sure else 0


def rank_correlation(asked: Sequence[float], obtained: Sequence[float]) -> float:
    """Spearman's, with mean ranks for ties; NaN where all are tied."""
    ranks = [_ranks(asked), _ranks(obtained)]
    try:
        return statistics.correlation(*ranks)
    except statistics.StatisticsError:
        return math.nan


def order(row: Row, losses: str = "losses") -> float:
    """The rank correlation of the directions that were asked for with those of the loss vectors, for two tasks."""
    pairs = [
        (math.atan2(u[1], u[0]), math.atan2(point[1], point[0]))
        for u, point in zip(row["vectors"], row[losses], strict=True)
        if None not in point
    ]
    return rank_correlation(*zip(*pairs, strict=True)) if len(pairs) > 1 else math.nan


def _ranks(values: Sequence[float]) -> list[float]:
    ordered = sorted(values)
    return [ordered.index(value) + (ordered.count(value) - 1) / 2 for value in values]
