"""Claims on trade-offs and on balanced tasks, shared by several studies."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from paretomtl._support.significance import Difference, difference, mean
from paretomtl.compare import Row
from paretomtl.core import nondominated
from paretomtl.paper.claims import Claim, judge, measured_claim
from paretomtl.paper.number_text import plus_minus, starred
from paretomtl.paper.real_data.tables import AS_THEY_ARE, TABLE_METRICS, in_own_region, region_shares, scaled_rows
from paretomtl.paper.rows import column, favouring, has, pick

MOST = 0.8
"""The share of all solutions that counts as nearly all."""
_BALANCED = ("gradnorm", "uncertainty")  # the methods with which the paper would balance tasks
AHEAD = (
    "{} of the vector that favours a task, better by how much than the mean of the others (* more than seeds explain)"
)
"""The measurement behind :func:`trade_offs`, for a loss or a metric."""


def trade_offs(rows: Sequence[Row]) -> tuple[str, list[bool], bool]:
    """For each task, whether the vector that favours it is ahead of the others; whether few solutions are dominated.

    Solutions are judged by the metrics of the paper's tables, or else by losses. The first result describes both.
    """
    tables = [_lower(row) for row in rows]
    measured, ahead = [], []
    for task, name in enumerate(rows[0]["tasks"]):
        first = [favouring(row, task) for row in rows]  # vectors may differ between seeds
        own = [table[best][task] for best, table in zip(first, tables, strict=True)]
        others = [
            mean([point[task] for k, point in enumerate(table) if k != best])
            for best, table in zip(first, tables, strict=True)
        ]
        gap = difference(others, own)
        measured.append(f"{name} {starred(gap, 4)}")
        ahead.append(gap.sign > 0)
    count = len(tables[0])
    kept = mean([float(nondominated(torch.tensor(table, dtype=torch.float64)).sum()) for table in tables])
    return f"{', '.join(measured)}, not dominated {kept:.1f} of {count}", ahead, kept > MOST * count


def _lower(row: Row) -> list[list[float]]:
    """A value for each solution and task, where lower is better."""
    metrics = TABLE_METRICS.get(row["problem"])
    if metrics is None:
        return [[math.nan if value is None else value for value in point] for point in row["losses"]]
    signs = [1.0 if row["better"][metric] == "lower" else -1.0 for metric in metrics]
    columns = [
        [math.nan if value is None else sign * value for value in row["metrics"][metric]]
        for metric, sign in zip(metrics, signs, strict=True)
    ]
    return [list(point) for point in zip(*columns, strict=True)]


def judge_balanced(rows: Sequence[Row], base: str, where: str) -> Claim:
    """The claim that tasks should be balanced by another method first, judged for one network."""
    scaled = scaled_rows(rows, base)
    there = [scale for scale in _BALANCED if scale in scaled and has(rows, note=base, method="pareto-mtl")]
    measured, wins, gains = [], [], []
    for scale in there:
        mine, plain = scaled[scale], pick(rows, note=base, method="pareto-mtl")
        texts = []
        for what, digits in (("hypervolume", 4), ("spread", 3)):
            ours, theirs = column(mine, what), column(plain, what)
            gap = difference(ours, theirs)
            texts.append(
                f"{what} {plus_minus(ours, digits)} against {plus_minus(theirs, digits)}, {_more_or_less(gap)}"
            )
            gains.append(gap.sign > 0)
            wins += gains[-1:] if what == "hypervolume" else []
        (shares, test), (plainly, plain_test) = region_shares(mine), region_shares(plain)
        gap = difference(*(in_own_region(each, "in_region") for each in (mine, plain)))
        gains.append(gap.sign > 0)
        texts.append(
            f"in their own region {shares:.0%} / {test:.0%} against {plainly:.0%} / {plain_test:.0%}, "
            f"{_more_or_less(gap)}"
        )
        measured.append(f"by {scale}: {', '.join(texts)}")
    return measured_claim(
        where,
        "tasks of different scales: let GradNorm or Uncertainty balance them first, and Pareto MTL spread after",
        f"beside losses {AS_THEY_ARE}, on test, regions on training / test (* more than seeds explain)",
        measured,
        judge(bool(wins) and all(wins), any(gains)),
        whole=len(there) == len(_BALANCED),
    )


def _more_or_less(gap: Difference) -> str:
    return {1: "more*", -1: "less*"}.get(gap.sign, "not told apart")
