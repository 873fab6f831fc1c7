"""Tables of numbers by split, in as many tables as the width of the terminal asks for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table

from paretomtl._support.terminal import escaped
from paretomtl.front import Front
from paretomtl.front.text_table import INFEASIBLE, dominated_note, groups_of, pack, status_words

_GAP = 2  # between columns
_WORD = 12  # letters of a name that a column makes room for; longer ones are folded


@dataclass(frozen=True)
class Column:
    """A column of text.

    Attributes:
        name: what it shows.
        cells: one for each row.
        split: whose numbers these are; empty for what belongs to no split.
        text: whether these are words, which are on the left and may be wrapped.
    """

    name: str
    cells: Sequence[str]
    split: str = ""
    text: bool = False

    @property
    def least(self) -> int:
        """How many letters it needs, with its name folded."""
        cells = [word for cell in self.cells for word in cell.split()] if self.text else self.cells
        words = [*(_letters(word) for word in self.name.split()), _letters(self.split)]
        return max(1, *(min(_WORD, letters) for letters in words), *map(_letters, cells))

    @property
    def natural(self) -> int:
        """How many letters it takes if there is room."""
        return max(self.least, *map(_letters, (self.name, self.split, *self.cells)))


def print_tables(
    console: Console, key: Column, first: Sequence[Column], kinds: Sequence[Sequence[Sequence[Column]]]
) -> None:
    """Print columns in tables that fit into the console.

    Args:
        console: where to.
        key: what each row is, which leads every table.
        first: what else the first table has; the last of it comes after all others.
        kinds: groups of columns that stay together if a table has room for them, of several kinds, such as losses and
            metrics.
    """
    room = console.width - key.least
    taken = _width(first)
    fitting = [[part for group in groups for part in _parts(group, room)] for groups in kinds]
    for number, some in enumerate(pack(fitting, _width, room - taken, room)):
        columns = [column for group in some for column in group]
        shown = [key, *first[:-1], *columns, *first[-1:]] if number == 0 else [key, *columns]
        table = Table(box=None, padding=(0, _GAP, 0, 0), pad_edge=False)
        for column, width in zip(shown, _widths(shown, console.width), strict=True):
            head = f"{column.split}\n{column.name}" if column.split else column.name
            table.add_column(head, justify="left" if column.text else "right", overflow="fold", width=width)
        for cells in zip(*(column.cells for column in shown), strict=True):
            table.add_row(*cells)
        console.print(table)


def _parts(group: Sequence[Column], room: int) -> list[list[Column]]:
    """A group that no table has room for in parts that fit."""
    if _width(group) <= room:
        return [list(group)]
    return pack([group], lambda column: column.least + _GAP, room, room)


def _widths(columns: Sequence[Column], room: int) -> list[int]:
    """What columns take if there is room for all; else what they need, and words get what is left."""
    room -= _GAP * (len(columns) - 1)
    if sum(column.natural for column in columns) <= room:
        return [column.natural for column in columns]
    left = max(0, room - sum(column.least for column in columns))
    widths = []
    for column in columns:
        more = min(left, column.natural - column.least) if column.text else 0
        left -= more
        widths.append(column.least + more)
    return widths


def print_front(console: Console, front: Front, splits: Sequence[str]) -> None:
    """The solutions of a front, one row each, on these splits; the first of them says which are dominated."""
    rows = [" ".join(f"{value:.2f}" for value in front.preferences[k].tolist()) for k in front.subproblems]
    words = status_words(front, splits[0])
    kinds = [
        [
            [Column(name, [f"{value:.4g}" for value in values], group.split) for name, values in group.columns.items()]
            for group in groups
        ]
        for groups in groups_of(front, splits)
    ]
    named = [Column("name", front.names, text=True)] if front.names else []
    wished = [Column(front.reading, rows, text=len(front.tasks) > 3)] if front.reading != "none" else []
    first = [*named, *wished, Column("status", words, text=True)]
    print_tables(console, Column("k", [str(k) for k in front.subproblems]), first, kinds)
    if front.scale is not None:
        console.print(front.scaling(), style="dim", highlight=False)
    if "infeasible" in front.status:
        console.print(INFEASIBLE, style="dim")
    if any(word.endswith("dominated") for word in words):
        console.print(dominated_note(splits[0]), style="dim")


def _width(group: Sequence[Column]) -> int:
    return sum(column.least + _GAP for column in group)


def _letters(text: str) -> int:
    return cell_len(escaped(text))
