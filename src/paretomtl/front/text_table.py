"""Text tables of a front: losses and metrics of the shown splits, in as many tables as the width requires."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from paretomtl._support.splits import split_word
from paretomtl._support.text import short_number
from paretomtl.core import nondominated
from paretomtl.front._data import FrontData
from paretomtl.front.solution_labels import leading_columns, short

_WIDE = 80  # characters in a line
_NOTES = 88  # characters in a line of notes, as in code
_COLUMN = 10  # characters of a number, with a space before it
_NAMED = 25  # upper bound on the width of a column, with a space before it
_STATUS = 12  # characters of most statuses
_DOMINATED = ", dominated"

T = TypeVar("T")


@dataclass(frozen=True)
class Group:
    """Columns that stay together: the losses, or the metrics, of all models on one split.

    Attributes:
        split: the split of the values.
        columns: the values by name.
        most: upper bound on the width of a column, with a space before it.
    """

    split: str
    columns: dict[str, list[float]]
    most: int = _COLUMN

    def width_of(self, name: str) -> int:
        """The width of a column: that of its name, within limits."""
        return max(_COLUMN, min(len(name) + 1, self.most))


def groups_of(front: FrontData, splits: Sequence[str]) -> list[list[Group]]:
    """The losses by split, and the metrics by split where there are any."""
    tasks = [
        Group(split, {task: front.losses[split][:, i].tolist() for i, task in enumerate(front.tasks)})
        for split in splits
    ]
    metrics = [
        Group(split, {name: values.tolist() for name, values in front.metrics[split].items()})
        for split in splits
        if front.metrics.get(split)
    ]
    return [tasks, metrics] if metrics else [tasks]


def pack(kinds: Sequence[Sequence[T]], width: Callable[[T], int], first: int, others: int) -> list[list[T]]:
    """Distribute groups over tables in order, as many as fit; kinds share a table only if all groups fit into one.

    Args:
        kinds: groups of several kinds.
        width: the width of a group.
        first: the room in the first table, which has other columns too; it stays without groups if none fits.
        others: the room in every other table.
    """
    every = [group for kind in kinds for group in kind]
    if sum(map(width, every)) <= first:
        return [every]
    tables: list[list[T]] = [[]]
    room = first
    for number, kind in enumerate(kinds):
        for place, group in enumerate(kind):
            if (number > 0 and place == 0) or width(group) > room:
                tables.append([])
                room = others
            tables[-1].append(group)
            room -= width(group)
    return tables


def early_end(front: FrontData) -> str:
    """Text for a heading on why training ended before its last epoch; empty if it did not."""
    if not front.complete:
        return f", stopped early{f' ({front.ended})' if front.ended else ''}"
    return f", ended by {front.ended}" if front.ended.startswith("patience") else ""


def front_text(front: FrontData) -> str:
    """The text of a front: its models on the ranking split, and on test."""
    splits = front.shown_splits
    head, *leading = leading_columns(front)
    taken = 6 + len(head)  # number, name and preference
    losses, *metrics = groups_of(front, splits)
    kinds = [_spread(losses, _WIDE - taken - _STATUS), *(_spread(kind, _WIDE - 4) for kind in metrics)]
    seed = "" if front.seed is None else f", seed {front.seed}"
    what = "losses and metrics" if len(kinds) > 1 else "losses"
    on = f"{what} on {split_word(splits[0])}" if len(splits) == 1 else f"on {split_word(splits[0])}, test next to it"
    lines = [f"Front of {len(front)} models: {front.problem}, {front.method}{seed}{early_end(front)}; {on}"]
    own = _width(kinds[0][0])  # the first table has the losses that rank, however wide it is
    tables = pack(kinds, _width, max(own, _WIDE - taken - _STATUS), _WIDE - 4)
    status = status_words(front, front.ranking_split)
    first = [f"{k:3d}  {line}" for k, line in zip(front.subproblems, leading, strict=True)]
    for number, groups in enumerate(tables):
        columns = [
            (group.split, name, values, group.width_of(name))
            for group in groups
            for name, values in group.columns.items()
        ]
        lead = f"  k  {head}" if number == 0 else "  k"
        rows = first if number == 0 else [f"{k:3d}" for k in front.subproblems]
        ends = [f"  {word}" for word in status] if number == 0 else [""] * len(rows)
        if len(splits) > 1:
            lines.append(" " * len(lead) + "".join(f"{split:>{wide}}" for split, _, _, wide in columns))
        names = (f"{short(name, wide - 1):>{wide}}" for _, name, _, wide in columns)
        lines.append(lead + "".join(names) + ("  status" if number == 0 else ""))
        for i, (row, end) in enumerate(zip(rows, ends, strict=True)):
            lines.append(
                row + "".join(f" {short_number(float(values[i])):>{wide - 1}}" for _, _, values, wide in columns) + end
            )
    if "infeasible" in front.status:
        lines.append(INFEASIBLE)
    if len(splits) > 1 and any(word.endswith(_DOMINATED) for word in status):
        lines.append(dominated_note(front.ranking_split))
    notes = [scaling_text(front)] if was_scaled(front) else []
    notes += [f"decision: {decision}" for decision in front.decisions]
    notes += [f"remark: {remark}" for remark in front.remarks]
    wrapped = [textwrap.fill(note, _NOTES, subsequent_indent="  ", break_on_hyphens=False) for note in notes]
    return "\n".join([*lines, *wrapped])


def was_scaled(front: FrontData) -> bool:
    """Whether losses were multiplied by factors other than 1."""
    return front.scale is not None and not bool((front.scale == 1).all())


def scaling_text(front: FrontData) -> str:
    """Describe the loss factors of training in a sentence; empty without scaling."""
    if front.scale is None:
        return ""
    if not bool((front.scale == front.scale[:1]).all()):
        return "Losses were scaled by separate factors for each model, front.scale, before they were weighed."
    if bool((front.scale == 1).all()):
        return "Losses were weighed as they are: the factors of their scale are 1."
    values = ", ".join(f"{1 / factor:.3g}" for factor in front.scale[0].tolist())
    return f"Losses were divided by ({values}) before they were weighed."


def _width(group: Group) -> int:
    return sum(map(group.width_of, group.columns))


def _spread(groups: Sequence[Group], room: int) -> list[Group]:
    """Widen columns for long names as far as groups that share a table at the least width still do."""
    counts = [len(group.columns) for group in groups]
    count = sum(counts) if sum(counts) * _COLUMN <= room else max(counts)
    return [replace(group, most=min(_NAMED, room // max(1, count))) for group in groups]


INFEASIBLE = "infeasible: the losses on training lie outside of the region of its preference."
"""The meaning of the status."""


def status_words(front: FrontData, split: str) -> list[str]:
    """The status of each model, marked if it is dominated; a model with a non-finite loss is never marked."""
    beaten = ~nondominated(front.losses[split]) & front.losses[split].isfinite().all(-1)
    return [f"{word}{_DOMINATED}" if bad else word for word, bad in zip(front.status, beaten.tolist(), strict=True)]


def dominated_note(split: str) -> str:
    """The meaning of "dominated" in a table."""
    return f"dominated: another model is no worse in any task on {split_word(split)}, and better in one."
