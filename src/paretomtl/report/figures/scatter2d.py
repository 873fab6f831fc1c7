"""Scatter plots of two tasks: one task against the other, for several methods."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from paretomtl.compare import Row
from paretomtl.methods.registry import colour_of, label_of
from paretomtl.report.figures.layers import Layer, Limits, Point, Quantity, best_alone, outside, panel_limits
from paretomtl.report.figures.style import QUIET, RAY, SMALL, better_arrow

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FRONT = "Lines join models that no other one of their front beats in both tasks; beaten ones are hollow."
"""How joined layers are drawn."""
_NUMBERED = 9  # the most models that are numbered; more leave no room
_AT_RIGHT, _AT_TOP = {"ha": "right", "va": "center"}, {"ha": "center", "va": "top"}
_SHORT = 0.93  # of a ray, which leaves room for its number
_NEAR = 0.07  # as a share of a panel: rays that end nearer to each other share a label


def draw_scatter2d(
    axis: Axes,
    quantity: Quantity,
    layers: Sequence[Layer],
    alone: Sequence[Row] = (),
    limits: Limits | None = None,
    *,
    rays: bool = True,
) -> str:
    """Draw one task against the other; return a note on models outside the panel, empty if there are none.

    Args:
        axis: where to draw.
        quantity: what to show.
        layers: the models.
        alone: rows of separate networks; the first one is shown as dotted lines.
        limits: the limits of each axis; those of :func:`panel_limits` by default.
        rays: whether panels of losses show the preference vectors as rays.
    """
    filled = [each for each in layers if each.rows]
    limits = limits or panel_limits(quantity, filled, alone)
    axis.set(xlim=limits[0], ylim=limits[1])
    axis.set_box_aspect(1)
    axis.locator_params(nbins=5)
    tasks = next(row["tasks"] for row in [*(each.rows[0] for each in filled), *alone])
    axis.set(xlabel=quantity.of(tasks[0]), ylabel=quantity.of(tasks[1]))
    for each in filled:
        _draw_layer(axis, quantity, each)
    draw_alone(axis, best_alone(quantity, alone, 2))
    if rays and not quantity.rising:
        _draw_rays(axis, filled, limits)
    return outside(quantity, filled, limits)


def draw_alone(axis: Axes, best: Sequence[Sequence[float]]) -> None:
    """Draw the value of the separate network of each task, if there is one, as a dotted line."""
    style: dict[str, Any] = {"color": colour_of("single-task"), "linewidth": 1, "linestyle": ":", "zorder": 1}
    for task, (values, line) in enumerate(zip(best, (axis.axvline, axis.axhline), strict=True)):
        for value in values:
            line(value, label=label_of("single-task") if task == 0 else None, **style)


def point_to_better(axis: Axes, quantity: Quantity) -> None:
    """Draw an arrow to better values; accuracies have room for it at the lower left, behind the front."""
    if quantity.rising:
        better_arrow(axis, (0.28, 0.25), (0.04, 0.05))
    else:
        better_arrow(axis)


def label_outer(axes: Sequence[Axes]) -> None:
    """Name axes once: not above or at the right of a panel whose axis has the same name. Lines of panels get room."""
    for axis in axes:
        across, down = _place(axis)
        below = [other for other in axes if _place(other)[0] == across and _place(other)[1] > down]
        left = [other for other in axes if _place(other)[0] < across and _place(other)[1] == down]
        if any(other.get_xlabel() == axis.get_xlabel() for other in below):
            axis.set_xlabel("")
        if any(other.get_ylabel() == axis.get_ylabel() for other in left):
            axis.set_ylabel("")
    engine: Any = axes[0].figure.get_layout_engine()
    engine.set(hspace=0.05)


def _place(axis: Axes) -> tuple[int, int]:
    """The column and the line of a panel."""
    place = axis.get_subplotspec()
    assert place is not None
    return place.colspan.start, place.rowspan.start


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
    style = {**RAY, "linestyle": "-", "linewidth": 0.5} if many else RAY
    numbered = each.joined and not many
    share = _SHORT if numbered else 1
    for i, (x, y) in enumerate(ends):
        axis.plot([0, share * x], [0, share * y], **style, label="Preference vectors" if i == 0 else None)
    if numbered:
        _number_rays(axis, ends, right, top)


def _number_rays(axis: Axes, ends: Sequence[Point], right: float, top: float) -> None:
    """Number each ray at its end; rays that end near each other share a label."""
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
        aside = 5 if min(x / right, y / top) < _NEAR else 0  # off an axis that it would lie on
        offset, place = ((-2, aside), _AT_RIGHT) if at_right else ((aside, -2), _AT_TOP)
        style: dict[str, Any] = {**place, "fontsize": SMALL, "color": QUIET, "zorder": 0.5}
        axis.annotate(text, (x, y), offset, textcoords="offset points", **style)


def _draw_layer(axis: Axes, quantity: Quantity, each: Layer) -> None:
    face = "white" if each.hollow else each.colour
    edge = each.colour if each.hollow else "white"
    if each.others:
        faint = [point for row in each.rows[1:] for point in quantity.points(row)]
        options: dict[str, Any] = {"edgecolors": each.colour} if each.hollow else {"linewidths": 0}
        axis.scatter(*_columns(faint), s=11, c=face, marker=each.marker, alpha=0.35, zorder=2, **options)
    if each.joined:
        _draw_front(axis, quantity, each)
        return
    style: dict[str, Any] = {"c": face, "edgecolors": edge, "marker": each.marker, "linewidths": 0.5}
    axis.scatter(*_columns(quantity.points(each.rows[0])), s=26, zorder=3, label=each.label, **style)


def _draw_front(axis: Axes, quantity: Quantity, each: Layer) -> None:
    """Draw the models of the first seed, with a line along the front; dominated ones are hollow."""
    values = [(i, (x, y)) for i, (x, y) in enumerate(quantity.values(each.rows[0])) if None not in (x, y)]
    points = [point for _, point in values]
    front = quantity.along_front(points)
    numbered = each.numbered and len(each.rows[0]["vectors"]) <= _NUMBERED
    line: dict[str, Any] = {"color": each.colour, "linewidth": 1, "zorder": 3.5}
    marks: dict[str, Any] = {"marker": each.marker, "markersize": 6, "markeredgecolor": "white"}
    axis.plot([], [], **line, **marks, markeredgewidth=0.6, label=each.label)
    axis.plot(*_columns([points[k] for k in front]), **line)
    for k, (i, (x, y)) in enumerate(values):
        height = 4 + 0.01 * i  # each point and its number cover those before it
        ahead = k in front
        face, edge = (each.colour, "white") if ahead else ("white", each.colour)
        axis.scatter(x, y, s=74 if numbered else 26, c=face, edgecolors=edge, marker=each.marker, zorder=height,
                     linewidths=0.7 if ahead else 0.9)  # fmt: skip
        if numbered:
            axis.text(x, y, str(i + 1), color=edge, fontsize=7, ha="center", va="center_baseline", clip_on=True,
                      zorder=height + 0.005)  # fmt: skip


def _columns(points: Sequence[Point]) -> tuple[list[float], list[float]]:
    return [x for x, _ in points], [y for _, y in points]
