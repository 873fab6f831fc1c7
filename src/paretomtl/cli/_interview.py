"""Questions on a terminal; :mod:`paretomtl.front.choosing.questions` decides which ones to ask."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.table import Table as Grid

from paretomtl._support.terminal import text_console
from paretomtl.front.choosing.candidates import CandidateTable, Choice
from paretomtl.front.choosing.questions import begin, difference


def at_terminal() -> bool:
    """Whether questions can be asked: standard input is a terminal."""
    return sys.stdin.isatty()


def ask(table: CandidateTable) -> Choice:
    """Ask which of two solutions is better until one is left. Questions go to standard error."""
    console = text_console(stderr=True)
    search = begin(table)
    if not search.rows:
        return table.choose_none(f"No solution has finite losses on {table.split}: {table.known()}.")
    count = len(search.rows)
    if search.most:
        console.print(
            f"{count} non-dominated solutions; losses on {table.split}. At most {_counted(search.most)}"
            f"{', usually far fewer' if search.most > 6 else ''}.",
            highlight=False,
        )
    asked = 0
    while search.pair is not None:
        asked += 1
        console.print(f"\nQuestion {asked}, {len(search.rows)} solutions left:", highlight=False)
        search = search.after(first=_prefers_first(console, table, *search.pair))
    if not asked:
        return table.choose(search.rows[0], f"it is the only non-dominated solution on {table.split}.")
    return table.choose(
        search.rows[0],
        f"your preference on {table.split} among {count} solutions, after {_counted(asked)}.",
    )


def _counted(questions: int) -> str:
    return f"{questions} question{'s' if questions > 1 else ''}"


def _prefers_first(console: Console, table: CandidateTable, one: int, other: int) -> bool:
    grid = Grid(box=None, padding=(0, 2, 0, 0))
    grid.add_column(f"on {table.split}")
    for number, row in ((1, one), (2, other)):
        grid.add_column(f"{number}: {table.label(row)}", justify="right")
    for name in (*table.tasks, *table.metrics):
        values, higher = table.column(name)
        label = f"{name}, {'higher' if higher else 'lower'} is better"
        grid.add_row(label, f"{float(values[one]):.4g}", f"{float(values[other]):.4g}")
    console.print(grid)
    console.print(f"2 instead of 1 {difference(table, one, other)}.", highlight=False)
    while True:
        console.print("Which one, 1 or 2? ", end="", highlight=False)
        answer = sys.stdin.readline()  # input() would write to standard output
        if not answer:
            raise KeyboardInterrupt
        if answer.strip() in ("1", "2"):
            return answer.strip() == "1"
        console.print("Type 1 or 2; Ctrl-C stops.", highlight=False)
