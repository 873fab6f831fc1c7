"""The candidates for a choice: losses and metrics of one split in a table, and the choice of one of its rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from paretomtl._support.argument_checks import quote
from paretomtl._support.html_table import html_table, paragraph
from paretomtl._support.splits import split_word
from paretomtl._support.text import short_number, shorten, suggest_name
from paretomtl.core import dominates
from paretomtl.front._data import FrontData, losses_on
from paretomtl.front.indicators import finite_nondominated
from paretomtl.front.solution_labels import label


@dataclass(frozen=True)
class Choice:
    """A chosen model, and the reason.

    Attributes:
        k: the model; None if no model fits.
        reason: a sentence.
        losses: of the chosen model, by task, on ``split``.
        metrics: of the chosen model, by name, on ``split``.
        nearest: the model nearest to the bounds, if no model satisfies them; see :meth:`Front.select`.
        misses: by name, how far the nearest one violates each bound that it does not satisfy, on ``split``.
        split: the split whose losses and metrics decided.
    """

    k: int | None
    reason: str
    losses: Mapping[str, float] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)
    nearest: int | None = None
    misses: Mapping[str, float] = field(default_factory=dict)
    split: str = ""

    def _repr_html_(self) -> str:
        """The reason and the values, as notebooks show them."""
        values = {**{f"{task} loss": value for task, value in self.losses.items()}, **self.metrics}
        rows = [[shorten(name, 40), short_number(value)] for name, value in values.items()]
        return paragraph(self.reason) + (html_table(["", f"on {split_word(self.split)}"], rows) if rows else "")


@dataclass(frozen=True)
class CandidateTable:
    """Candidates of one split: their losses ``[K, m]`` and metrics ``[K]``."""

    split: str
    tasks: Sequence[str]
    subproblems: Sequence[int]
    losses: Tensor
    metrics: Mapping[str, Tensor]
    better: Mapping[str, str]
    reference: Sequence[float] | None = None
    names: Sequence[str] = ()
    within: Tensor | None = None
    """Whether each row satisfies the bounds, ``[K]`` bool; None without bounds."""
    note: str = ""
    """A sentence on the bounds, at the end of every reason."""

    @property
    def on(self) -> str:
        """The word for the split in a sentence."""
        return split_word(self.split)

    def label(self, row: int) -> str:
        """The label of a row in a sentence: its number, and its name if it has one."""
        return f"model {label(self.subproblems[row], self.names, row)}"

    def candidates(self) -> list[int]:
        """The rows within the bounds that have finite losses, and that no other such row dominates."""
        losses = self.losses if self.within is None else torch.where(self.within[:, None], self.losses, torch.nan)
        return [row for row, wanted in enumerate(finite_nondominated(losses).tolist()) if wanted]

    def beaten(self, among: Tensor) -> list[int]:
        """How many rows ``among [K]`` bool dominate each row, which decides ties: fewer dominate the better one."""
        counts: list[int] = dominates(self.losses[among][:, None], self.losses).sum(0).tolist()
        return counts

    def beyond(self) -> Tensor:
        """Whether each row has a loss above the reference point, ``[K]`` bool.

        A model that diverged, or was never trained for a task, would stretch every range. If there is no reference
        point, or all candidates are above it, no row counts as beyond.
        """
        nothing = torch.zeros(len(self.losses), dtype=torch.bool)
        if self.reference is None or not all(math.isfinite(value) for value in self.reference):
            return nothing
        above = (self.losses > self.losses.new_tensor(self.reference)).any(-1)
        return nothing if bool(above[self.candidates()].all()) else above

    def within_reference(self) -> list[int]:
        """The candidates that are not :meth:`beyond` the reference point; ranges are taken over them."""
        above = self.beyond().tolist()
        return [row for row in self.candidates() if not above[row]]

    def left_out(self) -> str:
        """A sentence that names the candidates beyond the reference point; empty if there are none."""
        numbers = [
            label(self.subproblems[row], self.names, row) for row in self.candidates() if bool(self.beyond()[row])
        ]
        if not numbers:
            return ""
        assert self.reference is not None
        point = ", ".join(map(short_number, self.reference))
        which = f"model{'s' if len(numbers) > 1 else ''} {', '.join(numbers)}"
        return f" Beyond the reference point ({point}), and left out: {which}."

    def choose(self, row: int, reason: str) -> Choice:
        """Choose a row."""
        return Choice(
            self.subproblems[row],
            f"{capitalized(self.label(row))}: {reason}{self.note}",
            dict(zip(self.tasks, self.losses[row].tolist(), strict=True)),
            {name: float(values[row]) for name, values in self.metrics.items()},
            split=self.split,
        )

    def choose_none(self, reason: str, **misses: Any) -> Choice:
        """Choose no row."""
        return Choice(None, reason, split=self.split, **misses)

    def find(self, name: str) -> str:
        """The task or metric that a name stands for.

        A task stands for its loss, and a metric for itself. Otherwise ``loss:TASK`` is the loss of a task, and
        ``WHAT:TASK`` is the metric ``TASK WHAT``.
        """
        if not isinstance(name, str):
            raise TypeError(f"bounds and 'best' must have names of tasks or metrics. Got {quote(name)} instead.")
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
            f"the metric 'TASK WHAT'. Got {quote(name)} instead.{suggest_name(name, known)}"
        )

    def column(self, name: str) -> tuple[Tensor, bool]:
        """The values of a task's loss or a metric, and whether higher ones are better."""
        column = self.find(name)
        if column in self.tasks:
            return self.losses[:, list(self.tasks).index(column)], False
        return self.metrics[column], self.better.get(column) != "lower"

    def known(self) -> str:
        """The losses of the first five rows as text, and tasks that have none."""
        rows = zip(self.names or self.subproblems, self.losses.tolist(), strict=True)
        shown = [f"{k} ({', '.join(map(short_number, row))})" for k, row in rows]
        without = [task for task, column in zip(self.tasks, self.losses.isnan().all(0).tolist(), strict=True) if column]
        cause = f". {', '.join(without)}: NaN in every model, as on a split without labels for it" if without else ""
        return ", ".join(shown[:5]) + (", ..." if shown[5:] else "") + cause


def build_table(front: FrontData, split: str | None) -> CandidateTable:
    """Build the table of candidates on a split, the ranking split by default."""
    losses = losses_on(front, split).double()
    split = front.ranking_split if split is None else split
    return CandidateTable(
        split=split,
        tasks=front.tasks,
        subproblems=front.subproblems,
        losses=losses,
        metrics=front.metrics.get(split, {}),
        better=front.better,
        reference=front.reference,
        names=front.names,
    )


def capitalized(text: str) -> str:
    """Capitalize the first letter, and leave the others as they are."""
    return text[:1].upper() + text[1:]
