"""Mean test errors over seeds, for the figures of faces and localization."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from paretomtl._support.significance import mean
from paretomtl.compare import Row
from paretomtl.methods.registry import is_separate
from paretomtl.paper.real_data.tables import TABLE_METRICS
from paretomtl.paper.rows import pick_by_seed
from paretomtl.report.figures.layers import Quantity

_BASELINES = ("linear", "mgda", "gradnorm", "uncertainty")
ERRORS = Quantity("losses", "")
"""The quantity in rows from :func:`as_errors` and :func:`in_plane`; the names of tasks or axes say what it is."""


@dataclass(frozen=True)
class Summary:
    """The rows of a method, and their mean over seeds: a value of each metric for each solution."""

    method: str
    rows: Sequence[Row]
    means: Sequence[Sequence[float | None]]


def summarize(rows: Sequence[Row]) -> tuple[list[tuple[str, Summary | None]], list[Summary], list[Summary]]:
    """Pareto MTL for each way to scale the losses; the other methods; separate networks.

    If there are only other methods, one panel has no Pareto MTL.
    """
    notes = dict.fromkeys(["", *(row["note"] for row in rows if row["method"] == "pareto-mtl")])
    every = [(note, _summarize_method(rows, "pareto-mtl", note)) for note in notes]
    panels: list[tuple[str, Summary | None]] = [(note, mine) for note, mine in every if mine]
    baselines = [summary for method in _BASELINES if (summary := _summarize_method(rows, method))]
    alone = [summary for method in ("single-task",) if (summary := _summarize_method(rows, method))]
    if not panels and (baselines or alone):
        panels = [("", None)]
    return panels, baselines, alone


def _summarize_method(rows: Sequence[Row], method: str, note: str = "") -> Summary | None:
    mine = pick_by_seed(rows, method=method, note=note)
    if not mine:
        return None
    each = [_values(row) for row in mine]
    means = [[_mean([seed[k][i] for seed in each]) for i in range(len(point))] for k, point in enumerate(each[0])]
    return Summary(method, mine, means)


def _values(row: Row) -> list[list[float | None]]:
    """The metrics of the paper's table for each solution; separate networks count as one, each in its own task."""
    metrics = [row["metrics"][name] for name in TABLE_METRICS[row["problem"]]]
    if is_separate(row["method"]):
        return [[values[task] for task, values in enumerate(metrics)]]
    return [list(point) for point in zip(*metrics, strict=True)]


def _mean(values: Sequence[float | None]) -> float | None:
    summary = mean([value for value in values if value is not None])
    return None if math.isnan(summary) else summary


def as_errors(each: Summary) -> Row:
    """The means over seeds as errors, so that lower is better in every task: one minus an accuracy."""
    row = each.rows[0]
    names = TABLE_METRICS[row["problem"]]
    rising = [row["better"][name] == "higher" for name in names]
    points = [
        [1 - value if up and value is not None else value for value, up in zip(point, rising, strict=True)]
        for point in each.means
    ]
    common = {"tasks": [f"{task} error" for task in row["tasks"]], "reference": [math.inf] * len(names)}
    return {**row, **common, "reading": "", "losses": points}


def in_plane(each: Summary) -> list[Row]:
    """The mean and then the seeds, as rows for a scatter plot without rays and reference."""
    common = {"reading": "", "reference": [math.inf, math.inf]}
    means = {**each.rows[0], **common, "losses": [list(point) for point in each.means]}
    return [means, *({**row, **common, "losses": _values(row)} for row in each.rows)]


def scaling(note: str) -> str:
    """How the losses of a panel are scaled, in words."""
    return f"Losses {note or 'as they are'}"
