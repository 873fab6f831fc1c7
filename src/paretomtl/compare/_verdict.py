"""The verdict of a comparison: a summary of each method, and which methods differ by more than seeds explain."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from paretomtl._support.significance import behind, deviation
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
        seed_numbers: the seeds, in the order of all values; empty if they are unknown.
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
    seed_numbers: tuple[int, ...] = ()

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
        seed_numbers=tuple(row["seed"] for row in rows),
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

    A method is behind by :func:`~paretomtl._support.significance.behind`: in all comparisons of the leader together,
    seeds alone would name somebody only once in twenty, whichever method leads. Methods that cannot be told apart need
    not be equal: more seeds may separate them. Separate networks for each task are not a front, and are left out. If
    hypervolumes differ, the same is then said of the hypervolume at the tight reference, of regret, R2 and IGD+ on test
    if there is such a split, each of them for itself. The last sentence is on separate networks.
    """
    fronts = sorted((each for each in summaries if not each.ideal), key=lambda each: -each.hypervolume[0])
    if len(fronts) < 2:
        return "There is nothing to compare."
    first, others = fronts[0], fronts[1:]
    same = [other.method for other in others if _is_same(first, other)]
    fronts = [each for each in fronts if each.method not in same]
    start = f"{join_names([first.method, *same])} ended with the same losses in all seeds." if same else ""
    if len(fronts) < 2:
        return start + _against_separate(first)
    runs = [(each.method, _by_seed(each, each.hypervolumes)) for each in fronts]
    text, told = best_hypervolume(runs, split_word(first.split))
    return (
        f"{start} {text}".strip()
        + _at_tight_reference(fronts, told)
        + _against_union(fronts, told)
        + _against_separate(first)
    )


def best_hypervolume(runs: Sequence[tuple[str, Mapping[Any, float]]], split: str) -> tuple[str, bool]:
    """Say which of several names has the largest mean hypervolume, and whether any other is behind.

    Args:
        runs: names with their hypervolumes by seed.
        split: in words.
    """
    ranked = sorted(runs, key=lambda run: -statistics.fmean(run[1].values()))
    (first, volumes), others = ranked[0], ranked[1:]
    means = [statistics.fmean(each.values()) for _, each in ranked[:2]]
    more = 100 * (means[0] / means[1] - 1) if means[1] > 0 else math.nan
    ahead = f", {more:.2g} % above {others[0][0]}" if more < 99 else ""
    ahead = f", and so has {others[0][0]}" if means[0] == means[1] else ahead
    if len(volumes) < 2 or max(len(each) for _, each in others) < 2:
        text = f"{first} has the largest hypervolume on {split}{ahead}. One run each cannot tell whether that is luck"
        return f"{text}: compare several seeds.", False
    worse = behind(volumes, [each for _, each in others])
    alike, less = ([others[i][0] for i, low in enumerate(worse) if low is kind] for kind in (False, True))
    text = f"{first} has the largest mean hypervolume on {split}{ahead}."
    if alike:
        text += f" {join_names(alike)} cannot be told apart from it with {len(volumes)} seeds."
    if less:
        verb = "is" if len(less) == 1 else "are"
        text += f" {join_names(less)} {verb} behind by more than seeds explain (once in twenty)."
    return text, any(worse)


def _by_seed(summary: Summary, values: Sequence[float]) -> dict[int, float]:
    """The values by seed; by place, if seeds are unknown."""
    return dict(zip(summary.seed_numbers or range(len(values)), values, strict=True))


def _is_same(one: Summary, other: Summary) -> bool:
    """Whether two methods have equal numbers, as "auto" and the method that it chose do."""
    if not all(map(math.isfinite, one.best)):
        return False
    fields = ("hypervolumes", "tight_hypervolumes", "regrets", "r2_values", "igd_plus_values", "best", "spread")
    return all(getattr(one, name) == getattr(other, name) for name in fields)


def _at_tight_reference(fronts: Sequence[Summary], told: bool) -> str:
    """A sentence on who leads at the tight reference; empty if it is unknown."""
    values = [each.tight_hypervolumes for each in fronts]
    if not all(values) or not max(map(max, values)) > 0:
        return ""
    return _who_leads(fronts, values, "at the tight reference", told)


def _against_union(fronts: Sequence[Summary], told: bool) -> str:
    """A sentence for each method that leads by regret, R2 or IGD+, on test if it is known; empty without these."""
    parts = [each.test or each for each in fronts]
    led: dict[str, list[str]] = {}
    for name, values in (
        ("regret", [part.regrets for part in parts]),
        ("R2", [part.r2_values for part in parts]),
        ("IGD+", [part.igd_plus_values for part in parts]),
    ):
        if all(values):
            losses = [[-value for value in each] for each in values]
            sentence = _who_leads(parts, losses, f"by {{}} on {split_word(parts[0].split)}", told)
            led.setdefault(sentence, []).append(name)
    return "".join(sentence.format(join_names(names)) for sentence, names in led.items())


def _who_leads(fronts: Sequence[Summary], values: Sequence[Sequence[float]], where: str, told: bool) -> str:
    """A sentence on who leads by values of which more is better; it needs hypervolumes that differ."""
    first = fronts[0].method
    leader = max(range(len(fronts)), key=[statistics.fmean(each) for each in values].__getitem__)
    sets = [_by_seed(each, of) for each, of in zip(fronts, values, strict=True)]
    others = [i for i in range(len(fronts)) if i != leader]
    worse = behind(sets[leader], [sets[i] for i in others])
    if leader:
        end = "by more than seeds explain" if told and worse[0] else "but they cannot be told apart there"
        return f" {where[0].upper()}{where[1:]}, {fronts[leader].method} is ahead of {first}, {end}."
    if told and any(worse):
        return f" {first} leads {where}, too."
    return f" No method can be told apart from {first} {where}."


def _against_separate(first: Summary) -> str:
    """A sentence on the best models of the leading method and separate networks; empty without these."""
    if first.delta_m is None:
        return ""
    word = "worse" if first.delta_m > 0 else "better"
    text = f" The best model of {first.method} is {abs(first.delta_m):.1f} % {word} than separate networks"
    return f"{text} (Δm on {split_word(first.split)})."
