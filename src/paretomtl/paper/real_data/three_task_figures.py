"""Figures of three tasks: pairs of losses, parallel coordinates, hypervolumes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from paretomtl.compare import Row
from paretomtl.methods.registry import label_of
from paretomtl.paper.panels import draw_strip, grid, layer, legend, name_lines, panel_title
from paretomtl.paper.real_data.cells import EXPERTS, SHARED
from paretomtl.paper.rows import has, pick_by_seed
from paretomtl.report.figures.layers import (
    TEST_LOSS,
    Layer,
    Limits,
    Point,
    Quantity,
    best_alone,
    outside,
    panel_limits,
    to_unit,
)
from paretomtl.report.figures.parallel import Polyline, draw_parallel
from paretomtl.report.figures.scatter2d import draw_alone, label_outer, point_to_better
from paretomtl.report.figures.style import INK, add_caption

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PARTS = (SHARED, EXPERTS)
BEATEN = "A hollow marker is a model that another one of the same kind beats in all three tasks."
"""How projections show dominated models."""
_ORDER = ("pareto-mtl", "linear", "random-search", "mgda", "gradnorm", "uncertainty", "single-task")
TASK_LINES: tuple[dict[str, Any], ...] = (
    {"linestyle": "-", "marker": "o"},
    {"linestyle": (0, (5, 1.5)), "marker": "s"},
    {"linestyle": (0, (1.2, 1.2)), "marker": "^"},
)
"""The lines of models that favour the first, the second and the third task."""
THICK: dict[str, Any] = {"linewidth": 1.7, "markersize": 5, "zorder": 3}
"""The lines of models that matter."""
_ANY = (-math.inf, math.inf)
_EVERY: dict[str, Any] = {"color": "0.7", "linewidth": 0.6, "zorder": 2}


@dataclass(frozen=True)
class Pairs:
    """A line of panels, one for each pair of the three tasks.

    Attributes:
        title: of the line.
        layers: the models; each layer has rows.
        alone: rows of separate networks; the first one is shown as dotted lines.
    """

    title: str
    layers: Sequence[Layer]
    alone: Sequence[Row] = ()


def draw_projections(
    lines: Sequence[Pairs], title: str, text: str = "", *, alike: bool = False, quantity: Quantity = TEST_LOSS
) -> Figure | None:
    """Draw models of three tasks in pairs of tasks; all lines have the same limits with ``alike``."""
    shown = [line for line in lines if line.layers or line.alone]
    if not shown:
        return None
    figure, axes = grid(len(shown), 3, height=2.65 + 0.6 / len(shown))
    for i, line in enumerate(shown):
        together = shown if alike else [line]
        limits = _limits(quantity, [each for one in together for each in one.layers], together[0].alone)
        for k, pair in enumerate(itertools.combinations(range(3), 2)):
            beyond = _draw_pair(axes[3 * i + k], quantity, line, pair, limits)
            panel_title(axes[3 * i + k], " " if k else line.title, beyond or " ")
    label_outer(axes)
    point_to_better(axes[0], quantity)
    legend(figure)
    add_caption(figure, title, f"{text} {BEATEN}".strip())
    return figure


def _draw_pair(axis: Axes, quantity: Quantity, line: Pairs, pair: tuple[int, int], limits: Limits) -> str:
    """Draw two of three tasks; return a note on models outside the panel."""
    for each in line.layers:
        _draw_models(axis, quantity, each, pair)
    best = best_alone(quantity, line.alone, 3)
    draw_alone(axis, [best[task] for task in pair])
    first = next(row for row in (*(each.rows[0] for each in line.layers), *line.alone))
    names = [quantity.of(first["tasks"][task]) for task in pair]
    axis.set(xlim=limits[pair[0]], ylim=limits[pair[1]], xlabel=names[0], ylabel=names[1])
    axis.set_box_aspect(1)
    axis.locator_params(nbins=4)
    return outside(quantity, line.layers, tuple(ends if i in pair else _ANY for i, ends in enumerate(limits)))


def _draw_models(axis: Axes, quantity: Quantity, each: Layer, pair: tuple[int, int]) -> None:
    """Draw models in two of three tasks; those that are dominated in all three are hollow and lie below."""
    points = quantity.points(each.rows[0])
    front = quantity.along_front(points)
    beaten = [point for k, point in enumerate(points) if k not in front]
    hollow: dict[str, Any] = {"c": "white", "edgecolors": each.colour, "linewidths": 0.7, "zorder": 2}
    axis.scatter(*_columns(beaten, pair), s=15, marker=each.marker, **hollow)
    solid: dict[str, Any] = {"c": each.colour, "edgecolors": "white", "linewidths": 0.5, "zorder": 3}
    size = 60 if each.marker == "*" else 28  # stars are small
    axis.scatter(*_columns([points[k] for k in front], pair), s=size, marker=each.marker, label=each.label, **solid)


def _columns(points: Sequence[Point], pair: tuple[int, int]) -> tuple[list[float], list[float]]:
    return [point[pair[0]] for point in points], [point[pair[1]] for point in points]


def draw_parallels(rows: Sequence[Row], title: str) -> Figure | None:
    """Draw a line for each network: Pareto MTL and random search, or else a grid, on the same axes."""
    rival = next((method for method in ("random-search", "linear") if has(rows, method=method)), "random-search")
    results = []
    for part in PARTS:
        layers = filled(
            [
                first_seed("pareto-mtl", rows, part=part, note="25 even", label=label_of("pareto-mtl")),
                first_seed(rival, rows, part=part),
            ]
        )
        if layers:
            results.append((part, layers))
    if not results:
        return None
    columns = max(len(layers) for _, layers in results)
    figure, axes = grid(len(results), columns, height=2.7 + 0.5 / len(results))
    for i, (part, layers) in enumerate(results):
        limits = _limits(TEST_LOSS, layers)
        for axis, each in itertools.zip_longest(axes[columns * i : columns * (i + 1)], layers):
            if each is None:
                axis.remove()
                continue
            count = f"{len(each.rows[0]['losses'])} models"
            note = ", ".join(filter(None, (part, count, outside(TEST_LOSS, [each], limits))))
            _draw_models_as_lines(axis, each, limits)
            panel_title(axis, each.label, note, " ")  # with room for the numbers at the upper ends
    legend(figure)
    add_caption(
        figure,
        f"{title}: three test losses at once, first seed",
        "Up is better on each axis. A grey line is a model; thick ones favour a task more than all others shown.",
    )
    return figure


def _draw_models_as_lines(axis: Axes, each: Layer, limits: Limits) -> None:
    """Draw the models inside the limits, and on top those that favour a task most."""
    row = each.rows[0]
    inside = [k for k, point in enumerate(row["losses"]) if None not in point and _is_inside(point, limits)]
    lines = [Polyline(row["losses"][k], _EVERY) for k in inside]
    for task, style in enumerate(TASK_LINES if inside else ()):
        model = min(inside, key=lambda k: _disfavour(row, k, task))
        lines.append(Polyline(row["losses"][model], {"color": each.colour, **THICK, **style}))
        axis.plot([], [], color=INK, label=f"Favours {row['tasks'][task].replace('-', ' ')} most", **THICK, **style)
    draw_parallel(axis, row["tasks"], tuple((high, low) for low, high in limits), lines)


def _is_inside(point: Sequence[float], limits: Limits) -> bool:
    return all(0 <= value <= 1 for value in to_unit(point, limits))


def _disfavour(row: Row, model: int, task: int) -> tuple[float, float]:
    """How little a preference favours a task, and in a tie how much it favours one of the others."""
    vector = row["vectors"][model]
    shares = [float(value / (sum(vector) or 1.0)) for value in vector]
    own, most = shares[task], max(share for other, share in enumerate(shares) if other != task)
    return (round(own if row["reading"] == "direction" else 1 - own, 6), most)


def draw_hypervolumes(rows: Sequence[Row], title: str) -> Figure | None:
    """Draw every seed as a point and the mean as a bar, with the same lines in the panel of each network."""
    measured = [row for row in rows if row["hypervolume"] is not None and row["stage"] == "final"]
    parts = [part for part in PARTS if has(measured, part=part)]
    if not parts:
        return None
    cells = {(row["method"], row["note"]) for row in measured if row["part"] in parts}
    lines = sorted(cells, key=_place, reverse=True)
    figure, axes = grid(1, len(parts), height=0.23 * len(lines) + 0.8)
    for i, (axis, part) in enumerate(zip(axes, parts, strict=True)):
        mine = [row for row in measured if row["part"] == part]
        for height, (method, note) in enumerate(lines):
            values = [row["hypervolume"] for row in pick_by_seed(mine, method=method, note=note)]
            draw_strip(axis, height, method, values)
        names = [", ".join(filter(None, (label_of(method), note))) for method, note in lines]
        name_lines(axis, names if i == 0 else [""] * len(names))
        reference = ", ".join(f"{value:g}" for value in mine[0]["reference"])
        axis.set_xlabel(f"hypervolume at ({reference})")
        axis.locator_params(axis="x", nbins=4)
        panel_title(axis, part.capitalize() if len(parts) > 1 else "")
    note = "A marker is a seed, a bar is their mean. Single task is one point of separate networks, not a front."
    if any(not has(measured, part=part, method=method, note=each) for part in parts for method, each in lines):
        note += " Empty lines were not trained."
    add_caption(figure, f"{title}: hypervolume of the test losses, larger is better", note)
    return figure


def _place(cell: tuple[str, str]) -> tuple[int, bool, int, bool, str]:
    """The sort key of cells: method; unscaled before scaled, few vectors before many, random before even."""
    method, note = cell
    count = note.split(" ")[0]
    place = _ORDER.index(method) if method in _ORDER else len(_ORDER)
    return place, "scaled" in note, int(count) if count.isdigit() else 0, "even" in note, note


def first_seed(method: str, rows: Sequence[Row], *, part: str = SHARED, note: str = "", **options: Any) -> Layer:
    """The first seed of a cell, in the style of its method."""
    label = ", ".join(filter(None, (label_of(method), note)))
    results = pick_by_seed(rows, part=part, method=method, note=note)[:1]
    return layer(method, results, **{"label": label, **options})


def filled(layers: Sequence[Layer]) -> list[Layer]:
    """The layers that have rows."""
    return [each for each in layers if each.rows]


def _limits(quantity: Quantity, layers: Iterable[Layer], alone: Sequence[Row] = ()) -> Limits:
    """Limits with room for all models that are not much worse than most."""
    return panel_limits(quantity, list(layers), alone, origin=False, outliers=False)
