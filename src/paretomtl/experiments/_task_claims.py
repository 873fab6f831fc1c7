"""What the rows of census, faces, localization and three digits say about the paper's claims."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from paretomtl.experiments._image_claims import LABELS
from paretomtl.experiments._indicators import finite_points
from paretomtl.experiments._statistics import column, difference, has, mean, pick, plus_minus
from paretomtl.experiments._store import Row
from paretomtl.experiments._study import Claim, judge, measured_claim
from paretomtl.experiments._task_lines import (
    AS_THEY_ARE,
    SHOWN,
    CellLine,
    cell_lines,
    metrics_of,
    region_shares,
    scale_lines,
    scaled_notes,
    vector_lines,
)
from paretomtl.experiments._task_studies import EXPERTS, SHARED

EVEN = "25 even"
"""The note of the cell of census that those with scaled losses are set beside."""

_MUCH = 0.01  # of a hypervolume, to be called "much better"
_BALANCED = ("gradnorm", "uncertainty")  # the methods that the paper would balance tasks by


def census_claims(rows: Sequence[Row]) -> list[Claim]:
    """Supplement, sections 2.1 and 3."""
    found = [claim for part in (SHARED, EXPERTS) for claim in (_more_vectors(rows, part), _dominates(rows, part))]
    return [*found, _balance_first(rows, EVEN)]


def _more_vectors(rows: Sequence[Row], part: str) -> Claim:
    said, holds, partly = [], False, False
    if all(has(rows, part=part, note=name) for name in ("5 random", "25 random")):
        few, many = (column(pick(rows, part=part, note=f"{n} random"), "hypervolume") for n in (5, 25))
        gap, sure = difference(many, few)
        said = [f"{plus_minus(few, 4)} with 5, {plus_minus(many, 4)} with 25"]
        holds, partly = sure and gap >= _MUCH * mean(few), sure and gap > 0
    return measured_claim(
        f"supplement 2.1, figure 8a; {part}",
        "25 preference vectors represent the trade-offs of three tasks much better than 5",
        "hypervolume of the test losses",
        said,
        judge(holds, partly),
    )


def _dominates(rows: Sequence[Row], part: str) -> Claim:
    said, ours, theirs = [], 0.0, 0.0
    if has(rows, part=part, note="25 random") and has(rows, part=part, method="random-search"):
        pareto, random = pick(rows, part=part, note="25 random"), pick(rows, part=part, method="random-search")
        ours, theirs = _dominated(random, pareto), _dominated(pareto, random)
        volumes = [plus_minus(column(each, "hypervolume"), 4) for each in (random, pareto)]
        said = [
            f"{ours:.0%} of random search by Pareto MTL, {theirs:.0%} of Pareto MTL by random search",
            f"hypervolume {volumes[0]} of random search, {volumes[1]} of Pareto MTL",
        ]
    return measured_claim(
        f"supplement 2.1, figure 8b; {part}",
        "25 solutions of Pareto MTL dominate nearly all of as many random weights",
        "solutions dominated, by test losses",
        said,
        judge(ours > 0.8, ours > theirs),
    )


def _dominated(rows: Sequence[Row], others: Sequence[Row]) -> float:
    """The share of solutions that one of the other rows' dominates, of the same seed; the mean over seeds."""
    points, rivals = ({row["seed"]: finite_points(row) for row in each} for each in (rows, others))
    return mean([dominated_share(points[seed], rivals[seed]) for seed in sorted(points.keys() & rivals.keys())])


def dominated_share(points: Sequence[Sequence[float]], others: Sequence[Sequence[float]]) -> float:
    """The share of points that one of the others dominates: nowhere worse, and somewhere better. NaN of no points."""
    if not (points and others):
        return 0.0 if points else math.nan
    mine, theirs = (torch.tensor(rows, dtype=torch.float64) for rows in (points, others))
    no_worse = (theirs[None] <= mine[:, None]).all(-1)
    better = (theirs[None] < mine[:, None]).any(-1)
    return float((no_worse & better).any(-1).double().mean())


def table_claims(rows: Sequence[Row]) -> list[Claim]:
    """Table 1 and the supplement's table: for each task, the vector that favours it gives the best value."""
    notes = dict.fromkeys(row["note"] for row in rows if row["method"] == "pareto-mtl")
    return [*(_favoured(rows, note) for note in notes), _balance_first(rows, "")]


