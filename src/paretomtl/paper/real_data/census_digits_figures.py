"""The figures of three tasks, census income and three digits, drawn from stored rows alone."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paretomtl.compare import Row
from paretomtl.paper.labels import LABELS, label_of
from paretomtl.paper.panels import caption, chosen, draw_figures, draw_strip, grid, layer, legend, name_lines
from paretomtl.paper.real_data.studies import DIGIT_COUNTS, EXPERTS, SHARED
from paretomtl.paper.statistics import has
from paretomtl.report.figures.layers import TEST_LOSS, Layer, Limits, outside, panel_limits
from paretomtl.report.figures.parallel import Polyline, draw_parallel
from paretomtl.report.figures.scatter2d import draw_scatter2d, projected
from paretomtl.report.figures.scatter3d import PROJECTION_3D, draw_scatter3d
from paretomtl.report.figures.style import SMALL

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_TITLES = {"census": "Census income", "multi-mnist-3": "Three digits"}
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


def draw_census(rows: Sequence[Row], folder: Path) -> list[Path]:
    """Points in space (the paper's figure 8), each pair of losses, parallel coordinates, hypervolumes."""
    return draw_figures(rows, folder, {f"census-{name}": draw for name, draw in _figures(_census_space).items()})


def draw_three_digits(rows: Sequence[Row], folder: Path) -> list[Path]:
    """Points in space for 5 to 50 vectors, each pair of losses, parallel coordinates, hypervolumes."""
    return draw_figures(rows, folder, {f"three-digits-{name}": draw for name, draw in _figures(_digits_space).items()})


def _figures(space: Callable[[Sequence[Row]], Figure | None]) -> dict[str, Callable[[Sequence[Row]], Figure | None]]:
    return {
        "scatter": space,
        "projections": _projections,
        "parallel": _parallel,
        "hypervolume": _hypervolumes,
    }


def _census_space(rows: Sequence[Row]) -> Figure | None:
    """A line for each network: few and many vectors, and many beside as many random weights."""
    found: list[list[tuple[str, list[Layer]]]] = []
    for part in _PARTS:
        few = _first("pareto-mtl", rows, part=part, note="5 random", colour="black", marker="D", hollow=True)
        many = _first("pareto-mtl", rows, part=part, note="25 random")
        theirs = _first("random-search", rows, part=part)
        title = f"{_TITLES['census']}, {part}"
        found.append(
            [
                (f"{title}:\n5 and 25 random vectors", _filled([many, few])),
                (f"{title}:\nPareto MTL and random search, 25 each", _filled([many, theirs])),
            ]
        )
    return _spaces([[panel for panel in line if panel[1]] for line in found])


def _digits_space(rows: Sequence[Row]) -> Figure | None:
    panels = []
    for count in DIGIT_COUNTS:
        each = _first("pareto-mtl", rows, note=f"{count} even", label=label_of("pareto-mtl"))
        if each.rows:
            panels.append((f"{_TITLES['multi-mnist-3']}, {count} even vectors", [each]))
    return _spaces([panels[:2], panels[2:]], alike=True)


def _spaces(lines: Sequence[Sequence[tuple[str, list[Layer]]]], *, alike: bool = False) -> Figure | None:
    """Panels in space; those of a line have the same limits, or all of them."""
    filled = [line for line in lines if line]
    if not filled:
        return None
    columns = max(map(len, filled))
    figure, axes = grid(len(filled), columns, width=4.0, height=4.1, below=0.6, **PROJECTION_3D)
    number = 0
    for i, line in enumerate(filled):
        limits = _limits(each for one in (filled if alike else [line]) for _, layers in one for each in layers)
        for axis, panel in itertools.zip_longest(axes[columns * i : columns * (i + 1)], line):
            if panel is None:
                axis.remove()
                continue
            caption(axis, number, panel[0], draw_scatter3d(axis, TEST_LOSS, panel[1], limits), drop=22)
            number += 1
    legend(figure, _SPACE_NOTE)
    return figure


def _projections(rows: Sequence[Row]) -> Figure | None:
    """A line for each network, a panel for each pair of tasks."""
    found = []
    for part in _PARTS:
        layers = _filled(
            [
                _first("pareto-mtl", rows, part=part, note="25 random"),
                _first("pareto-mtl", rows, part=part, note="25 even", hollow=has(rows, note="25 random")),
                _first("random-search", rows, part=part),
                _first("linear", rows, part=part),
            ]
        )
        alone = chosen(rows, part=part, method="single-task")[:1]
        if layers or alone:
            found.append((part, layers, alone))
    if not found:
        return None
    figure, axes = grid(len(found), 3)
    pairs = list(itertools.combinations(range(3), 2))
    for i, axis in enumerate(axes):
        (part, layers, alone), pair = found[i // 3], pairs[i % 3]
        seen = [replace(each, rows=[projected(row, pair) for row in each.rows]) for each in layers]
        separate = [projected(row, pair) for row in alone]
        beyond = draw_scatter2d(axis, TEST_LOSS, seen, separate, _limits(seen, separate))
        title = _TITLES[(alone or layers[0].rows)[0]["problem"]]
        caption(axis, i, f"{title}, {part}", beyond)
    legend(figure, "Each pair of the three test losses, first seed.")
    return figure


def _parallel(rows: Sequence[Row]) -> Figure | None:
    """A line for each network: Pareto MTL beside random search, or else a grid, on the same axes."""
    found = []
    rival = next((method for method in ("random-search", "linear") if has(rows, method=method)), "random-search")
    for part in _PARTS:
        layers = _filled(
            [
                _first("pareto-mtl", rows, part=part, note="25 even"),
                _first(rival, rows, part=part),
            ]
        )
        if layers:
            found.append((part, layers))
    if not found:
        return None
    columns = max(len(layers) for _, layers in found)
    figure, axes = grid(len(found), columns, width=4.2, height=3.6, below=0.8)
    number = 0
    for i, (part, layers) in enumerate(found):
        limits = _limits(layers)
        for axis, each in itertools.zip_longest(axes[columns * i : columns * (i + 1)], layers):
            if each is None:
                axis.remove()
                continue
            row = each.rows[0]
            courses = [
                Polyline(point, _last_task(row, k)) for k, point in enumerate(row["losses"]) if None not in point
            ]
            draw_parallel(axis, row["tasks"], limits, courses)
            title = f"{_TITLES[row['problem']]}, {part}:\n{each.label}"
            caption(axis, number, title, outside(TEST_LOSS, [each], limits), drop=34)
            number += 1
    legend(
        figure,
        "Test losses of the first seed: lower is better. Lines by the task that the preference puts last, which has\n"
        f"the largest number in a preference vector of Pareto MTL, and the smallest weight in {LABELS[rival]}.",
    )
    return figure


def _last_task(row: Row, model: int) -> dict[str, Any]:
    """How the course of a model looks: by the task that its preference puts last, if there is one."""
    vector = row["vectors"][model]
    losses = vector if row["reading"] == "direction" else [-weight for weight in vector]
    last = [task for task, value in enumerate(losses) if value > max(losses) - _ALIKE]
    common: dict[str, Any] = {"linewidth": 1.1, "zorder": 2, "marker": "o", "markersize": 2.5}
    if len(last) > 1:
        return {**common, **_NO_TASK, "label": "no single one"}
    return {**common, **_TASK_LINES[last[0]], "label": f"{row['tasks'][last[0]].replace('-', ' ')} last"}


def _hypervolumes(rows: Sequence[Row]) -> Figure | None:
    """Every seed a point, the mean a bar; the same lines in the panel of each network."""
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
            values = [row["hypervolume"] for row in chosen(mine, method=method, note=note)]
            draw_strip(axis, height, method, values)
        names = [", ".join(filter(None, (label_of(method), note))) for method, note in lines]
        name_lines(axis, names if i == 0 else [""] * len(names))
        reference = ", ".join(f"{value:g}" for value in mine[0]["reference"])
        axis.set_xlabel(f"hypervolume of the test losses at ({reference})")
        axis.locator_params(axis="x", nbins=4)
        caption(axis, i, f"{_TITLES[mine[0]['problem']]}, {part}")
    note = "Points: seeds. Bars: their mean. Single task: one point made of separate networks, which is no front."
    if any(not has(measured, part=part, method=method, note=each) for part in parts for method, each in lines):
        note += "\nEmpty lines: not trained."
    figure.supxlabel(note, fontsize=SMALL + 1)
    return figure


def _place(cell: tuple[str, str]) -> tuple[int, bool, int, bool, str]:
    """Methods in their order; losses as they are before scaled ones, few vectors before many, random before even."""
    method, note = cell
    count = note.split(" ")[0]
    place = _ORDER.index(method) if method in _ORDER else len(_ORDER)
    return place, "scaled" in note, int(count) if count.isdigit() else 0, "even" in note, note


def _first(method: str, rows: Sequence[Row], *, part: str = SHARED, note: str = "", **options: Any) -> Layer:
    """The first seed of a cell, in the style of its method."""
    label = ", ".join(filter(None, (label_of(method), note)))
    found = chosen(rows, part=part, method=method, note=note)[:1]
    return layer(method, found, **{"label": label, **options})


def _filled(layers: Sequence[Layer]) -> list[Layer]:
    return [each for each in layers if each.rows]


def _limits(layers: Iterable[Layer], alone: Sequence[Row] = ()) -> Limits:
    """As large as the solutions of Pareto MTL ask for."""
    main = [replace(each, joined=each.rows[0]["method"] == "pareto-mtl") for each in layers]
    return panel_limits(TEST_LOSS, main, alone, origin=False)
