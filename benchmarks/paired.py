"""Differences that are paired by seed, as the benchmarks store them."""

from __future__ import annotations

from collections.abc import Sequence

from paretomtl._support.significance import half_width, mean
from paretomtl.compare import Row


def paired(gains: Sequence[float]) -> Row:
    """The mean of differences, half the width of its 95 % interval (Student's t), and how many are gains."""
    return {
        "seeds": len(gains),
        "difference": round(mean(gains), 5),
        "half_width": round(half_width(gains), 5),
        "larger": sum(gain > 0 for gain in gains),
    }
