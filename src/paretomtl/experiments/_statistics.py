"""Means, differences and orders of stored rows."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from typing import Any

from paretomtl.experiments._store import Row

_STUDENT = (
    (2, 12.71), (3, 4.303), (4, 3.182), (5, 2.776), (6, 2.571), (7, 2.447), (8, 2.365), (9, 2.306), (10, 2.262),
    (12, 2.201), (15, 2.145), (20, 2.086), (30, 2.042), (60, 2.0),
)  # fmt: skip
"""Degrees of freedom under which a quantile of Student's t holds."""


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


def mean(values: Sequence[float]) -> float:
    """Of what is not NaN; NaN if nothing is left."""
    found = [value for value in values if not math.isnan(value)]
    return statistics.fmean(found) if found else math.nan


def deviation(values: Sequence[float]) -> float:
    """The standard deviation; NaN for fewer than two values."""
    return statistics.stdev(values) if len(values) > 1 else math.nan


def plus_minus(values: Sequence[float], digits: int = 3) -> str:
    """Mean ± standard deviation; the mean alone for fewer than two values."""
    text = f"{mean(values):.{digits}f}"
    return text if len(values) < 2 else f"{text} ± {deviation(values):.{digits}f}"


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