def _favoured(rows: Sequence[Row], note: str) -> Claim:
    mine = pick(rows, method="pareto-mtl", note=note)
    problem, tasks = mine[0]["problem"], mine[0]["tasks"]
    said, hits = [], []
    for i, metric in enumerate(SHOWN[problem]):
        means = [_mean(values) for values in zip(*(row["metrics"][metric] for row in mine), strict=True)]
        known = [value for value in means if not math.isnan(value)]
        best = (min if mine[0]["better"][metric] == "lower" else max)(known, default=math.nan)
        favoured = min(range(len(means)), key=lambda k: mine[0]["vectors"][k][i])  # the smallest share of loss i
        hits.append(means[favoured] == best)
        said.append(f"{tasks[i]}: {metric} {means[favoured]:.4g}, best of all vectors {best:.4g}")
    return measured_claim(
        "section 6.2, figure 4" if problem == "localization" else "supplement 2.2, table 1",
        "for each task the vector that favours it has the best value" + (f" ({note})" if note else ""),
        f"mean over {len(mine)} seeds on test",
        said,
        judge(all(hits), any(hits)),
    )


def _mean(values: Sequence[float | None]) -> float:
    return mean([math.nan if value is None else value for value in values])


def _balance_first(rows: Sequence[Row], base: str) -> Claim:
    """Whether tasks that another method balances first are spread better than losses as they are."""
    common = {"part": SHARED, "method": "pareto-mtl"}
    notes = scaled_notes(rows, base)
    there = [scale for scale in _BALANCED if scale in notes and has(rows, note=base, **common)]
    said, wins, gains = [], [], []
    for scale in there:
        mine, plain = pick(rows, note=notes[scale], **common), pick(rows, note=base, **common)
        texts, ups = [], []
        for what, digits in (("hypervolume", 4), ("spread", 3)):
            ours, theirs = column(mine, what), column(plain, what)
            gap, sure = difference(ours, theirs)
            texts.append(f"{what} {plus_minus(ours, digits)} against {plus_minus(theirs, digits)}")
            ups.append(gap > 0)
            wins += [gap > 0 and sure] if what == "hypervolume" else []
        shares, plainly = region_shares(mine), region_shares(plain)
        texts.append(
            f"in their own region {shares[0]:.0%} / {shares[1]:.0%} against {plainly[0]:.0%} / {plainly[1]:.0%}"
        )
        gains.append(any(ups) or shares[0] > plainly[0])
        said.append(f"by {scale}: {', '.join(texts)}")
    return measured_claim(
        "supplement 3",
        "tasks of different scales: let GradNorm or Uncertainty balance them first, and Pareto MTL spread after",
        f"beside losses {AS_THEY_ARE}, on test, regions on training / test",
        said,
        judge(bool(wins) and all(wins), any(gains)),
        whole=len(there) == len(_BALANCED),
    )


def census_facts(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """Every cell: hypervolume, spread, regions, time; then every way to scale the losses."""
    return _cells(rows) + _scales(rows, EVEN)


def digits_facts(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """Every cell, and what dominates what."""
    return _cells(rows) + dominance_facts(rows)


def dominance_facts(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """How much of random search and of a grid the same number of vectors dominates."""
    found = []
    for method in ("random-search", "linear"):
        if has(rows, note=EVEN) and has(rows, method=method):
            ours, theirs = pick(rows, note=EVEN), pick(rows, method=method)
            said = f"{_dominated(theirs, ours):.0%}, and {_dominated(ours, theirs):.0%} the other way round"
            found.append((f"solutions of {LABELS[method]} that as many of Pareto MTL dominate", said))
    return found


def table_facts(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """The paper's table as measured here, with the paper's own numbers; every cell; every way to scale the losses."""
    found = []
    metrics = metrics_of(rows[0]) if rows else ()
    for line in vector_lines(rows):
        here = ", ".join(f"{metric} {value}" for metric, value in zip(metrics, line.values, strict=True))
        paper = ", ".join(f"{value:g}" for value in line.paper)
        found.append((line.name, f"{here}; in the paper, on other data, {paper}" if paper else here))
    return found + _cells(rows) + _scales(rows, "")


def _cells(rows: Sequence[Row]) -> list[tuple[str, str]]:
    return [
        (f"{line.part}, {line.label}, {line.seeds} seed{'s' if line.seeds > 1 else ''}", _cell(line))
        for line in cell_lines(rows)
    ]


def _cell(line: CellLine) -> str:
    said = [f"hypervolume {line.hypervolume}"]
    said += [f"spread {line.spread}", f"not dominated {line.kept}"] if line.spread else ["of one ideal point"]
    said += ["in their own region {} on training and {} on test".format(*line.regions)] if any(line.regions) else []
    return ", ".join([*said, f"{line.seconds} s a front"])


def _scales(rows: Sequence[Row], base: str) -> list[tuple[str, str]]:
    """What scaled losses give beside losses as they are."""
    found = []
    for line in scale_lines(rows, base)[1:]:
        regions = "by losses as they are, in their own region {} on training and {} on test".format(*line.plain)
        found.append((f"scaled {line.losses}, beside losses {AS_THEY_ARE}", f"{line.verdict}; {regions}"))
    return found
