"""The verdict of a comparison: a summary of each method, and which methods differ by more than seeds explain."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from paretomtl._support.significance import deviation, difference
from paretomtl._support.splits import split_word
from paretomtl._support.text import join_names
from paretomtl.compare.row_indicators import (
    best_delta_m,
    points_box_share,
    points_hypervolume,
    separate_losses,
    tight_point,
)
from paretomtl.compare.row_store import Row
from paretomtl.compare.row_union import RowUnion
from paretomtl.compare.rows import best_losses, finite_points, is_ideal, read_row, rows_split, unique_rows


@dataclass(frozen=True)
class Summary:
    """One method over all seeds, on one split.

    Attributes:
        method: the name of the method.
        models: the number of models per seed.
        hypervolumes: one for each seed, against the common reference.
        ideal: whether each is the hypervolume of one point, made of the best losses of separate networks.
        spread: the mean over seeds.
        best: for each task the best loss of a front, mean over seeds; on test, the test loss of the model that is
            best on the ranking split.
        nondominated: the mean over seeds.
        seconds: the mean over seeds.
        split: the split that is summarized.
        test: the summary on test; None without a test split.
        tight_hypervolumes: one for each seed, against the tight reference of all methods; empty if it is unknown.
        box_share: the share of the box between the best losses and the common reference that the hypervolume fills,
            mean over seeds; None for separate networks, and if it is undefined.
        in_region: the share of models in the region of their own preference vector on training, mean over seeds;
            None for preferences that are not directions, and on test.
        median_angle: the median angle in degrees between the losses on training and the preference vectors, mean over
            seeds; None as for ``in_region``, and for rows of earlier versions.
        largest_angle: the largest of these angles of any seed.
        delta_m: Δm in percent of the best model, mean over seeds, against the mean losses of separate networks:
            below zero is better than these. On test, of the model that is best on the ranking split. None if no
            method has separate networks, and for these themselves.
        regrets: one for each seed, over random utilities: chosen on the ranking split, measured on this one, and
            compared with the best of all fronts; see :meth:`paretomtl.Front.regret`. Infinite for a front without
            finite losses; empty for separate networks.
        r2_values: R2 for each seed, in the scale of all fronts; see :meth:`paretomtl.Front.r2`. Infinite or empty as
            regrets are.
        igd_plus_values: IGD+ for each seed, to the best models of all fronts and in their scale. Infinite or empty
            as regrets are.
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
    tight_hypervolumes: tuple[float, ...] = ()
    box_share: float | None = None
    in_region: float | None = None
    median_angle: float | None = None
    largest_angle: float | None = None
    delta_m: float | None = None
    regrets: tuple[float, ...] = ()
    r2_values: tuple[float, ...] = ()
    igd_plus_values: tuple[float, ...] = ()

    @property
    def seeds(self) -> int:
        """The number of seeds."""
        return len(self.hypervolumes)

    @property
    def hypervolume(self) -> tuple[float, float]:
        """The mean hypervolume and its standard deviation over seeds, which is NaN for one seed."""
        return statistics.fmean(self.hypervolumes), deviation(self.hypervolumes)

    @property
    def tight_hypervolume(self) -> tuple[float, float] | None:
        """Mean and standard deviation at the tight reference; None if it is unknown."""
        return _mean_and_deviation(self.tight_hypervolumes)

    @property
    def regret(self) -> tuple[float, float] | None:
        """Mean and standard deviation of the regret; None if it is unknown."""
        return _mean_and_deviation(self.regrets)

    @property
    def r2(self) -> tuple[float, float] | None:
        """Mean and standard deviation of R2; None if it is unknown."""
        return _mean_and_deviation(self.r2_values)

    @property
    def igd_plus(self) -> tuple[float, float] | None:
        """Mean and standard deviation of IGD+; None if it is unknown."""
        return _mean_and_deviation(self.igd_plus_values)


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


def tight_references(rows: Sequence[Row]) -> dict[str, list[float]]:
    """By split, the reference point just beyond the non-dominated models of all rows; see :class:`paretomtl.Front`.

    It is on the ranking split, and on test if all rows have it. Empty if no front has finite losses. Separate networks,
    and models beyond the common reference, do not count.
    """
    rows = [read_row(row) for row in rows]
    reference = common_reference(rows)
    points = {split: tight_point(rows, split, reference) for split in _splits(rows)}
    return {split: point for split, point in points.items() if point is not None}


