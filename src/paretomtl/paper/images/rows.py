"""Numbers read from the rows of image studies."""

from __future__ import annotations

import math
from collections.abc import Sequence

from paretomtl.compare import Row
from paretomtl.compare.rows import accuracies
from paretomtl.paper.number_text import plus_minus
from paretomtl.paper.rows import column, favouring


def best_accuracies(row: Row, split: str = "metrics") -> list[float]:
    """For each task the best accuracy of any solution."""
    return [
        max((v for v in values if v == v), default=math.nan) for values in zip(*accuracies(row, split), strict=True)
    ]


def own_accuracies(row: Row, split: str = "metrics") -> list[float]:
    """For each task the accuracy of the solution whose preference favours it most, even if another one is better."""
    points = accuracies(row, split)
    return [points[favouring(row, task)][task] for task in range(len(row["tasks"]))]


def sum_or_nan(point: Sequence[float]) -> float:
    """The sum of the losses of a solution; NaN if one is missing."""
    return math.nan if None in point else sum(point)


def volume_and_spread(rows: Sequence[Row]) -> str:
    """Hypervolume and spread over the seeds, as text."""
    volumes, spreads = column(rows, "hypervolume"), column(rows, "spread")
    return f"hypervolume {plus_minus(volumes)}, spread {plus_minus(spreads, 2)}"


def count_solutions(rows: Sequence[Row]) -> int:
    """The number of solutions of all rows."""
    return sum(row["preferences"] for row in rows)
