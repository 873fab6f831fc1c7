"""The verdict of a comparison: a summary of each method, and which methods differ by more than seeds explain."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

from paretomtl._support.significance import deviation, difference
from paretomtl.compare.row_indicators import points_hypervolume
from paretomtl.compare.row_store import Row
from paretomtl.compare.rows import best_losses, finite_points, is_ideal, read_row, rows_split


@dataclass(frozen=True)
class Summary:
    """One method over all seeds, on one split.

    Attributes:
        method: the name of the method.
        models: the number of models per seed.
        hypervolumes: one for each seed, against the common reference.
        ideal: whether each is the hypervolume of one point, made of the best losses of separate networks.
        spread: the mean over seeds.
        best: for each task the best loss of a front, mean over seeds; on test, the test loss of the solution that is
            best on the ranking split.
        nondominated: the mean over seeds.
        seconds: the mean over seeds.
        split: the split that is summarized.
        test: the summary on test; None without a test split.
    """

    method: str
    models: int
    hypervolumes: tuple[float, ...]
    ideal: bool
    spread: float
    best: list[float]
    nondominated: float
    seconds: float
    split: str = "train"
    test: Summary | None = None

    @property
    def seeds(self) -> int:
        """The number of seeds."""
        return len(self.hypervolumes)

    @property
    def hypervolume(self) -> tuple[float, float]:
        """The mean hypervolume and its standard deviation over seeds, which is NaN for one seed."""
        return statistics.fmean(self.hypervolumes), deviation(self.hypervolumes)


def common_reference(rows: Sequence[Row]) -> list[float]:
    """The common reference point: for each task the largest reference of the fronts.

    If no front has one, it is the largest loss on the ranking split.
    """
    rows = [read_row(row) for row in rows]
    known = [row["reference"] for row in rows if row["reference"] is not None]
    known = known or [point for row in rows for point in finite_points(row["losses"][rows_split(rows)])]
    if not known:
        raise ValueError("'rows' must have a reference point, or finite losses. Got neither.")
    return [max(column) for column in zip(*known, strict=True)]


def summaries(rows: Sequence[Row]) -> list[Summary]:
    """The methods, sorted by hypervolume on the ranking split, best first, each with its summary on test."""
    rows = [read_row(row) for row in rows]
    ranking, reference = rows_split(rows), common_reference(rows)
    tested = all("test" in row["losses"] for row in rows)
    by_method = []
    for method in dict.fromkeys(row["method"] for row in rows):
        own = [row for row in rows if row["method"] == method]
        test = _summary(own, "test", reference) if tested else None
        by_method.append(replace(_summary(own, ranking, reference), test=test))
    return sorted(by_method, key=lambda summary: -summary.hypervolume[0])


def _summary(rows: Sequence[Row], split: str, reference: Sequence[float]) -> Summary:
    """Summarize one method on a split; the ranking split decides which solution is best."""
    ideal = is_ideal(rows[0])
    best = [best_losses(row, split) for row in rows]
    fronts = (
        [[point] if point else [] for point in best] if ideal else [finite_points(row["losses"][split]) for row in rows]
    )
    volumes = [points_hypervolume(points, reference, ideal=False) for points in fronts]
    return Summary(
        method=rows[0]["method"],
        models=rows[0]["preferences"],
        hypervolumes=tuple(volumes),
        ideal=ideal,
        spread=statistics.fmean(row["spread"][split] for row in rows),
        best=[statistics.fmean(column) for column in zip(*filter(None, best), strict=True)]
        or [math.nan] * len(reference),
        nondominated=statistics.fmean(row["nondominated"][split] for row in rows),
        seconds=statistics.fmean(row["seconds"] for row in rows),
        split=split,
    )


def verdict(summaries: Sequence[Summary]) -> str:
    """Say in plain words which method is best here, and whether these seeds are enough to tell.

    Two methods differ if seeds alone would move their mean hypervolumes that far apart only once in twenty, by
    :func:`~paretomtl._support.significance.difference`, as in a diagnosis. Methods that cannot be told apart need not
    be equal: more seeds may separate them. Separate networks for each task are not a front, and are left out.
    """
    fronts = [summary for summary in summaries if not summary.ideal]
    if len(fronts) < 2:
        return "There is nothing to compare."
    first, others = fronts[0], fronts[1:]
    if first.seeds < 2:
        second = others[0].hypervolume[0]
        gap = f", {100 * (first.hypervolume[0] / second - 1):.1f} % above {others[0].method}" if second else ""
        return (
            f"{first.method} has the largest hypervolume on {first.split}{gap}. One seed cannot tell whether that is "
            "luck: compare with more of them."
        )
    signs = {other.method: difference(first.hypervolumes, other.hypervolumes).sign for other in others}
    alike = [method for method, sign in signs.items() if not sign]
    worse = [method for method, sign in signs.items() if sign]
    text = f"{first.method} has the largest mean hypervolume on {first.split}."
    if alike:
        text += f" {_listed(alike)} cannot be told apart from it with {first.seeds} seeds."
    if worse:
        verb = "is" if len(worse) == 1 else "are"
        text += f" {_listed(worse)} {verb} behind by more than seeds explain (once in twenty, Welch's test)."
    return text


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