def summaries(rows: Sequence[Row]) -> list[Summary]:
    """The methods, sorted by hypervolume on the ranking split, best first, each with its summary on test."""
    rows = unique_rows(rows)
    (ranking, *others), reference, tight = _splits(rows), common_reference(rows), tight_references(rows)
    baselines = {split: separate_losses(rows, split) for split in (ranking, *others)}
    unions = {split: RowUnion(rows, split) for split in (ranking, *others)}
    by_method = []
    for method in dict.fromkeys(row["method"] for row in rows):
        own = [row for row in rows if row["method"] == method]
        found, *test = [
            _summary(own, split, reference, tight.get(split), baselines, unions[split]) for split in (ranking, *others)
        ]
        by_method.append(replace(found, test=test[0] if test else None))
    return sorted(by_method, key=lambda summary: -summary.hypervolume[0])


def _splits(rows: Sequence[Row]) -> list[str]:
    """The ranking split, and test if all rows have it."""
    return [rows_split(rows), *(["test"] if all("test" in row["losses"] for row in rows) else [])]


def _summary(
    rows: Sequence[Row],
    split: str,
    reference: Sequence[float],
    tight: Sequence[float] | None,
    baselines: Mapping[str, list[float] | None],
    union: RowUnion,
) -> Summary:
    """Summarize one method on a split; the ranking split decides which model is best."""
    ideal = is_ideal(rows[0])
    best = [best_losses(row, split) for row in rows]
    fronts = (
        [[point] if point else [] for point in best] if ideal else [finite_points(row["losses"][split]) for row in rows]
    )
    placed = [row for row in rows if row["split"] == split]  # regions are those of training: there is one number
    angles = [[angle for angle in row.get("angles") or [] if angle is not None] for row in placed]
    return Summary(
        method=rows[0]["method"],
        models=rows[0]["preferences"],
        hypervolumes=tuple(points_hypervolume(points, reference, ideal=False) for points in fronts),
        ideal=ideal,
        spread=statistics.fmean(row["spread"][split] for row in rows),
        best=[statistics.fmean(column) for column in zip(*filter(None, best), strict=True)]
        or [math.nan] * len(reference),
        nondominated=statistics.fmean(row["nondominated"][split] for row in rows),
        seconds=statistics.fmean(row["seconds"] for row in rows),
        split=split,
        tight_hypervolumes=()
        if tight is None
        else tuple(points_hypervolume(points, tight, ideal=False) for points in fronts),
        box_share=None if ideal else _mean(points_box_share(points, reference) for points in fronts),
        in_region=_mean(hits / row["preferences"] for row in placed if (hits := row.get("in_region")) is not None),
        median_angle=_mean(statistics.median(each) for each in angles if each),
        largest_angle=max((max(each) for each in angles if each), default=None),
        delta_m=None if ideal else _mean(best_delta_m(row, split, baselines) for row in rows),
        regrets=() if ideal else union.regrets(rows),
        r2_values=() if ideal else union.r2_values(rows),
        igd_plus_values=() if ideal else union.igd_plus_values(rows),
    )


def _mean(values: Iterable[float]) -> float | None:
    """The mean of the values that are known; None without any."""
    known = [value for value in values if math.isfinite(value)]
    return statistics.fmean(known) if known else None


def _mean_and_deviation(values: Sequence[float]) -> tuple[float, float] | None:
    """Mean and standard deviation over seeds, which is NaN for one seed and for infinite values; None without any."""
    if not values:
        return None
    return statistics.fmean(values), deviation(values) if all(map(math.isfinite, values)) else math.nan


def verdict(summaries: Sequence[Summary]) -> str:
    """Say in plain words which method is best here, and whether these seeds are enough to tell.

    Two methods differ if seeds alone would move their mean hypervolumes that far apart only once in twenty, by
    :func:`~paretomtl._support.significance.difference`, as in a diagnosis. Methods that cannot be told apart need not
    be equal: more seeds may separate them. Separate networks for each task are not a front, and are left out. The same
    is then said of the hypervolume at the tight reference, of regret, R2 and IGD+ on test if there is such a split, and
    how the best models compare with separate networks.
    """
    fronts = [summary for summary in summaries if not summary.ideal]
    if len(fronts) < 2:
        return "There is nothing to compare."
    first, others = fronts[0], fronts[1:]
    same = [other.method for other in others if _is_same(first, other)]
    others = [other for other in others if other.method not in same]
    fronts = [first, *others]
    alike_text = f"{join_names([first.method, *same])} ended with the same losses in all seeds."
    if not others:
        return alike_text + _against_separate(first)
    if first.seeds < 2:
        start = f"{alike_text} " if same else ""
        second = others[0].hypervolume[0]
        gap = f", {100 * (first.hypervolume[0] / second - 1):.1f} % above {others[0].method}" if second else ""
        return (
            f"{start}{first.method} has the largest hypervolume on {split_word(first.split)}{gap}. One seed cannot "
            f"tell whether that is luck: compare with more of them.{_at_tight_reference(fronts)}"
            f"{_against_union(fronts)}{_against_separate(first)}"
        )
    signs = {other.method: difference(first.hypervolumes, other.hypervolumes).sign for other in others}
    alike = [method for method, sign in signs.items() if not sign]
    worse = [method for method, sign in signs.items() if sign]
    text = f"{first.method} has the largest mean hypervolume on {split_word(first.split)}."
    if same:
        text = f"{alike_text} They have the largest mean hypervolume on {split_word(first.split)}."
    if alike:
        it = "them" if same else "it"
        text += f" {join_names(alike)} cannot be told apart from {it} with {first.seeds} seeds."
    if worse:
        verb = "is" if len(worse) == 1 else "are"
        text += f" {join_names(worse)} {verb} behind by more than seeds explain (once in twenty, Welch's test)."
    return text + _at_tight_reference(fronts) + _against_union(fronts) + _against_separate(first)


