"""Numbers over seeds as text for tables."""

from __future__ import annotations

from collections.abc import Sequence

from paretomtl._support.significance import Difference, deviation, mean


def plus_minus(values: Sequence[float], digits: int = 3) -> str:
    """Mean ± standard deviation; the mean alone for fewer than two values."""
    text = f"{mean(values):.{digits}f}"
    return text if len(values) < 2 else f"{text} ± {deviation(values):.{digits}f}"


def starred(gap: Difference, digits: int = 3) -> str:
    """A difference, with a star if it is more than seeds explain."""
    return f"{gap.value:+.{digits}f}{'*' if gap.significant else ''}"
