"""Indicators of stored rows, computed from their losses.

Machines that train models need not have moocore, and a tight reference depends on all rows, which may become more.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from paretomtl._support.imports.optional_packages import require
from paretomtl.compare.row_store import Row
from paretomtl.compare.rows import best_losses, finite_points, is_finite, is_ideal, points_tensor
from paretomtl.front.indicators import box_share, delta_m, hypervolume, spread, takes_long, tight_reference


def error_points(row: Mapping[str, Any]) -> list[list[float]]:
    """The error rates of a row's models: one minus the accuracy of each task."""
    columns = [row["metrics"][f"{task} accuracy"] for task in row["tasks"]]
    return [[1.0 - value for value in point] for point in zip(*columns, strict=True) if None not in point]


def points_hypervolume(points: Sequence[Sequence[float]], reference: Sequence[float], *, ideal: bool) -> float:
    """The hypervolume of points; with ``ideal``, of the one point made of their best values (separate networks)."""
    if not points:
        return 0.0
    if ideal:
        points = [[min(column) for column in zip(*points, strict=True)]]
    return hypervolume(torch.tensor(points, dtype=torch.float64), reference)


def within(points: Sequence[Sequence[float]], reference: Sequence[float]) -> list[Sequence[float]]:
    """The points that are better than the reference in all tasks: only these add to a hypervolume."""
    return [point for point in points if all(a < b for a, b in zip(point, reference, strict=True))]


def spread_within(points: Sequence[Sequence[float]], reference: Sequence[float]) -> float:
    """The spread of the points that are better than the reference: the diagonal of the box of the nondominated ones.

    A model that was not trained for a task can have any loss there, however large. Such a point would make a front look
    spread.
    """
    near = within(points, reference)
    return spread(torch.tensor(near, dtype=torch.float64)) if near else 0.0


def tight_point(rows: Sequence[Row], split: str, reference: Sequence[float]) -> list[float] | None:
    """The tight reference of all rows together on a split, within a looser one; None without finite losses.

    Separate networks do not count: they are not a front, and their losses in tasks of others can be anything.
    """
    union = [points for row in rows if not is_ideal(row) if len(points := points_tensor(row, split))]
    return tight_reference(torch.cat(union), reference) if union else None


def points_box_share(points: Sequence[Sequence[float]], reference: Sequence[float]) -> float:
    """The share of the box of points; NaN if the box is empty, or the hypervolume would take more than seconds."""
    losses = torch.tensor(points, dtype=torch.float64).reshape(-1, len(reference))
    return math.nan if takes_long(losses) else box_share(losses, reference)


def separate_losses(rows: Sequence[Row], split: str) -> list[float] | None:
    """The loss of each task in its own network, the mean over seeds; None if no row holds separate networks.

    None, too, if one of these losses is not positive: nothing is relative to it.
    """
    ideal = [row for row in rows if is_ideal(row)]
    own = [point for row in ideal if is_finite(point := _own_losses(row, split)) and point]
    means = [statistics.fmean(column) for column in zip(*own, strict=True)]
    return means if means and min(means) > 0 else None


def _own_losses(row: Row, split: str) -> list[float]:
    """The loss of each task in the network that was trained for it; rows of earlier versions: in the best network."""
    vectors, losses = row.get("vectors"), row["losses"][split]
    tasks = range(len(losses[0]))
    owners = [[k for k, vector in enumerate(vectors or []) if vector[i] > 0] for i in tasks]
    if any(len(each) != 1 for each in owners) or len(vectors or []) != len(losses):
        return best_losses(row, split)
    return [losses[owner][i] for i, (owner,) in enumerate(owners)]


def best_delta_m(row: Row, split: str, baselines: Mapping[str, list[float] | None]) -> float:
    """Δm on a split of the model whose Δm on the ranking split is lowest; NaN if there is none.

    Args:
        row: the row of a front.
        split: the split to measure on.
        baselines: by split, the losses of separate networks.
    """
    ranking, base = baselines[row["split"]], baselines[split]
    pairs = list(zip(row["losses"][row["split"]], row["losses"][split], strict=True))
    known = [pair for pair in pairs if is_finite(pair[0]) and is_finite(pair[1])]
    if ranking is None or base is None or not known:
        return math.nan
    lower = torch.zeros(len(base), dtype=torch.bool)
    first, second = (
        delta_m(torch.tensor([pair[i] for pair in known], dtype=torch.float64), torch.tensor(against).double(), lower)
        for i, against in enumerate((ranking, base))
    )
    return float(second[first.argmin()])


def fill_indicators(rows: Sequence[Row]) -> list[Row]:
    """Fill in hypervolumes that are still None, if moocore is installed."""
    try:
        require("moocore", "indicators")
    except ModuleNotFoundError:
        return list(rows)
    filled = []
    for row in rows:
        copy = dict(row)
        if copy.get("hypervolume", 0.0) is None:
            value = points_hypervolume(finite_points(row["losses"]), row["reference"], ideal=is_ideal(row))
            copy["hypervolume"] = round(value, 5)
        if copy.get("error_hypervolume", 0.0) is None:
            ones = [1.0] * len(row["tasks"])
            copy["error_hypervolume"] = round(points_hypervolume(error_points(row), ones, ideal=is_ideal(row)), 5)
        filled.append(copy)
    return filled