def _is_same(one: Summary, other: Summary) -> bool:
    """Whether two methods have equal numbers, as "auto" and the method that it chose do."""
    if not all(map(math.isfinite, one.best)):
        return False
    fields = ("hypervolumes", "tight_hypervolumes", "regrets", "r2_values", "igd_plus_values", "best", "spread")
    return all(getattr(one, name) == getattr(other, name) for name in fields)


def _at_tight_reference(fronts: Sequence[Summary]) -> str:
    """A sentence on who leads at the tight reference; empty if it is unknown."""
    known = [each for each in fronts if each.tight_hypervolume is not None]
    if len(known) < len(fronts):
        return ""
    best = max(known, key=lambda each: statistics.fmean(each.tight_hypervolumes))
    first = fronts[0]
    if best is first:
        if not max(first.tight_hypervolumes) > 0:
            return ""
        if not _leads(first.tight_hypervolumes, [each.tight_hypervolumes for each in known[1:]]):
            return f" No method can be told apart from {first.method} at the tight reference."
        return f" {first.method} leads at the tight reference, too."
    told = _told_apart(best.tight_hypervolumes, first.tight_hypervolumes)
    end = "by more than seeds explain" if told else "but they cannot be told apart there"
    return f" At the tight reference, {best.method} is ahead of {first.method}, {end}."


def _against_union(fronts: Sequence[Summary]) -> str:
    """A sentence for each method that leads by regret, R2 or IGD+, on test if it is known; empty without these."""
    parts = [each.test or each for each in fronts]
    first, split = fronts[0].method, parts[0].split
    led: dict[str, list[str]] = {}
    for name, values in (
        ("regret", [part.regrets for part in parts]),
        ("R2", [part.r2_values for part in parts]),
        ("IGD+", [part.igd_plus_values for part in parts]),
    ):
        if not all(values):
            continue
        leader = min(range(len(parts)), key=[statistics.fmean(each) for each in values].__getitem__)
        told = _told_apart(values[leader], values[0])
        end = "by more than seeds explain" if told else "but they cannot be told apart there"
        sentence = f" By {{}} on {split_word(split)}, {parts[leader].method} is ahead of {first}, {end}."
        if not leader:
            leads = _leads(values[0], values[1:])
            sentence = f" {first} leads by {{}} on {split_word(split)}, too."
            sentence = (
                sentence if leads else f" No method can be told apart from {first} by {{}} on {split_word(split)}."
            )
        led.setdefault(sentence, []).append(name)
    return "".join(sentence.format(join_names(names)) for sentence, names in led.items())


def _leads(first: Sequence[float], others: Sequence[Sequence[float]]) -> bool:
    """Whether the first set of numbers differs from some other one by more than seeds explain; one seed cannot tell.

    It does from one with a seed that diverged, if none of its own did.
    """
    finite = all(map(math.isfinite, first))
    diverged = any(not all(map(math.isfinite, other)) for other in others)
    return len(first) < 2 or (finite and diverged) or any(_told_apart(first, other) for other in others)


def _told_apart(one: Sequence[float], other: Sequence[float]) -> bool:
    """Whether two sets of numbers, one for each seed, differ by more than seeds explain."""
    if min(len(one), len(other)) < 2 or not all(map(math.isfinite, (*one, *other))):
        return False
    return difference(one, other).significant


def _against_separate(first: Summary) -> str:
    """A sentence on the best models of the leading method and separate networks; empty without these."""
    if first.delta_m is None:
        return ""
    word = "worse" if first.delta_m > 0 else "better"
    text = f" The best model of {first.method} is {abs(first.delta_m):.1f} % {word} than separate networks"
    return f"{text} (Δm on {split_word(first.split)})."
