"""Dominance between solutions of Pareto MTL and the same number from random search or a grid."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import torch

from paretomtl._support.significance import difference, mean
from paretomtl.compare.row_indicators import points_hypervolume, within
from paretomtl.compare.row_store import Row
from paretomtl.compare.rows import finite_points
from paretomtl.core import dominates
from paretomtl.methods.registry import paper_label_of
from paretomtl.paper.number_text import starred
from paretomtl.paper.real_data.cells import EVEN, EXPERTS, SHARED
from paretomtl.paper.rows import column, has, pick

_MANY = ("25 random", "25 random, released", EVEN, f"{EVEN}, released")  # the same number as random search and the grid


def dominated(rows: Sequence[Row], others: Sequence[Row]) -> float:
    """The share of solutions that a solution of the other rows with the same seed dominates, mean over seeds."""
    points, rivals = ({row["seed"]: finite_points(row["losses"]) for row in each} for each in (rows, others))
    return mean([dominated_share(points[seed], rivals[seed]) for seed in sorted(points.keys() & rivals.keys())])


def dominated_share(points: Sequence[Sequence[float]], others: Sequence[Sequence[float]]) -> float:
    """The share of points that one of the others dominates: nowhere worse, and somewhere better. NaN without points."""
    if not (points and others):
        return 0.0 if points else math.nan
    own, other = (torch.tensor(rows, dtype=torch.float64) for rows in (points, others))
    return float(dominates(other[None], own[:, None]).any(-1).double().mean())


def dominance_facts(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """How many solutions of random search and of a grid the same number of vectors dominates, and what they add."""
    results = []
    for part, note, method in itertools.product((SHARED, EXPERTS), _MANY, ("random-search", "linear")):
        common = {"part": part, "method": method}
        if not (has(rows, part=part, note=note) and has(rows, **common)):
            continue
        ours, theirs = pick(rows, part=part, note=note), pick(rows, **common)
        gap = difference(column(ours, "hypervolume"), column(theirs, "hypervolume"))
        shares = f"{dominated(theirs, ours):.0%} of theirs are dominated, and {dominated(ours, theirs):.0%} of ours"
        counts = f"{_within(theirs):.1f} of theirs and {_within(ours):.1f} of ours are better than the reference"
        added = f"both together {_added(ours, theirs):.5f} more than theirs"
        what = f"{part}: solutions of Pareto MTL, {note}, beside as many of {paper_label_of(method)}, on test"
        results.append(
            (what, f"{shares}; {counts}; hypervolume {starred(gap, 5)} (* more than seeds explain), {added}")
        )
    return results


def _within(rows: Sequence[Row]) -> float:
    """How many solutions of a row count for its hypervolume, on average."""
    return mean([float(len(within(finite_points(row["losses"]), row["reference"]))) for row in rows])


def _added(rows: Sequence[Row], others: Sequence[Row]) -> float:
    """How much hypervolume these rows add to the others with the same seed, mean over seeds."""
    own, other = ({row["seed"]: row for row in each} for each in (rows, others))
    results = []
    for seed in sorted(own.keys() & other.keys()):
        both = [*finite_points(own[seed]["losses"]), *finite_points(other[seed]["losses"])]
        results.append(points_hypervolume(both, other[seed]["reference"], ideal=False) - other[seed]["hypervolume"])
    return mean(results)
