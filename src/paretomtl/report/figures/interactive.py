"""Plotly figures for screens: fronts, comparisons and diagnoses, with the captions of the figures for papers."""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from paretomtl._support.argument_checks import quote
from paretomtl._support.imports.optional_packages import require
from paretomtl._support.splits import split_word
from paretomtl._support.text import shorten
from paretomtl.compare import Row, summaries
from paretomtl.compare.rows import is_ideal, points_tensor, read_row, rows_split
from paretomtl.diagnosis import Diagnosis
from paretomtl.diagnosis.evidence import CONFLICT
from paretomtl.front import Front
from paretomtl.front.indicators import finite_nondominated
from paretomtl.front.task_metrics import task_metrics
from paretomtl.methods.registry import colour_of, label_of, symbol_of
from paretomtl.report.figures.captions import comparison_caption, diagnosis_caption, front_caption, front_title
from paretomtl.report.figures.comparison import balanced_models, padded
from paretomtl.report.figures.diagnosis import pair_marks, task_marks

_LONG = 40  # letters of a name
_WORDS = 100  # letters in a line of a caption


def interactive_front(front: Front, *, split: str | None = None, metrics: bool | None = None) -> Any:
    """Draw a front with plotly; see :meth:`paretomtl.Front.figure`."""
    split = front.ranking_split if split is None else split
    if split not in front.losses:
        raise ValueError(f"'split' must be one of {list(front.losses)}. Got {quote(split)} instead.")
    values = _values(front, split, metrics)
    names = list(values)
    if len(names) > 3:
        figure = _parallel(front, values)
    else:
        pairs = list(itertools.combinations(names, 2)) or [(names[0], names[0])]
        figure = _scatter(front, values, pairs, split)
    finite, best = front.losses[split].isfinite().all(-1), finite_nondominated(front.losses[split])
    rows, kept = (mask.nonzero().flatten().tolist() for mask in (finite, best))
    caption = front_caption(
        front,
        values,
        [not _is_lower(front, name) for name in names],
        rows,
        kept,
        beaten="hollow" if len(names) < 4 else "",
    )
    return _titled(figure, f"{front_title(front)}, on {split_word(split)}", caption)


def interactive_comparison(rows: Sequence[Row]) -> Any:
    """Draw a comparison with plotly; see :meth:`paretomtl.compare.Comparison.figure`."""
    subplots, graph = require("plotly.subplots", "report"), require("plotly.graph_objects", "report")
    rows = [read_row(row) for row in rows]
    table, ranking = summaries(rows), rows_split(rows)
    tasks, seed = rows[0]["tasks"], min(row["seed"] for row in rows)
    first = {row["method"]: row for row in rows if row["seed"] == seed}
    pairs = list(itertools.combinations(range(len(tasks)), 2)) if len(tasks) < 4 else [(0, 0)]
    specs = [[{}] * len(pairs), [{"colspan": len(pairs)}, *[None] * (len(pairs) - 1)]]
    figure = subplots.make_subplots(rows=2, cols=len(pairs), specs=specs, vertical_spacing=0.2)
    balanced = balanced_models(list(first.values()), ranking)
    for each in table:
        style = {"color": colour_of(each.method), "symbol": symbol_of(each.method), "size": 8}
        shared: dict[str, Any] = {"name": _plain(label_of(each.method)), "legendgroup": each.method, "marker": style}
        names = [_plain(label_of(each.method))] * each.seeds
        trace = graph.Scatter(x=list(each.hypervolumes), y=names, mode="markers", **shared)
        figure.add_trace(trace, row=2, col=1)
        shared["showlegend"] = False
        row = first.get(each.method)
        if len(tasks) > 3 and each.method in balanced:
            heights = _heights(balanced[each.method], balanced)
            trace = graph.Scatter(x=list(range(len(tasks))), y=heights, mode="lines+markers", **shared)
            figure.add_trace(trace, row=1, col=1)
        elif len(tasks) < 4 and row is not None and not is_ideal(row):
            points = points_tensor(row, ranking)
            for place, (i, j) in enumerate(pairs, 1):
                trace = graph.Scatter(x=points[:, i].tolist(), y=points[:, j].tolist(), mode="markers", **shared)
                figure.add_trace(trace, row=1, col=place)
    for place, (i, j) in enumerate(pairs if len(tasks) < 4 else [], 1):
        figure.update_xaxes(title_text=_plain(f"{tasks[i]} loss"), row=1, col=place)
        figure.update_yaxes(title_text=_plain(f"{tasks[j]} loss"), row=1, col=place)
    if len(tasks) > 3:
        figure.update_yaxes(title_text="balanced model, up is better", showticklabels=False, row=1, col=1)
        names = [_plain(shorten(task, 18)) for task in tasks]
        figure.update_xaxes(tickangle=0, tickvals=list(range(len(tasks))), ticktext=names, row=1, col=1)
    figure.update_xaxes(title_text=f"hypervolume on {split_word(ranking)}, a point per seed", row=2, col=1)
    figure.update_yaxes(autorange="reversed", type="category", row=2, col=1)
    figure.update_layout(height=540 + 28 * len(table))
    title = f"{rows[0]['problem']}: {len(table)} methods, on {split_word(ranking)}, models of seed {seed}"
    return _titled(figure, title, comparison_caption(rows))


