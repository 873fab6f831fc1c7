"""Figures of three tasks: 3D scatter plots, pairs of losses, parallel coordinates, hypervolumes."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from paretomtl.compare import Row
from paretomtl.methods.registry import paper_label_of
from paretomtl.paper.panels import caption, draw_strip, grid, layer, legend, legend_label, name_lines
from paretomtl.paper.real_data.cells import EXPERTS, SHARED
from paretomtl.paper.rows import has, pick_by_seed
from paretomtl.report.figures.layers import TEST_LOSS, Layer, Limits, outside, panel_limits
from paretomtl.report.figures.parallel import Polyline, draw_parallel
from paretomtl.report.figures.scatter2d import draw_scatter2d, projected
from paretomtl.report.figures.scatter3d import PROJECTION_3D, draw_scatter3d
from paretomtl.report.figures.style import SMALL

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PARTS = (SHARED, EXPERTS)
_ORDER = ("pareto-mtl", "linear", "random-search", "mgda", "gradnorm", "uncertainty", "single-task")
_TASK_LINES: tuple[dict[str, Any], ...] = (
    {"color": "#0b5fa5", "linestyle": "-"},
    {"color": "#c98a00", "linestyle": (0, (5, 1.5))},
    {"color": "#c1272d", "linestyle": (0, (1.2, 1.2))},
)
_NO_TASK: dict[str, Any] = {"color": "0.6", "linestyle": "-"}
_SPACE_NOTE = "Test losses of the first seed. Larger: nearer to the eye. Lines lead down to the floor."
_ALIKE = 1e-3  # numbers of a preference that differ less are the same


def draw_spaces(lines: Sequence[Sequence[tuple[str, list[Layer]]]], *, alike: bool = False) -> Figure | None:
    """Draw panels in 3D; those of a line have the same limits, or all of them with ``alike``."""
    shown = [line for line in lines if line]
    if not shown:
        return None
    columns = max(map(len, shown))
    figure, axes = grid(len(shown), columns, width=4.0, height=4.1, below=0.6, **PROJECTION_3D)
    number = 0
    for i, line in enumerate(shown):
        limits = _limits(each for one in (shown if alike else [line]) for _, layers in one for each in layers)
        for axis, panel in itertools.zip_longest(axes[columns * i : columns * (i + 1)], line):
            if panel is None:
                axis.remove()
                continue
            caption(axis, number, panel[0], draw_scatter3d(axis, TEST_LOSS, panel[1], limits), drop=22)
            number += 1
    legend(figure, _SPACE_NOTE)
    return figure


def draw_projections(rows: Sequence[Row], title: str) -> Figure | None:
    """Draw a line for each network, with a panel for each pair of tasks."""
    results = []
    for part in _PARTS:
        layers = filled(
            [
                first_seed("pareto-mtl", rows, part=part, note="25 random"),
                first_seed("pareto-mtl", rows, part=part, note="25 even", hollow=has(rows, note="25 random")),
                first_seed("random-search", rows, part=part),
                first_seed("linear", rows, part=part),
            ]
        )
        alone = pick_by_seed(rows, part=part, method="single-task")[:1]
        if layers or alone:
            results.append((part, layers, alone))
    if not results:
        return None
    figure, axes = grid(len(results), 3)
    pairs = list(itertools.combinations(range(3), 2))
    for i, axis in enumerate(axes):
        (part, layers, alone), pair = results[i // 3], pairs[i % 3]
        seen = [replace(each, rows=[projected(row, pair) for row in each.rows]) for each in layers]
        separate = [projected(row, pair) for row in alone]
        beyond = draw_scatter2d(axis, TEST_LOSS, seen, separate, _limits(seen, separate))
        caption(axis, i, f"{title}, {part}", beyond)
    legend(figure, "Each pair of the three test losses, first seed.")
    return figure


def draw_parallels(rows: Sequence[Row], title: str) -> Figure | None:
    """Draw a line for each network: Pareto MTL and random search, or else a grid, on the same axes."""
    results = []
    rival = next((method for method in ("random-search", "linear") if has(rows, method=method)), "random-search")
    for part in _PARTS:
        layers = filled(
            [
                first_seed("pareto-mtl", rows, part=part, note="25 even"),
                first_seed(rival, rows, part=part),
            ]
        )
        if layers:
            results.append((part, layers))
    if not results:
        return None
    columns = max(len(layers) for _, layers in results)
    figure, axes = grid(len(results), columns, width=4.2, height=3.6, below=0.8)
    number = 0
    for i, (part, layers) in enumerate(results):
        limits = _limits(layers)
        for axis, each in itertools.zip_longest(axes[columns * i : columns * (i + 1)], layers):
            if each is None:
                axis.remove()
                continue
            row = each.rows[0]
            polylines = [
                Polyline(point, _last_task(row, k)) for k, point in enumerate(row["losses"]) if None not in point
            ]
            draw_parallel(axis, row["tasks"], limits, polylines)
            text = f"{title}, {part}:\n{each.label}"
            caption(axis, number, text, outside(TEST_LOSS, [each], limits), drop=34)
            number += 1
    legend(
        figure,
        "Test losses of the first seed: lower is better. Lines by the task that the preference puts last, which has\n"
        f"the largest number in a preference vector of Pareto MTL, and the smallest weight in {paper_label_of(rival)}.",
    )
    return figure


def _last_task(row: Row, model: int) -> dict[str, Any]:
    """The style of a model's line, by the task that its preference puts last, if there is one."""
    vector = row["vectors"][model]
    losses = vector if row["reading"] == "direction" else [-weight for weight in vector]
    last = [task for task, value in enumerate(losses) if value > max(losses) - _ALIKE]
    common: dict[str, Any] = {"linewidth": 1.1, "zorder": 2, "marker": "o", "markersize": 2.5}
    if len(last) > 1:
        return {**common, **_NO_TASK, "label": "no single one"}
    return {**common, **_TASK_LINES[last[0]], "label": f"{row['tasks'][last[0]].replace('-', ' ')} last"}


