"""Questions on a terminal; :mod:`paretomtl.front.choosing.questions` decides which ones to ask."""

from __future__ import annotations

import sys
from typing import Literal

from rich.console import Console
from rich.text import Text

from paretomtl._support.terminal import print_text, text_console
from paretomtl.cli._tables import Column, print_tables
from paretomtl.front.choosing.candidates import CandidateTable, Choice
from paretomtl.front.choosing.questions import begin, differences

Answer = Literal["1", "2", "=", "back"]

_ANSWERS: dict[str, Answer] = {
    "1": "1",
    "2": "2",
    "=": "=",
    "e": "=",
    "equal": "=",
    "b": "back",
    "back": "back",
}


def at_terminal() -> bool:
    """Whether questions can be asked: standard input is a terminal."""
    return sys.stdin.isatty()


def ask(table: CandidateTable) -> Choice:
    """Ask which of two models is better until one is left. Questions go to standard error."""
    console = text_console(stderr=True)
    history = [begin(table)]
    rows = history[0].rows
    if not rows:
        return table.choose_none(f"No model has finite losses on {table.on}: {table.known()}.")
    if history[0].most:
        few = ", usually far fewer" if history[0].most > 6 else ""
        print_text(
            console, f"{len(rows)} non-dominated models, on {table.on}. At most {_counted(history[0].most)}{few}."
        )
    shown: set[int] = set()
    while (pair := history[-1].pair) is not None:
        search = history[-1]
        shown.update(pair)
        console.print(f"\nQuestion {len(history)}, {len(search.rows)} models left", style="bold", highlight=False)
        _print_pair(console, table, *pair)
        answer = _answer(console)
        if answer != "back":
            history.append(search.after_tie() if answer == "=" else search.after(first=answer == "1"))
        elif len(history) > 1:
            history.pop()
        else:
            print_text(console, "This is the first question.")
    (chosen,), asked = history[-1].rows, len(history) - 1
    if not asked:
        near = " within the reference point" if table.left_out() else ""
        return table.choose(chosen, f"it is the only non-dominated model on {table.on}{near}.{table.left_out()}")
    words = "your preference" if chosen in shown else "it fits your answers best"
    return table.choose(chosen, f"{words} on {table.on} among {len(rows)} models, after {_counted(asked)}.")


def _counted(questions: int) -> str:
    return f"{questions} question{'s' if questions > 1 else ''}"


def _print_pair(console: Console, table: CandidateTable, one: int, other: int) -> None:
    """Print two models and what the second one changes: green if it is better, red if it is worse."""
    lines = differences(table, one, other)
    styles = {True: "green", False: "red", None: "dim"}
    texts = [Text(line.text, styles[line.better]) for line in lines]
    models = [
        Column(f"{number}: {table.label(row)}", [line.values[number - 1] for line in lines])
        for number, row in ((1, one), (2, other))
    ]
    change = Column("2 instead of 1", [line.text for line in lines], text=True, styled=texts)
    print_tables(console, Column("", [line.name for line in lines], text=True), [change], [[models]])


def _answer(console: Console) -> Answer:
    while True:
        console.print("1, 2, = (equal) or b (back)? ", end="", highlight=False)
        typed = sys.stdin.readline()  # input() would write to standard output
        if not typed:
            raise KeyboardInterrupt
        if (word := typed.strip().lower()) in _ANSWERS:
            return _ANSWERS[word]
        print_text(console, "Type 1 or 2 for the model that you prefer, = or b; Ctrl-C stops.")