def _heights(point: Tensor, others: Mapping[str, Tensor]) -> list[float]:
    """The losses of a model between 0, the worst of several, and 1, the best."""
    limits = padded(torch.stack(list(others.values())))
    return [(high - value) / (high - low) for value, (low, high) in zip(point.tolist(), limits, strict=True)]


def interactive_diagnosis(diagnosis: Diagnosis) -> Any:
    """Draw a diagnosis with plotly; see :meth:`paretomtl.Diagnosis.figure`."""
    subplots, graph = require("plotly.subplots", "report"), require("plotly.graph_objects", "report")
    titles = (
        f"joint training: % more loss than alone, on {split_word(diagnosis.split)}",
        "cosine of gradients; left: conflict",
    )
    figure = subplots.make_subplots(rows=1, cols=2, horizontal_spacing=0.3)
    panels = [task_marks(diagnosis), pair_marks(diagnosis)]
    for place, marks in enumerate(panels, 1):
        trace = graph.Scatter(
            x=[mark.value for mark in marks],
            y=list(range(len(marks))),
            error_x={"array": [mark.half_width for mark in marks]},
            text=[mark.word for mark in marks],
            textposition="top center",
            mode="markers+text",
            marker={"color": [mark.colour for mark in marks], "size": 9},
        )
        figure.add_trace(trace, row=1, col=place)
        ticks = {"tickvals": list(range(len(marks))), "ticktext": [_plain(mark.name) for mark in marks]}
        figure.update_yaxes(range=[len(marks) - 0.4, -0.8], row=1, col=place, **ticks)
        figure.update_xaxes(title_text=titles[place - 1], row=1, col=place)
    figure.add_vline(0.0, line_width=1, line_color="#999999", row=1, col=1)
    figure.add_vline(CONFLICT, line_width=1, line_dash="dash", line_color="#999999", row=1, col=2)
    figure.update_layout(showlegend=False, height=220 + 34 * max(map(len, panels)))
    return _titled(figure, f"{diagnosis.problem}: verdict {diagnosis.verdict.word}", diagnosis_caption(diagnosis))


def _titled(figure: Any, title: str, caption: str) -> Any:
    """Write a title and a caption above a figure, in the style of all figures for screens."""
    lines = textwrap.wrap(caption, _WORDS)
    text = "<br>".join(_escaped(line) for line in lines)
    figure.update_layout(
        title={
            "text": _escaped(shorten(title, _WORDS)),
            "subtitle": {"text": text, "font": {"size": 12}},
            "yref": "container",
            "y": 1.0,
            "yanchor": "top",
            "pad": {"t": 24},
        },
        margin={"t": 74 + 17 * len(lines)},
        template="plotly_white",
        font={"family": "system-ui, sans-serif"},
    )
    return figure


def _values(front: Front, split: str, metrics: bool | None) -> dict[str, list[float]]:
    """One column per task: its metric if there is one, else its loss."""
    kept = front.metrics.get(split, {})
    own = task_metrics(front.tasks, list(kept))
    if metrics and len(own) < len(front.tasks):
        missing = [task for task in front.tasks if task not in own]
        raise ValueError(f"'metrics' must be False or None without a metric for each task. Got none for {missing}.")
    named = {}
    for t, task in enumerate(front.tasks):
        metric = own.get(task) if metrics is not False else None
        column = kept[metric] if metric else front.losses[split][:, t]
        named[metric or f"{task} loss"] = column.double().tolist()
    return named


def _scatter(front: Front, values: dict[str, list[float]], pairs: Sequence[tuple[str, str]], split: str) -> Any:
    subplots = require("plotly.subplots", "report")
    graph = require("plotly.graph_objects", "report")
    figure = subplots.make_subplots(rows=1, cols=len(pairs))
    best = finite_nondominated(front.losses[split]).tolist()
    numbered, symbol = len(front) <= 12, symbol_of(front.method)
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
                "symbol": [symbol if kept else f"{symbol}-open" for kept in best],
            },
        )
        figure.add_trace(trace, row=1, col=place)
        figure.update_xaxes(title_text=_plain(x), row=1, col=place)
        figure.update_yaxes(title_text=_plain(y), row=1, col=place)
    figure.update_layout(showlegend=False)
    return figure


def _parallel(front: Front, values: dict[str, list[float]]) -> Any:
    graph = require("plotly.graph_objects", "report")
    dimensions = []
    for name, column in values.items():
        lower = _is_lower(front, name)
        finite = [value for value in column if value == value and abs(value) != float("inf")] or [0.0, 1.0]
        ends = [max(finite), min(finite)] if lower else [min(finite), max(finite)]  # best is up
        dimensions.append({"label": _plain(name), "values": column, "range": ends})
    return graph.Figure(graph.Parcoords(line={"color": colour_of(front.method)}, dimensions=dimensions))


def _is_lower(front: Front, name: str) -> bool:
    """Whether less is better on an axis."""
    return front.better.get(name, "lower" if name.endswith(" loss") else "higher") == "lower"


def _plain(text: str) -> str:
    """Escape what plotly takes for markup or for a formula."""
    return _escaped(shorten(text, _LONG))


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("$", "&#36;")
