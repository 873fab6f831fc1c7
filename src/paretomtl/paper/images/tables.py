"""Rows of the image studies as lines of tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from paretomtl._support.significance import mean
from paretomtl.compare import Row
from paretomtl.methods.registry import is_separate
from paretomtl.paper.images.cells import METHODS
from paretomtl.paper.images.rows import best_accuracies
from paretomtl.paper.number_text import plus_minus
from paretomtl.paper.rows import column, has, pick


@dataclass(frozen=True)
class MethodLine:
    """One method on one set with one recipe, over all seeds; text for a table.

    Attributes:
        method: the name of the method.
        hypervolume: that of the test losses at (2, 2).
        error_hypervolume: that of the test error rates at (1, 1).
        accuracy: the best for each task.
        spread: the spread of the test losses; empty for separate networks.
        regions: the share of solutions in their own region on training and on test; empty for methods without regions.
        seconds: the time of all seeds at once; marked if another process trained on the same GPU.
        ideal: whether the hypervolumes are those of one point made of separate networks.
    """

    method: str
    hypervolume: str
    error_hypervolume: str
    accuracy: tuple[str, ...]
    spread: str
    regions: tuple[str, str]
    seconds: str
    ideal: bool


def method_lines(rows: Sequence[Row], problem: str, part: str) -> list[MethodLine]:
    """The table of a set and a recipe, best mean hypervolume first."""
    results = []
    for method in METHODS:
        if not has(rows, problem=problem, part=part, method=method):
            continue
        mine = pick(rows, problem=problem, part=part, method=method)
        ideal = is_separate(method)
        best = [best_accuracies(row) for row in mine]
        regions = ("", "")
        if mine[0]["in_region"] is not None:
            shares = [[row[name] / row["preferences"] for row in mine] for name in ("in_region", "in_region_test")]
            regions = (f"{mean(shares[0]):.0%}", f"{mean(shares[1]):.0%}")
        line = MethodLine(
            method,
            plus_minus(column(mine, "hypervolume")),
            plus_minus(column(mine, "error_hypervolume"), 4),
            tuple(plus_minus(values, 4) for values in zip(*best, strict=True)),
            "" if ideal else plus_minus(column(mine, "spread"), 2),
            regions,
            f"{mine[0]['seconds']:.0f}{'‡' if mine[0].get('beside') else ''}",
            ideal,
        )
        results.append((mean(column(mine, "hypervolume")), line))
    return [line for _, line in sorted(results, key=lambda pair: -pair[0])]
