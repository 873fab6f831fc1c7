"""Choosing one of several solutions, with the reason in words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import torch
from torch import Tensor

from paretomtl._support.checks import as_numbers
from paretomtl._support.import_path import nearest
from paretomtl.core import nondominated
from paretomtl.front.labels import label, noun_of

if TYPE_CHECKING:
    from paretomtl.front import Front

ByTask: TypeAlias = Sequence[float] | Mapping[str, float]
"""One number per task, in their order or by name."""

KNEE = 0.01
"""How far below the chord a knee lies at least, as a part of the range of the front.

The synthetic front is concave but for its very ends, where it bends the other way by a thousandth: that is no knee.
"""


@dataclass(frozen=True)
class Choice:
    """What was chosen, and why.

    Attributes:
        k: the subproblem; None where no solution fits.
        reason: a sentence.
        losses: of the chosen solution, by task, on ``split``.
        metrics: of the chosen solution, by name, on ``split``.
        nearest: where no solution keeps the bounds, the subproblem that comes nearest; see :meth:`Front.select`.
        misses: by name, how far that one is beyond each bound that it does not keep, on ``split``.
        split: by whose losses and metrics it was chosen.
    """

    k: int | None
    reason: str
    losses: Mapping[str, float] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)
    nearest: int | None = None
    misses: Mapping[str, float] = field(default_factory=dict)
    split: str = ""


@dataclass(frozen=True)
class Table:
    """What there is to choose from: losses ``[K, m]`` and metrics ``[K]`` of one split."""

    split: str
    tasks: Sequence[str]
    subproblems: Sequence[int]
    losses: Tensor
    metrics: Mapping[str, Tensor]
    better: Mapping[str, str]
    reference: Sequence[float] | None = None
    names: Sequence[str] = ()
    noun: str = "subproblem"

    def label(self, row: int) -> str:
        """A row in a sentence: its number, and its name if it has one."""
        return label(self.noun, self.subproblems[row], self.names, row)

    def candidates(self) -> list[int]:
        """The rows with finite losses that no other row dominates."""
        finite = self.losses.isfinite().all(-1)
        kept = nondominated(torch.where(finite[:, None], self.losses, torch.inf)) & finite
        return [row for row, wanted in enumerate(kept.tolist()) if wanted]

    def beyond(self) -> Tensor:
        """The rows with a loss above the reference point, ``[K]`` bool, of which nobody would take any.

        A model that diverged, or was never asked for a task, would stretch every range. Where no candidate keeps the
        reference point, or there is none, no row is beyond it.
        """
        nothing = torch.zeros(len(self.losses), dtype=torch.bool)
        if self.reference is None or not all(math.isfinite(value) for value in self.reference):
            return nothing
        above = (self.losses > self.losses.new_tensor(self.reference)).any(-1)
        return nothing if bool(above[self.candidates()].all()) else above

    def within_reference(self) -> list[int]:
        """The candidates that are not :meth:`beyond` the reference point: the ends of ranges are among them."""
        above = self.beyond().tolist()
        return [row for row in self.candidates() if not above[row]]

    def left_out(self) -> str:
        """In words, the candidates that are beyond the reference point; empty without any."""
        numbers = [
            label("", self.subproblems[row], self.names, row).strip()
            for row in self.candidates()
            if bool(self.beyond()[row])
        ]
        if not numbers:
            return ""
        assert self.reference is not None
        point = ", ".join(f"{value:.4g}" for value in self.reference)
        which = f"{self.noun}{'s' if len(numbers) > 1 else ''} {', '.join(numbers)}"
        return f" Beyond the reference point ({point}), and left out: {which}."

    def choose(self, row: int, reason: str) -> Choice:
        """The choice of a row."""
        return Choice(
            self.subproblems[row],
            f"{capitalized(self.label(row))}: {reason}",
            dict(zip(self.tasks, self.losses[row].tolist(), strict=True)),
            {name: float(values[row]) for name, values in self.metrics.items()},
            split=self.split,
        )

    def choose_none(self, reason: str, **misses: Any) -> Choice:
        """The answer where no solution fits."""
        return Choice(None, reason, split=self.split, **misses)

    def find(self, name: str) -> str:
        """The task or metric that a name stands for.

        That of a task, for its loss, or of a metric, as it is; else ``loss:TASK`` is the loss of that task, and
        ``WHAT:TASK`` the metric that is called ``TASK WHAT``.
        """
        if not isinstance(name, str):
            raise TypeError(f"bounds and 'best' must have names of tasks or metrics. Got {name!r} instead.")
        if name in self.tasks or name in self.metrics:
            return name
        what, _, task = name.partition(":")
        if what == "loss" and task in self.tasks:
            return task
        if task in self.tasks and f"{task} {what}" in self.metrics:
            return f"{task} {what}"
        known = [*self.tasks, *self.metrics]
        raise ValueError(
            f"bounds and 'best' must name one of {known}, measured on '{self.split}', or loss:TASK, or WHAT:TASK for "
            f"the metric 'TASK WHAT'. Got {name!r} instead.{nearest(name, known)}"
        )

    def column(self, name: str) -> tuple[Tensor, bool]:
        """The values of a task's loss or a metric, and whether higher ones are better."""
        found = self.find(name)
        if found in self.tasks:
            return self.losses[:, list(self.tasks).index(found)], False
        return self.metrics[found], self.better.get(found) != "lower"

    def known(self) -> str:
        """The losses of all rows in words."""
        rows = zip(self.names or self.subproblems, self.losses.tolist(), strict=True)
        shown = [f"{k} ({', '.join(f'{value:.4g}' for value in row)})" for k, row in rows]
        return ", ".join(shown[:5]) + (", ..." if shown[5:] else "")


