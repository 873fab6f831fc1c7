"""Choosing one of several solutions, with the reason in words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import torch
from torch import Tensor

from paretomtl.core import nondominated

Wish: TypeAlias = Sequence[float] | Mapping[str, float]
"""One number per task, in their order or by name."""


@dataclass(frozen=True)
class Choice:
    """What was chosen, and why.

    Attributes:
        k: the subproblem; None where no solution fits.
        reason: a sentence.
        losses: of the chosen solution, by task.
        metrics: of the chosen solution, by name.
    """

    k: int | None
    reason: str
    losses: Mapping[str, float] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Table:
    """What there is to choose from: losses ``[K, m]`` and metrics ``[K]`` of one split."""

    split: str
    tasks: Sequence[str]
    subproblems: Sequence[int]
    losses: Tensor
    metrics: Mapping[str, Tensor]
    better: Mapping[str, str]

    def candidates(self) -> list[int]:
        """The rows with finite losses that no other row dominates."""
        finite = self.losses.isfinite().all(-1)
        kept = nondominated(torch.where(finite[:, None], self.losses, torch.inf)) & finite
        return [row for row, wanted in enumerate(kept.tolist()) if wanted]

    def choose(self, row: int, reason: str) -> Choice:
        """The choice of a row."""
        return Choice(
            self.subproblems[row],
            f"Subproblem {self.subproblems[row]}: {reason}",
            dict(zip(self.tasks, self.losses[row].tolist(), strict=True)),
            {name: float(values[row]) for name, values in self.metrics.items()},
        )

    def column(self, name: str) -> tuple[Tensor, bool]:
        """The values of a task's loss or a metric, and whether higher ones are better."""
        if name in self.tasks:
            return self.losses[:, list(self.tasks).index(name)], False
        if name in self.metrics:
            return self.metrics[name], self.better.get(name) != "lower"
        known = [*self.tasks, *self.metrics]
        raise ValueError(
            f"'bounds' and 'best' must name one of {known}, measured on '{self.split}'. Got {name!r} instead."
        )


def angles(losses: Tensor, directions: Tensor) -> Tensor:
    """The angle between rows in degrees; NaN where a row is zero."""
    u, v = (rows.double() / rows.double().norm(dim=-1, keepdim=True) for rows in (losses, directions))
    return torch.rad2deg(2.0 * torch.atan2((u - v).norm(dim=-1), (u + v).norm(dim=-1)))


def by_direction(table: Table, scaled: Tensor, direction: Wish) -> Choice:
    """The loss vector nearest to a direction."""
    wanted = _row_of("direction", direction, table.tasks)
    distance = angles(scaled, wanted)
    rows = sorted(
        (row for row in table.candidates() if not distance[row].isnan()), key=lambda row: float(distance[row])
    )
    if not rows:
        return _nothing(table)
    second = f"; the next is subproblem {table.subproblems[rows[1]]} at {distance[rows[1]]:.1f}°" if rows[1:] else ""
    return table.choose(
        rows[0],
        f"its losses on {table.split} are {distance[rows[0]]:.1f}° from the direction {_shown(wanted)}{second}.",
    )


def by_importance(table: Table, importance: Wish) -> Choice:
    """The least weighted sum of losses."""
    share = _row_of("importance", importance, table.tasks)
    sums = table.losses @ (share / share.sum())
    rows = sorted(table.candidates(), key=lambda row: float(sums[row]))
    if not rows:
        return _nothing(table)
    second = f"; the next is subproblem {table.subproblems[rows[1]]} with {sums[rows[1]]:.4g}" if rows[1:] else ""
    return table.choose(
        rows[0],
        f"the least mean of the losses on {table.split} weighted by {_shown(share)}, {sums[rows[0]]:.4g}{second}.",
    )


