"""Plotly figures of a front, for screens: two tasks in a plane, three in pairs, more in parallel coordinates."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from paretomtl._support.imports.optional_packages import require
from paretomtl._support.text import shorten
from paretomtl.front import Front
from paretomtl.front.indicators import finite_nondominated
from paretomtl.methods.registry import colour_of, label_of

_LONG = 40  # letters of a name


def draw_interactive(front: Front, *, split: str | None = None, metrics: bool | None = None) -> Any:
    """Draw a front with plotly; see :meth:`paretomtl.Front.figure`."""
    split = front.ranking_split if split is None else split
    if split not in front.losses:
        raise ValueError(f"'split' must be one of {list(front.losses)}. Got {split!r} instead.")
    values = _values(front, split, metrics)
    title = f"{shorten(front.problem, _LONG)}, {label_of(front.method)}, on {split}"
    names = list(values)
    if len(names) > 3:
        return _parallel(front, values, title)
    pairs = list(itertools.combinations(names, 2)) or [(names[0], names[0])]
    return _scatter(front, values, pairs, split, title)


def _values(front: Front, split: str, metrics: bool | None) -> dict[str, list[float]]:
    """One column per task: its metric if there is one, else its loss."""
    kept = front.metrics.get(split, {})
    own = {task: next((name for name in kept if name.startswith(f"{task} ")), None) for task in front.tasks}
    if metrics and not all(own.values()):
        missing = [task for task, name in own.items() if name is None]
        raise ValueError(f"'metrics' must be False or None without a metric for each task. Got none for {missing}.")
    named = {}
    for t, task in enumerate(front.tasks):
        metric = own[task] if metrics is not False else None
        column = kept[metric] if metric else front.losses[split][:, t]
        named[metric or f"{task} loss"] = column.double().tolist()
    return named


def _scatter(
    front: Front, values: dict[str, list[float]], pairs: Sequence[tuple[str, str]], split: str, title: str
) -> Any:
    subplots = require("plotly.subplots", "report")
    graph = require("plotly.graph_objects", "report")
    figure = subplots.make_subplots(rows=1, cols=len(pairs))
    best = finite_nondominated(front.losses[split]).tolist()
    numbered = len(front) <= 12
    for place, (x, y) in enumerate(pairs, 1):
        labels = [str(name) for name in (front.names or front.subproblems)]
        trace = graph.Scatter(
            x=values[x],
            y=values[y],
            mode="markers+text" if numbered else "markers",
            text=[_plain(label) for label in labels] if numbered else None,
            hovertext=[_plain(f"model {label}") for label in labels],
            textposition="top right",
            marker={
                "color": colour_of(front.method),
                "size": 9,
                "symbol": ["circle" if kept else "circle-open" for kept in best],
            },
        )
        figure.add_trace(trace, row=1, col=place)
        figure.update_xaxes(title_text=_plain(x), row=1, col=place)
        figure.update_yaxes(title_text=_plain(y), row=1, col=place)
    figure.update_layout(title=_plain(title), showlegend=False, template="plotly_white")
    return figure


def _parallel(front: Front, values: dict[str, list[float]], title: str) -> Any:
    graph = require("plotly.graph_objects", "report")
    dimensions = []
    for name, column in values.items():
        lower = front.better.get(name, "lower" if name.endswith(" loss") else "higher") == "lower"
        finite = [value for value in column if value == value and abs(value) != float("inf")] or [0.0, 1.0]
        ends = [max(finite), min(finite)] if lower else [min(finite), max(finite)]  # best is up
        dimensions.append({"label": _plain(name), "values": column, "range": ends})
    figure = graph.Figure(graph.Parcoords(line={"color": colour_of(front.method)}, dimensions=dimensions))
    figure.update_layout(title=_plain(title), template="plotly_white")
    return figure


def _plain(text: str) -> str:
    """Escape what plotly takes for markup or for a formula."""
    short = shorten(text, _LONG)
    return short.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("$", "&#36;")
