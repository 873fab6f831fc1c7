"""The style of each run on a page: the label and the colour of its method, and a symbol for its seed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from paretomtl.methods.registry import colour_of, label_of

SYMBOLS = ("circle", "square", "diamond", "cross", "x")
"""The symbols of seeds, in order: those that plotly draws alike in two and in three dimensions."""


def run_styles(runs: Sequence[tuple[str, int | None]]) -> list[dict[str, Any]]:
    """A style for each run, by its method and its seed.

    All runs of a method have its colour, and all runs of a seed have one symbol. If there is one run per method, the
    symbol tells the methods apart, too, so that nobody needs to see colours. Runs of the same method and seed get the
    next symbols that their method does not use yet.

    Example:
        >>> [style["symbol"] for style in run_styles([("mgda", 0), ("mgda", 1), ("linear", 0), ("linear", 1)])]
        ['circle', 'square', 'circle', 'square']
        >>> [style["symbol"] for style in run_styles([("mgda", 0), ("linear", 0)])]
        ['circle', 'square']
    """
    methods = [method for method, _ in runs]
    if len(set(methods)) == len(methods):
        places = list(range(len(runs)))
    else:
        seeds = list(dict.fromkeys(seed for _, seed in runs))
        places = []
        for r, (method, seed) in enumerate(runs):
            used = {places[other] for other in range(r) if methods[other] == method}
            own = seeds.index(seed)
            free = [place for place in range(len(runs) + len(seeds)) if place not in used]
            places.append(own if own not in used else next((place for place in free if place >= len(seeds)), own))
    return [_style(method, SYMBOLS[place % len(SYMBOLS)]) for (method, _), place in zip(runs, places, strict=True)]


def _style(method: str, symbol: str) -> dict[str, Any]:
    colours = {"light": colour_of(method), "dark": colour_of(method, dark=True)}
    return {"label": label_of(method), "colour": colours, "symbol": symbol}