def draw_hypervolumes(rows: Sequence[Row], title: str) -> Figure | None:
    """Draw every seed as a point and the mean as a bar, with the same lines in the panel of each network."""
    measured = [row for row in rows if row["hypervolume"] is not None and row["stage"] == "final"]
    parts = [part for part in _PARTS if has(measured, part=part)]
    if not parts:
        return None
    cells = {(row["method"], row["note"]) for row in measured if row["part"] in parts}
    lines = sorted(cells, key=_place, reverse=True)
    width = 3.9 if len(parts) == 1 else 3.5
    figure, axes = grid(1, len(parts), width=width + 0.8, height=0.34 * len(lines) + 1.1, below=0.3)
    for i, (axis, part) in enumerate(zip(axes, parts, strict=True)):
        mine = [row for row in measured if row["part"] == part]
        for height, (method, note) in enumerate(lines):
            values = [row["hypervolume"] for row in pick_by_seed(mine, method=method, note=note)]
            draw_strip(axis, height, method, values)
        names = [", ".join(filter(None, (legend_label(method), note))) for method, note in lines]
        name_lines(axis, names if i == 0 else [""] * len(names))
        reference = ", ".join(f"{value:g}" for value in mine[0]["reference"])
        axis.set_xlabel(f"hypervolume of the test losses at ({reference})")
        axis.locator_params(axis="x", nbins=4)
        caption(axis, i, f"{title}, {part}")
    note = "Points: seeds. Bars: their mean. Single task: one point made of separate networks, which is no front."
    if any(not has(measured, part=part, method=method, note=each) for part in parts for method, each in lines):
        note += "\nEmpty lines: not trained."
    figure.supxlabel(note, fontsize=SMALL + 1)
    return figure


def _place(cell: tuple[str, str]) -> tuple[int, bool, int, bool, str]:
    """The sort key of cells: method; unscaled before scaled, few vectors before many, random before even."""
    method, note = cell
    count = note.split(" ")[0]
    place = _ORDER.index(method) if method in _ORDER else len(_ORDER)
    return place, "scaled" in note, int(count) if count.isdigit() else 0, "even" in note, note


def first_seed(method: str, rows: Sequence[Row], *, part: str = SHARED, note: str = "", **options: Any) -> Layer:
    """The first seed of a cell, in the style of its method."""
    label = ", ".join(filter(None, (legend_label(method), note)))
    results = pick_by_seed(rows, part=part, method=method, note=note)[:1]
    return layer(method, results, **{"label": label, **options})


def filled(layers: Sequence[Layer]) -> list[Layer]:
    """The layers that have rows."""
    return [each for each in layers if each.rows]


def _limits(layers: Iterable[Layer], alone: Sequence[Row] = ()) -> Limits:
    """Limits with room for the solutions of Pareto MTL."""
    main = [replace(each, joined=each.rows[0]["method"] == "pareto-mtl") for each in layers]
    return panel_limits(TEST_LOSS, main, alone, origin=False)
