"""Labels of models: their numbers, the names that they were given, and their preferences."""

from __future__ import annotations

from collections.abc import Sequence

from paretomtl._support.text import shorten
from paretomtl.front._data import FrontData

_LONGEST = 24  # characters of a name in a table


def label(k: int, names: Sequence[str], row: int) -> str:
    """The label of a model in a list: its number, and its name if it has one.

    Example:
        >>> label(3, ["a", "b", "c", "alpha=0.1"], 3)
        '3 (alpha=0.1)'
    """
    return f"{k} ({names[row]})" if names else f"{k}"


def short(name: str, longest: int = _LONGEST) -> str:
    """Shorten the name of a model to fit into a table."""
    return shorten(name, longest)


def leading_columns(front: FrontData) -> list[str]:
    """Name and preference as text of equal width: the heading, then a line for each model.

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