def build_table(front: Front, split: str | None) -> Table:
    """The candidates and their values, by default on the split that ranks."""
    split = front.ranking_split if split is None else split
    if not isinstance(split, str) or split not in front.losses:
        raise ValueError(f"'split' must be one of {list(front.losses)}. Got {split!r} instead.")
    losses = front.losses[split].double()
    return Table(
        split=split,
        tasks=front.tasks,
        subproblems=front.subproblems,
        losses=losses,
        metrics=front.metrics.get(split, {}),
        better=front.better,
        reference=front.reference,
        names=front.names,
        noun=noun_of(front),
    )


def capitalized(text: str) -> str:
    """A sentence: its first letter is a capital, and all others stay as they are."""
    return text[:1].upper() + text[1:]


def angles(losses: Tensor, directions: Tensor) -> Tensor:
    """The angle between rows in degrees; NaN where a row is zero."""
    u, v = (rows.double() / rows.double().norm(dim=-1, keepdim=True) for rows in (losses, directions))
    return torch.rad2deg(2.0 * torch.atan2((u - v).norm(dim=-1), (u + v).norm(dim=-1)))


def by_direction(table: Table, scaled: Tensor, direction: ByTask) -> Choice:
    """The loss vector nearest to a direction."""
    wanted = _row_of("direction", direction, table.tasks)
    distance = angles(scaled, wanted)
    rows = sorted(
        (row for row in table.candidates() if not distance[row].isnan()), key=lambda row: float(distance[row])
    )
    if not rows:
        if table.candidates():
            said = f"all losses on {table.split} that no other solution dominates are zero, which has no direction"
            return table.choose_none(f"No solution has a direction: {said}. Choose by importance or bounds.")
        return _nothing(table)
    second = f"; the next is {table.label(rows[1])} at {distance[rows[1]]:.1f}°" if rows[1:] else ""
    return table.choose(
        rows[0],
        f"its losses on {table.split} are {distance[rows[0]]:.1f}° from the direction {_shown(wanted)}{second}.",
    )


def by_importance(table: Table, scale: Tensor | None, importance: ByTask) -> Choice:
    """The least weighted sum of losses, times the factors ``[K, m]`` of training: their mean for all solutions."""
    share = _row_of("importance", importance, table.tasks)
    known = [] if scale is None else [row for row in table.candidates() if bool(scale[row].isfinite().all())]
    factors = torch.ones_like(share) if scale is None or not known else scale[known].to(share).mean(0)
    sums = (table.losses.to(share) * factors) @ (share / share.sum())
    rows = sorted(table.candidates(), key=lambda row: float(sums[row]))
    if not rows:
        return _nothing(table)
    second = f"; the next is {table.label(rows[1])} with {sums[rows[1]]:.4g}" if rows[1:] else ""
    scaled = "" if bool((factors == 1).all()) else ", scaled as in training and"
    return table.choose(
        rows[0],
        f"the least mean of the losses on {table.split}{scaled} weighted by {_shown(share)}, "
        f"{sums[rows[0]]:.4g}{second}.",
    )


