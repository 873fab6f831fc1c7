"""Scatter plots of two tasks: one task against the other, for several methods."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from paretomtl.compare import Row
from paretomtl.methods.registry import colour_of, label_of
from paretomtl.report.figures.layers import Layer, Limits, Point, Quantity, best_alone, outside, panel_limits
from paretomtl.report.figures.style import RAY

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NUMBERS = "Numbers: the preference vectors from (1, 0) to (0, 1), which favours the first task."
_NUMBERED = 9  # the most solutions that are numbered; more leave no room
_NEAR = 0.045  # as a share of a panel: rays that end nearer to each other share a label


def draw_scatter2d(
    axis: Axes, quantity: Quantity, layers: Sequence[Layer], alone: Sequence[Row] = (), limits: Limits | None = None
) -> str:
    """Draw one task against the other; return a note on solutions outside the panel, empty if there are none.

    Panels of losses show the preference vectors as rays.

    Args:
        axis: where to draw.
        quantity: what to show.
        layers: the solutions.
        alone: rows of separate networks; the first one is shown as dotted lines.
        limits: the limits of each axis; those of :func:`panel_limits` by default.
    """
    filled = [each for each in layers if each.rows]
    limits = limits or panel_limits(quantity, filled, alone)
    axis.set(xlim=limits[0], ylim=limits[1])
    axis.set_box_aspect(1)
    tasks = next(row["tasks"] for row in [*(each.rows[0] for each in filled), *alone])
    axis.set_xlabel(f"{quantity.words}, {tasks[0].replace('-', ' ')}")
    axis.set_ylabel(f"{quantity.words}, {tasks[1].replace('-', ' ')}")
    for each in filled:
        _draw_layer(axis, quantity, each)
    for task, (values, line) in enumerate(
        zip(best_alone(quantity, alone, 2), (axis.axvline, axis.axhline), strict=True)
    ):
        for value in values:
            label = label_of("single-task") if task == 0 else None
            line(value, color=colour_of("single-task"), linewidth=1, linestyle=":", zorder=1, label=label)
    if not quantity.rising:
        _draw_rays(axis, filled, limits)
    return outside(quantity, filled, limits)


def _draw_rays(axis: Axes, layers: Sequence[Layer], limits: Limits) -> None:
    """Draw the preference vectors of the first layer that has directions, as rays to the edges of the panel."""
    (_, right), (_, top) = limits
    each = next((each for each in layers if each.rows[0]["reading"] == "direction"), None)
    if each is None:
        return
    vectors = each.rows[0]["vectors"]
    lengths = [min(right / x if x > 0 else math.inf, top / y if y > 0 else math.inf) for x, y in vectors]
    ends = [(length * x, length * y) for length, (x, y) in zip(lengths, vectors, strict=True)]
    many = len(vectors) > _NUMBERED
    style = {**RAY, "linestyle": "-", "linewidth": 0.4} if many else RAY
    for i, (x, y) in enumerate(ends):
        axis.plot([0, x], [0, y], **style, label="Preference vectors" if i == 0 else None)
    if each.joined and not many:
        _number_rays(axis, ends, right, top)


def _number_rays(axis: Axes, ends: Sequence[Point], right: float, top: float) -> None:
    """Number each ray at its end, outside the panel; rays that end near each other share a label."""
    groups: list[list[int]] = []
    for i, (x, y) in enumerate(ends):
        last = ends[groups[-1][-1]] if groups else (math.inf, math.inf)
        if math.hypot((x - last[0]) / right, (y - last[1]) / top) < _NEAR:
            groups[-1].append(i)
        else:
            groups.append([i])
    for group in groups:
        x, y = (sum(ends[i][task] for i in group) / len(group) for task in range(2))
        text = str(group[0] + 1) if len(group) == 1 else f"{group[0] + 1}–{group[-1] + 1}"
        at_right = x > 0.999 * right
        style: dict[str, Any] = {"ha": "left", "va": "center"} if at_right else {"ha": "center", "va": "bottom"}
        offset = (4, 0) if at_right else (0, 3)
        axis.annotate(text, (x, y), offset, textcoords="offset points", fontsize=7, color="0.35", **style)


def _draw_layer(axis: Axes, quantity: Quantity, each: Layer) -> None:
    face = "white" if each.hollow else each.colour
    edge = each.colour if each.hollow else "white"
    if each.others:
        faint = [point for row in each.rows[1:] for point in quantity.points(row)]
        options: dict[str, Any] = {"edgecolors": each.colour} if each.hollow else {"linewidths": 0}
        axis.scatter(*_columns(faint), s=14, c=face, marker=each.marker, alpha=0.3, zorder=2, **options)
    points = quantity.points(each.rows[0])
    if not each.joined:
        style: dict[str, Any] = {"c": face, "edgecolors": edge, "marker": each.marker, "linewidths": 0.5}
        axis.scatter(*_columns(points), s=30, zorder=3, label=each.label, **style)
        return
    marks: dict[str, Any] = {"marker": each.marker, "markersize": 6.5, "markerfacecolor": face, "markeredgecolor": edge}
    line: dict[str, Any] = {
        "color": each.colour,
        "linewidth": 1,
        "linestyle": "--" if each.hollow else "-",
        "zorder": 3.5,
    }
    numbered = each.numbered and len(each.rows[0]["vectors"]) <= _NUMBERED
    axis.plot([], [], **line, **marks, markeredgewidth=0.6, label=each.label)
    axis.plot(*_columns(points), **line)
    for i, (x, y) in enumerate(quantity.values(each.rows[0])):
        if x is None or y is None:
            continue
        height = 4 + 0.01 * i  # each point and its number cover those before it
        axis.scatter(x, y, s=62 if numbered else 24, c=face, edgecolors=edge, marker=each.marker, zorder=height,
                     linewidths=0.7)  # fmt: skip
        if numbered:
            colour = each.colour if each.hollow else "white"
            axis.text(x, y, str(i + 1), color=colour, fontsize=6.5, ha="center", va="center_baseline", clip_on=True,
                      zorder=height + 0.005)  # fmt: skip


def projected(row: Row, pair: Sequence[int]) -> Row:
    """Return a row with only two of its tasks, and without rays."""
    fields = {name: [row[name][task] for task in pair] for name in ("tasks", "reference")}
    return {**row, **fields, "reading": "", "losses": [[point[task] for task in pair] for point in row["losses"]]}


def _columns(points: Sequence[Point]) -> tuple[list[float], list[float]]:
    return [x for x, _ in points], [y for _, y in points]
