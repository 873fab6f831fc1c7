"""Indicators of stored rows, filled in later if moocore is installed: machines that train models need not have it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from paretomtl._support.imports.optional_packages import require
from paretomtl.compare.row_store import Row
from paretomtl.compare.rows import finite_points, is_ideal
from paretomtl.front.indicators import hypervolume, spread


def error_points(row: Mapping[str, Any]) -> list[list[float]]:
    """The error rates of a row's solutions: one minus the accuracy of each task."""
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