def knee(table: Table) -> Choice:
    """The solution farthest below the chord, or the hyperplane, through the best solution of each task."""
    rows = table.within_reference()
    if not rows:
        return _nothing(table)
    if len(table.candidates()) == 1 < len(table.losses):
        alone = f"{table.label(rows[0])} dominates all other solutions on {table.split}"
        return table.choose_none(f"No knee: {alone}. Any other way of choosing takes it.")
    losses = table.losses[rows]
    low, high = losses.amin(0), losses.amax(0)
    unit = (losses - low) / torch.where(high > low, high - low, 1.0)
    ends = unit[losses.argmin(0)]
    tasks = len(table.tasks)
    if len({tuple(end) for end in ends.tolist()}) < tasks or torch.linalg.matrix_rank(ends) < tasks:
        return table.choose_none(f"No knee: the best solutions of the tasks on {table.split} span no chord.")
    normal = torch.linalg.solve(ends, torch.ones(tasks, dtype=torch.float64))
    if not bool((normal > 0).all()):
        said = "the plane through the best of each task is tilted so that below it is not better"
        return table.choose_none(f"No knee: {said} on {table.split}. Choose by direction, importance or bounds.")
    below = (1.0 - unit @ normal) / normal.norm()
    best = int(below.argmax())
    if float(below[best]) <= KNEE:
        return table.choose_none(
            f"No knee: no solution on {table.split} lies more than {KNEE:g} of the range of the front below the chord "
            "through the best of each task. The front is concave or straight; choose by direction, importance, regret "
            "or bounds.",
        )
    return table.choose(
        rows[best],
        f"it lies farthest below the chord through the best of each task on {table.split}, by {below[best]:.3g} of "
        f"losses scaled to the range of the front.{table.left_out()}",
    )


def least_regret(table: Table) -> Choice:
    r"""The solution whose largest regret is smallest (Savage 1951).

    .. math:: \min_k \max_i \frac{L_{ki} - \min_j L_{ji}}{\max_j L_{ji} - \min_j L_{ji}}

    with j over the solutions that no other one dominates and that are not beyond the reference point of the front: one
    diverged model would squeeze the regrets of all others. Such models are not chosen either. A task in which the
    others are all alike counts as 0; of solutions with the same largest regret, the one with the least sum of regrets
    is taken.
    """
    rows = table.within_reference()
    if not rows:
        return _nothing(table)
    losses = table.losses[rows]
    low, high = losses.amin(0), losses.amax(0)
    regrets = (losses - low) / torch.where(high > low, high - low, 1.0)
    largest = regrets.amax(-1)
    order = sorted(range(len(rows)), key=lambda i: (float(largest[i]), float(regrets[i].sum())))
    best = order[0]
    if len(rows) == 1:
        within = " within the reference point" if table.left_out() else ""
        return table.choose(
            rows[0], f"it is the only solution on {table.split}{within} that no other one dominates.{table.left_out()}"
        )
    task, second = table.tasks[int(regrets[best].argmax())], order[1]
    return table.choose(
        rows[best],
        f"its largest regret on {table.split}, in {task}, is the smallest: {largest[best]:.3g} of the way from the "
        f"best to the worst of the front; the next is {table.label(rows[second])} with "
        f"{largest[second]:.3g}.{table.left_out()}",
    )


def _nothing(table: Table) -> Choice:
    return table.choose_none(f"No solution has finite losses on {table.split}: {table.known()}.")


def _row_of(name: str, row: ByTask, tasks: Sequence[str]) -> Tensor:
    if isinstance(row, Mapping):
        strangers = [task for task in row if task not in tasks]
        if strangers:
            raise ValueError(f"'{name}' must name tasks of {list(tasks)}. Got {strangers[0]!r} instead.")
        row = [row.get(task, 0.0) for task in tasks]
    values = as_numbers(row)
    fits = values is not None and len(values) == len(tasks) and all(math.isfinite(v) and v >= 0 for v in values)
    if not fits or not values or not any(values):
        shown = row if values is None else values
        raise ValueError(f"'{name}' must be {len(tasks)} numbers, not negative and not all zero. Got {shown} instead.")
    return torch.tensor(values, dtype=torch.float64)


def _shown(row: Tensor) -> str:
    return "(" + ", ".join(f"{value:g}" for value in row.tolist()) + ")"


def beyond(losses: Tensor) -> str:
    """A reference point that is worse than all losses ``[K, m]``, to be appended to an error; nothing without any."""
    if not len(losses):
        return ""
    point = [float(f"{value + 0.1 * abs(value):.3g}") for value in losses.amax(0).tolist()]
    return f": write hypervolume({point}), which is worse than every solution"
