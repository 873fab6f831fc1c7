"""Labels of solutions: their numbers, the names that they were given, and their preferences."""

from __future__ import annotations

from collections.abc import Sequence

from paretomtl._support.text import shorten
from paretomtl.front._data import FrontData

_LONGEST = 24  # characters of a name in a table


def noun_of(front: FrontData) -> str:
    """The noun for a solution in a sentence: "subproblem", or "solution" if it was trained elsewhere."""
    return "solution" if front.seed is None else "subproblem"


def label(noun: str, k: int, names: Sequence[str], row: int) -> str:
    """The label of a solution in a sentence.

    Example:
        >>> label("solution", 3, ["a", "b", "c", "alpha=0.1"], 3)
        'solution 3 (alpha=0.1)'
    """
    return f"{noun} {k} ({names[row]})" if names else f"{noun} {k}"


def short(name: str, longest: int = _LONGEST) -> str:
    """Shorten the name of a solution to fit into a table."""
    return shorten(name, longest)


def leading_columns(front: FrontData) -> list[str]:
    """Name and preference as text of equal width: the heading, then a line for each solution.

    A front may have both, either or neither; the text is empty without both.
    """
    lines = [""] * (len(front) + 1)
    if front.names:
        names = ["name", *map(short, front.names)]
        lines = [f"{name:<{max(map(len, names)) + 1}}" for name in names]
    if front.reading != "none":
        rows = front.preferences[list(front.subproblems)].tolist()
        shown = [" ".join(f"{value:7.3f}" for value in row) for row in rows]
        width = 8 * len(front.tasks)
        lines = [f"{line}{text:<{width}}" for line, text in zip(lines, [front.reading, *shown], strict=True)]
    return lines
