"""The figures of what the paper has in tables, faces and localization, drawn from stored rows alone."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paretomtl.compare import Row
from paretomtl.methods.registry import colour_of
from paretomtl.paper.labels import label_of
from paretomtl.paper.panels import caption, chosen, draw_figures, grid, layer, legend
from paretomtl.paper.real_data.tables import SHOWN
from paretomtl.paper.statistics import mean
from paretomtl.report.figures.layers import Layer, Limits, Quantity, panel_limits
from paretomtl.report.figures.parallel import Polyline, draw_parallel
from paretomtl.report.figures.scatter2d import draw_scatter2d, projected
from paretomtl.report.figures.scatter3d import PROJECTION_3D, draw_scatter3d

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_BASELINES = ("linear", "mgda", "gradnorm", "uncertainty")
_BALANCED: dict[str, Any] = {"color": "black", "linestyle": "-", "marker": "o"}
_FAVOURING: tuple[dict[str, Any], ...] = (
    {"color": "#c1272d", "linestyle": "-", "marker": "s"},
    {"color": "#0b5fa5", "linestyle": (0, (5, 1.5)), "marker": "^"},
    {"color": "#c98a00", "linestyle": (0, (1.5, 1.2)), "marker": "D"},
)
_THIN: dict[str, Any] = {
    "linear": {"linestyle": "-"},
    "mgda": {"linestyle": (0, (6, 2))},
    "gradnorm": {"linestyle": (0, (3, 2))},
    "uncertainty": {"linestyle": (0, (6, 2, 1, 2))},
    "single-task": {"linestyle": (0, (1, 1.5))},
}
_ERRORS = Quantity("losses", "error")
_SCALED_MARKERS = ("D", "s", "^", "v", "h")
_MEANS = "Means over seeds on test: less is better; of gender and race the share of wrong labels, of age years."
_NAMES = ("translation error (m)", "rotation error (degrees)")


def draw_faces(rows: Sequence[Row], folder: Path) -> list[Path]:
    """Gender, race and age: the four vectors beside the other methods, for each way to scale the losses.

    Points in space, each pair of errors, parallel coordinates.
    """
    figures = {"faces-scatter": _faces_space, "faces-projections": _faces_projections, "faces-parallel": _faces}
    return draw_figures(rows, folder, figures)


def draw_localization(rows: Sequence[Row], folder: Path) -> list[Path]:
    """Metres against degrees: the three vectors beside the other methods, for each way to scale the losses."""
    return draw_figures(rows, folder, {"localization": _localization})


@dataclass(frozen=True)
class _Summary:
    """The rows of a method, and their mean over seeds: a value of each metric for each solution."""

    method: str
    rows: Sequence[Row]
    means: Sequence[Sequence[float | None]]


def _faces(rows: Sequence[Row]) -> Figure | None:
    panels, baselines, alone = _variants(rows)
    if not panels:
        return None
    ours = [course for _, mine in panels for course in (mine.means if mine else ())]
    theirs = [course for each in (*baselines, *alone) for course in each.means]
    first = next(each.rows[0] for each in (*(mine for _, mine in panels), *baselines, *alone) if each)
    metrics = SHOWN["utkface"]
    limits = tuple(
        _ends([course[i] for course in (*ours, *theirs)], first["better"][name]) for i, name in enumerate(metrics)
    )
    thin = [_thin(each, course) for each in (*baselines, *alone) for course in each.means]
    figure, axes = _panels(len(panels), height=3.4)
    for i, (axis, (note, mine)) in enumerate(zip(axes, panels, strict=True)):
        thick = [_favouring(mine.rows[0], k, course) for k, course in enumerate(mine.means)] if mine else []
        draw_parallel(axis, [name.replace(" ", "\n") for name in metrics], limits, [*thick, *thin])
        caption(axis, i, _title("Faces", note, mine), drop=54)
    legend(figure, "Means over seeds on test. Up is better on every axis: the one of age is turned.", columns=5)
    return figure


def _faces_space(rows: Sequence[Row]) -> Figure | None:
    """Losses as they are beside the other methods; then beside losses that are scaled."""
    plain, scaled, others = _faces_layers(rows)
    panels = [("losses as they are, and other methods", [*plain, *others])] if plain or others else []
    panels += [("losses as they are, and scaled", [*plain, *scaled])] if scaled else []
    if not panels:
        return None
    limits = panel_limits(_ERRORS, [*plain, *scaled, *others], origin=False)
    figure, axes = grid(1, len(panels), width=4.2, height=4.1, below=0.9, **PROJECTION_3D)
    for i, (axis, (words, layers)) in enumerate(zip(axes, panels, strict=True)):
        caption(axis, i, f"Faces: {words}", draw_scatter3d(axis, _ERRORS, layers, limits), drop=22)
    legend(figure, f"{_MEANS}\nLarger: nearer to the eye. Lines lead down to the floor.", columns=4)
    return figure


def _faces_projections(rows: Sequence[Row]) -> Figure | None:
    """A panel for each pair of tasks."""
    plain, scaled, others = _faces_layers(rows)
    layers = [*others, *scaled, *plain]
    if not layers:
        return None
    figure, axes = grid(1, 3)
    for i, (axis, pair) in enumerate(zip(axes, itertools.combinations(range(3), 2), strict=True)):
        seen = [replace(each, rows=[projected(row, pair) for row in each.rows]) for each in layers]
        beyond = draw_scatter2d(axis, _ERRORS, seen, (), panel_limits(_ERRORS, seen, origin=False))
        names = [layers[0].rows[0]["tasks"][task] for task in pair]
        axis.set(xlabel=names[0], ylabel=names[1])
        caption(axis, i, f"Faces: {' and '.join(name.split()[0] for name in names)}", beyond)
    legend(figure, _MEANS, columns=4)
    return figure


def _faces_layers(rows: Sequence[Row]) -> tuple[list[Layer], list[Layer], list[Layer]]:
    """Pareto MTL with losses as they are, and scaled in each way; the methods beside it with separate networks."""
    panels, baselines, alone = _variants(rows)
    ours = {note: [_errors(mine)] for note, mine in panels if mine}
    markers = dict(zip((note for note in ours if note), itertools.cycle(_SCALED_MARKERS), strict=False))
    name = label_of("pareto-mtl")
    plain = [layer("pareto-mtl", mine) for note, mine in ours.items() if not note]
    scaled = [
        layer("pareto-mtl", ours[note], hollow=True, marker=marker, label=f"{name}, {note}")
        for note, marker in markers.items()
    ]
    others = [layer(each.method, [_errors(each)], label=_name(each.method)) for each in (*baselines, *alone)]
    return plain, scaled, others


def _errors(each: _Summary) -> Row:
    """The means over seeds as errors, so that less is better in every task: one minus an accuracy."""
    row = each.rows[0]
    names = SHOWN[row["problem"]]
    rising = [row["better"][name] == "higher" for name in names]
    points = [
        [1 - value if up and value is not None else value for value, up in zip(point, rising, strict=True)]
        for point in each.means
    ]
    common = {"tasks": [f"{task} error" for task in row["tasks"]], "reference": [math.inf] * len(names)}
    return {**row, **common, "reading": "", "losses": points}


def _name(method: str) -> str:
    return "Fixed weights" if method == "linear" else label_of(method)


def _thin(each: _Summary, course: Sequence[float | None]) -> Polyline:
    style = {"color": colour_of(each.method), "linewidth": 0.8, "zorder": 2, "label": _name(each.method)}
    style |= _THIN[each.method]
    return Polyline(course, style)


def _favouring(row: Row, model: int, course: Sequence[float | None]) -> Polyline:
    """Named by the task that the vector favours, which has the smallest number in it."""
    vector = row["vectors"][model]
    least = [task for task, value in enumerate(vector) if value < min(vector) + 1e-3]
    style, word = _BALANCED, "balanced"
    if len(least) == 1:
        style, word = _FAVOURING[least[0]], f"favours {row['tasks'][least[0]]}"
    label = f"{label_of('pareto-mtl')}, {word}"
    return Polyline(course, {"linewidth": 1.6, "markersize": 4.5, "zorder": 3, "label": label, **style})


def _ends(values: Sequence[float | None], better: str) -> tuple[float, float]:
    """From the worst to the best, with some room."""
    found = [value for value in values if value is not None]
    low, high = min(found, default=0.0), max(found, default=1.0)
    room = 0.05 * (high - low) or 0.05
    return (high + room, low - room) if better == "lower" else (low - room, high + room)


def _localization(rows: Sequence[Row]) -> Figure | None:
    panels, baselines, alone = _variants(rows)
    if not panels:
        return None
    others = [
        layer(each.method, _in_plane(each), others=True, joined=len(each.means) > 1, numbered=False)
        for each in baselines
    ]
    separate = _in_plane(alone[0])[:1] if alone else []
    ours = [layer("pareto-mtl", _in_plane(mine) if mine else [], joined=True, others=True) for _, mine in panels]
    limits: Limits = panel_limits(_ERRORS, [*ours, *others], separate, origin=False)
    figure, axes = _panels(len(panels), height=3.7)
    for i, (axis, (note, mine), pareto) in enumerate(zip(axes, panels, ours, strict=True)):
        beyond = draw_scatter2d(axis, _ERRORS, [*others, pareto], separate, limits)
        axis.set(xlabel=_NAMES[0], ylabel=_NAMES[1])
        caption(axis, i, _title("Localization", note, mine), beyond)
    numbers = "Numbers: the vectors (1, 0), which favours rotation, to (0, 1), which favours translation."
    legend(figure, f"Large: means over seeds on test. Small and faint: the seeds.\n{numbers}", columns=6)
    return figure


def _in_plane(each: _Summary) -> list[Row]:
    """The mean and then the seeds, as rows that a plane can draw: without rays, and with any error welcome."""
    common = {"reading": "", "reference": [math.inf, math.inf]}
    means = {**each.rows[0], **common, "losses": [list(point) for point in each.means]}
    return [means, *({**row, **common, "losses": _values(row)} for row in each.rows)]


def _variants(rows: Sequence[Row]) -> tuple[list[tuple[str, _Summary | None]], list[_Summary], list[_Summary]]:
    """Pareto MTL for each way to scale the losses; the methods beside it; separate networks.

    Where there is no Pareto MTL but something else, one panel is without it.
    """
    notes = dict.fromkeys(["", *(row["note"] for row in rows if row["method"] == "pareto-mtl")])
    every = [(note, _summary(rows, "pareto-mtl", note)) for note in notes]
    panels: list[tuple[str, _Summary | None]] = [(note, mine) for note, mine in every if mine]
    baselines = [found for method in _BASELINES if (found := _summary(rows, method))]
    alone = [found for method in ("single-task",) if (found := _summary(rows, method))]
    if not panels and (baselines or alone):
        panels = [("", None)]
    return panels, baselines, alone


def _summary(rows: Sequence[Row], method: str, note: str = "") -> _Summary | None:
    mine = chosen(rows, method=method, note=note)
    if not mine:
        return None
    each = [_values(row) for row in mine]
    means = [[_mean([seed[k][i] for seed in each]) for i in range(len(point))] for k, point in enumerate(each[0])]
    return _Summary(method, mine, means)


def _values(row: Row) -> list[list[float | None]]:
    """The metrics of the paper's table for each solution; those of separate networks make one, each in its own task."""
    metrics = [row["metrics"][name] for name in SHOWN[row["problem"]]]
    if row["method"] == "single-task":
        return [[values[task] for task, values in enumerate(metrics)]]
    return [list(point) for point in zip(*metrics, strict=True)]


def _mean(values: Sequence[float | None]) -> float | None:
    found = mean([value for value in values if value is not None])
    return None if math.isnan(found) else found


def _panels(count: int, height: float) -> tuple[Figure, list[Any]]:
    columns = min(3, count)
    return grid(-(-count // columns), columns, count, height=height, below=1.1)


def _title(problem: str, note: str, mine: _Summary | None) -> str:
    way = "" if mine is None else f": losses {note or 'as they are'}"
    return f"{problem}{way}"