def knee(table: Table) -> Choice:
    """The solution farthest below the chord, or the hyperplane, through the best solution of each task."""
    rows = table.candidates()
    if not rows:
        return _nothing(table)
    losses = table.losses[rows]
    low, high = losses.amin(0), losses.amax(0)
    unit = (losses - low) / torch.where(high > low, high - low, 1.0)
    ends = unit[losses.argmin(0)]
    tasks = len(table.tasks)
    if len({tuple(end) for end in ends.tolist()}) < tasks or torch.linalg.matrix_rank(ends) < tasks:
        return Choice(None, f"No knee: the best solutions of the tasks on {table.split} span no chord.")
    normal = torch.linalg.solve(ends, torch.ones(tasks, dtype=torch.float64))
    if not bool((normal > 0).all()):
        said = "the plane through the best of each task is tilted so that below it is not better"
        return Choice(None, f"No knee: {said} on {table.split}. Choose by direction, importance or bounds.")
    below = (1.0 - unit @ normal) / normal.norm()
    best = int(below.argmax())
    if float(below[best]) <= 1e-9:
        return Choice(
            None,
            f"No knee: no solution on {table.split} lies below the chord through the best of each task. The front is "
            "concave or straight; choose by direction, importance or bounds.",
        )
    return table.choose(
        rows[best],
        f"it lies farthest below the chord through the best of each task on {table.split}, by {below[best]:.3g} of "
        "losses scaled to the range of the front.",
    )


def within_bounds(table: Table, bounds: Mapping[str, float], best: str | None) -> Choice:
    """The best by one name among the solutions that keep all bounds."""
    if best is None:
        raise ValueError("'best' must name the task or metric to choose by within the bounds. Got None instead.")
    fits = torch.ones(len(table.losses), dtype=torch.bool)
    for name, bound in bounds.items():
        if not isinstance(bound, (int, float)):
            raise TypeError(f"'bounds' must be numbers. Got {bound!r} for {name!r} instead.")
        values, higher = table.column(name)
        fits = fits & (values >= bound if higher else values <= bound)
    said = " and ".join(
        f"{name} at {'least' if table.column(name)[1] else 'most'} {bound:g}" for name, bound in bounds.items()
    )
    if not bool(fits.any()):
        nearest = "; ".join(_nearest(table, name) for name in bounds)
        return Choice(None, f"No solution on {table.split} has {said}. Best found: {nearest}.")
    values, higher = table.column(best)
    usable = fits & ~values.isnan()
    if not bool(usable.any()):
        return Choice(None, f"No solution on {table.split} with {said} has a known {best}.")
    signed = torch.where(usable, -values if higher else values, torch.inf)
    row = int(signed.argmin())
    return table.choose(
        row,
        f"of {int(fits.sum())} solutions with {said or 'no bounds'} on {table.split}, it has the best {best}, "
        f"{float(values[row]):.4g}.",
    )


def _nearest(table: Table, name: str) -> str:
    values, higher = table.column(name)
    known = torch.where(values.isfinite(), values, -torch.inf if higher else torch.inf)
    row = int(known.argmax() if higher else known.argmin())
    return f"{name} {float(values[row]):.4g} (subproblem {table.subproblems[row]})"


def _nothing(table: Table) -> Choice:
    return Choice(None, f"No solution has finite losses on {table.split}.")


def _row_of(name: str, row: Wish, tasks: Sequence[str]) -> Tensor:
    if isinstance(row, Mapping):
        strangers = [task for task in row if task not in tasks]
        if strangers:
            raise ValueError(f"'{name}' must name tasks of {list(tasks)}. Got {strangers[0]!r} instead.")
        row = [row.get(task, 0.0) for task in tasks]
    values = [float(value) for value in row]
    if len(values) != len(tasks) or not all(math.isfinite(v) and v >= 0 for v in values) or not any(values):
        raise ValueError(
            f"'{name}' must be {len(tasks)} numbers, not negative and not all zero. Got {list(row)} instead."
        )
    return torch.tensor(values, dtype=torch.float64)


def _shown(row: Tensor) -> str:
    return "(" + ", ".join(f"{value:g}" for value in row.tolist()) + ")"
