"""Scatter plots of three tasks: points in 3D."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from paretomtl._support.imports.optional_packages import require
from paretomtl.report.figures.layers import Layer, Limits, Point, Quantity, outside, to_unit
from paretomtl.report.figures.style import SMALL, plain

PROJECTION_3D: dict[str, Any] = {"projection": "3d", "computed_zorder": False}
"""Arguments of the panels of :func:`draw_scatter3d`."""

_ELEVATION, _AZIMUTH = 22, 38  # degrees
_ZOOM = 1.08  # the default leaves much of a panel empty
_CORNER = 0.08  # the share of an axis without ticks: its near end, where the tick labels of two axes would meet
_FLOOR: dict[str, Any] = {"color": "0.72", "zorder": 1}


def draw_scatter3d(axis: Any, quantity: Quantity, layers: Sequence[Layer], limits: Limits) -> str:
    """Draw the first row of each layer; return a note on solutions outside the panel, empty if there are none.

    Nearer points are larger and hide those behind them. A line drops from each point to the floor.
    """
    filled = [each for each in layers if each.rows]
    placed = [(each, point, to_unit(point, limits)) for each in filled for point in quantity.points(each.rows[0])]
    inside = [(_nearness(at), each, point) for each, point, at in placed if min(at) >= 0 and max(at) <= 1]
    far, near = (end((depth for depth, _, _ in inside), default=0.0) for end in (min, max))
    for depth, each, point in inside:
        _draw_point(axis, each, point, (depth - far) / (near - far or 1), limits[2][0])
    for each in filled:
        axis.scatter([], [], [], s=34, label=each.label, **_style(each))
    tasks = next((each.rows[0]["tasks"] for each in filled), ("", "", ""))
    axis.set(xlim=limits[0], ylim=limits[1], zlim=limits[2])
    axis.view_init(elev=_ELEVATION, azim=_AZIMUTH)
    axis.set_box_aspect((1, 1, 0.85), zoom=_ZOOM)
    ticks = require("matplotlib.ticker", "figures").MaxNLocator(4, steps=[1, 2, 2.5, 5, 10])
    for way, task, (low, high) in zip((axis.xaxis, axis.yaxis, axis.zaxis), tasks, limits, strict=True):
        upright = way is axis.zaxis
        end = high if upright else high - _CORNER * (high - low)
        way.set_ticks([tick for tick in ticks.tick_values(low, high) if low <= tick <= end])
        way.set_rotate_label(False)
        way.set_label_text(plain(task.replace("-", " ")), rotation=90 if upright else 0)
        way.labelpad = -2 if upright else 2
        way.set_pane_color((0.97, 0.97, 0.97))
        way._axinfo["grid"].update(color="0.86", linewidth=0.6)
    axis.tick_params(labelsize=SMALL, pad=0)
    return outside(quantity, filled, limits)


def _draw_point(axis: Any, each: Layer, point: Point, near: float, floor: float) -> None:
    x, y, z = point
    axis.plot([x, x], [y, y], [floor, z], linewidth=0.6, **_FLOOR)
    axis.scatter([x], [y], [floor], s=4, linewidths=0, depthshade=False, **_FLOOR)
    axis.scatter([x], [y], [z], s=16 + 40 * near, zorder=2 + near, **_style(each))


def _style(each: Layer) -> dict[str, Any]:
    face, edge = ("white", each.colour) if each.hollow else (each.colour, "white")
    return {"color": face, "edgecolor": edge, "marker": each.marker, "linewidths": 1.1 if each.hollow else 0.5,
            "depthshade": False}  # fmt: skip


def _nearness(scaled: Sequence[float]) -> float:
    """Return 0 for the farthest corner of the box, up to 1 for the nearest one."""
    up, turn = math.radians(_ELEVATION), math.radians(_AZIMUTH)
    toward = (math.cos(up) * math.cos(turn), math.cos(up) * math.sin(turn), math.sin(up))
    return sum(a * b for a, b in zip(toward, scaled, strict=True)) / sum(toward)
