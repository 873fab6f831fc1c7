"""Numbers by split, in as many tables as fit the width of the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from paretomtl._support.terminal import escaped
from paretomtl._support.text import short_number, shorten
from paretomtl.front import Front
from paretomtl.front.favours import favour_words, model_favours
from paretomtl.front.text_table import INFEASIBLE, dominated_note, groups_of, pack, status_words, was_scaled

_GAP = 2  # between columns
_WORD = 12  # letters of a word in the name of a column; longer words are shortened
_TEXT = 24  # letters of a cell of text; longer ones are shortened


@dataclass(frozen=True)
class Column:
    """A column of text.

    Attributes:
        name: what it shows.
        cells: one for each row.
        split: the split of the numbers; empty if they belong to none.
        text: whether the cells are text, which is left-aligned and may be shortened.
        styled: the same cells with styles, if they have any.
    """

    name: str
    cells: Sequence[str]
    split: str = ""
    text: bool = False
    styled: Sequence[Text] = ()

    @property
    def least(self) -> int:
        """The minimum width in letters, with the name on several lines; a cell has one line."""
        words = [*(_letters(word) for word in self.name.split()), _letters(self.split)]
        cells = [min(_TEXT, _letters(cell)) if self.text else _letters(cell) for cell in self.cells]
        return max(1, *(min(_WORD, letters) for letters in words), *cells)

    @property
    def natural(self) -> int:
        """The width in letters if there is room."""
        return max(self.least, *map(_letters, (self.name, self.split, *self.cells)))


def print_tables(
    console: Console, key: Column, first: Sequence[Column], kinds: Sequence[Sequence[Sequence[Column]]]
) -> None:
    """Print columns in tables that fit into the console.

    Args:
        console: where to print.
        key: the column that names the rows; it leads every table.
        first: further columns of the first table; the last of them comes after all others.
        kinds: groups of columns by kind, such as losses and metrics; a group stays together if a table has room for it.
    """
    room = console.width - key.least
    taken = _width(first)
    fitting = [[part for group in groups for part in _parts(group, room)] for groups in kinds]
    for number, some in enumerate(pack(fitting, _width, room - taken, room)):
        columns = [column for group in some for column in group]
        shown = [key, *first[:-1], *columns, *first[-1:]] if number == 0 else [key, *columns]
        table = Table(box=None, padding=(0, _GAP, 0, 0), pad_edge=False)
        for column, width in zip(shown, _widths(shown, console.width), strict=True):
            lines = [*([column.split] if column.split else []), *_wrapped(column.name, width)]
            justify: Literal["left", "right"] = "left" if column.text else "right"
            table.add_column("\n".join(lines), justify=justify, overflow="ellipsis", no_wrap=True, width=width)
        for cells in zip(*(column.styled or column.cells for column in shown), strict=True):
            table.add_row(*cells)
        console.print(table)


def _wrapped(name: str, width: int) -> list[str]:
    """Break a name between words; words that are wider than a line are shortened."""
    lines = [""]
    for word in (shorten(word, width) for word in name.split()):
        if lines[-1] and _letters(lines[-1]) + 1 + _letters(word) > width:
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}" if lines[-1] else word
    return lines


def _parts(group: Sequence[Column], room: int) -> list[list[Column]]:
    """Split a group that is too wide for a table into parts that fit."""
    if _width(group) <= room:
        return [list(group)]
    return pack([group], lambda column: column.least + _GAP, room, room)


def _widths(columns: Sequence[Column], room: int) -> list[int]:
    """Return the natural widths if all fit; else the minimum widths, and text gets the space that is left."""
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
    """Print the models of a front, one row each, on these splits; the first split says which are dominated."""
    rows = [" ".join(f"{value:.2f}" for value in front.preferences[k].tolist()) for k in front.subproblems]
    words = status_words(front, splits[0])
    kinds = [
        [
            [
                Column(name, [short_number(value) for value in values], group.split)
                for name, values in group.columns.items()
            ]
            for group in groups
        ]
        for groups in groups_of(front, splits)
    ]
    named = [Column("name", front.names, text=True)] if front.names else []
    preferred = [] if front.reading == "none" else [Column(front.reading, rows)]
    wished = model_favours(front)
    if len(front.tasks) > 3 and wished is not None:  # vectors would not fit into a line
        preferred = [Column("favours", [favour_words(front.tasks, row, 16) for row in wished], text=True)]
    elif len(front.tasks) > 3:
        preferred = []
    first = [*named, *preferred, Column("status", words, text=True)]
    print_tables(console, Column("k", [str(k) for k in front.subproblems]), first, kinds)
    if was_scaled(front):
        console.print(front.scaling(), style="dim", highlight=False)
    if "infeasible" in front.status:
        console.print(INFEASIBLE, style="dim")
    if any(word.endswith("dominated") for word in words):
        console.print(dominated_note(splits[0]), style="dim")


def _width(group: Sequence[Column]) -> int:
    return sum(column.least + _GAP for column in group)


def _letters(text: str) -> int:
    return cell_len(escaped(text))
