"""The style of each run on a page: label, colour and symbol of its method, as figures have them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from paretomtl.methods.registry import REGISTRY, colour_of, label_of, marker_of

SYMBOLS = {
    "o": "circle",
    "s": "square",
    "v": "triangle-down",
    "^": "triangle-up",
    "*": "star",
    "D": "diamond",
    "P": "cross",
    "X": "x",
    "p": "pentagon",
    "h": "hexagon",
}
"""Plotly's names of matplotlib's markers."""

_OTHER = ""  # stands for all methods that users define


def run_styles(methods: Sequence[str]) -> list[dict[str, Any]]:
    """A style for each run, by the methods of the runs.

    The first run of a method has the colour and the symbol of that method. Further runs of it have those of methods
    that are not on the page, so that runs of one method can be told apart; when none are left, colours repeat
    with other symbols.

    Example:
        >>> [style["symbol"] for style in run_styles(["mgda", "pareto-mtl", "mgda"])]
        ['square', 'circle', 'pentagon']
    """
    looks = [*REGISTRY, _OTHER]
    free, places = dict.fromkeys(looks), dict[int, str]()
    for r, method in enumerate(methods):
        own = method if method in REGISTRY else _OTHER
        if own in free:
            places[r] = own
            del free[own]
    later = [r for r in range(len(methods)) if r not in places]
    turns = {r: divmod(i, len(looks)) for i, r in enumerate(later[len(free) :])}
    places |= dict(zip(later, free, strict=False))
    return [
        _style(methods[r], places[r], places[r])
        if r in places
        else _style(methods[r], looks[turns[r][1]], looks[(turns[r][1] + turns[r][0] + 1) % len(looks)])
        for r in range(len(methods))
    ]


def _style(method: str, coloured: str, marked: str) -> dict[str, Any]:
    colours = {"light": colour_of(coloured), "dark": colour_of(coloured, dark=True)}
    return {"label": label_of(method), "colour": colours, "symbol": SYMBOLS[marker_of(marked)]}
