"""The fronts of several methods in one figure, drawn from the rows of a comparison alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from paretomtl._extras import require
from paretomtl.report._style import COLOURS, LABELS, MARKERS, RAY, paper_style, save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Row = dict[str, Any]


def draw_comparison(rows: Sequence[Row], folder: Path) -> list[Path]:
    """The first seed's solutions of each method as PNG and SVG; returns their paths.

    Two tasks: one loss against the other, with the preference vectors as rays, and a line through the solutions of each
    front that no other one dominates. More tasks: parallel coordinates.
    """
    first = [row for row in rows if row["seed"] == min(r["seed"] for r in rows)]
    pyplot = require("matplotlib.pyplot", "figures")
    with paper_style():
        figure, axis = pyplot.subplots(figsize=(4.6, 3.9))
        tasks = first[0]["tasks"]
        if len(tasks) == 2:
            _plane(axis, first)
        else:
            _parallel(axis, first)
        axis.set_title(f"{first[0]['problem']}, losses on {first[0]['split']}, seed {first[0]['seed']}", loc="left")
        axis.legend(fontsize=8.5, handletextpad=0.4)
        paths = save_figure(figure, folder, "compare")
        pyplot.close(figure)
    return paths


def _plane(axis: Axes, rows: Sequence[Row]) -> None:
    for row in rows:
        points, style = _points(row), _style(row["method"])
        if row["method"] == "single-task":
            _separate(axis, points, style)
            continue
        axis.scatter(points[:, 0], points[:, 1], s=26, zorder=3, linewidths=0.4, edgecolors="white", **style)
        if row["reading"] != "start":
            line = points[_along_front(points)]
            axis.plot(line[:, 0], line[:, 1], color=style["color"], linewidth=0.8, alpha=0.6, zorder=2)
    right, top = _limits(rows)
    axis.set_xlim(0, right)
    axis.set_ylim(0, top)
    for i, direction in enumerate(next((row["vectors"] for row in rows if row["reading"] == "direction"), [])):
        length = 2 * max(right, top)
        label = "preference vectors" if i == 0 else None
        axis.plot([0, length * direction[0]], [0, length * direction[1]], **RAY, label=label)
    outside = sum(
        int((_points(row) > torch.tensor([right, top])).any(-1).sum()) for row in rows if row["method"] != "single-task"
    )
    note = f" ({outside} solutions lie beyond the reference)" if outside else ""
    axis.set_xlabel(f"{rows[0]['tasks'][0]}{note}")
    axis.set_ylabel(rows[0]["tasks"][1])


def _limits(rows: Sequence[Row]) -> list[float]:
    """As far as the solutions go, but not beyond the reference."""
    points = torch.cat([_points(row) for row in rows])
    largest = points.amax(0).tolist() if len(points) else [1.0] * points.shape[1]
    reference = next((row["reference"] for row in rows if row["reference"]), None)
    limits = [torch.inf] * len(largest) if reference is None else reference
    return [min(1.08 * value, 1.02 * limit) for value, limit in zip(largest, limits, strict=True)]


def _separate(axis: Axes, points: torch.Tensor, style: dict[str, Any]) -> None:
    """What separate networks reach: no point, for each knows one task only."""
    if not len(points):
        return
    best = points.amin(0).tolist()
    line = {"color": style["color"], "linewidth": 0.9, "linestyle": ":", "zorder": 1}
    axis.axvline(best[0], label=style["label"], **line)
    axis.axhline(best[1], **line)


def _parallel(axis: Axes, rows: Sequence[Row]) -> None:
    tasks = rows[0]["tasks"]
    for row in rows:
        style = _style(row["method"])
        for i, point in enumerate(_points(row)):
            label = style["label"] if i == 0 else None
            axis.plot(range(len(tasks)), point, color=style["color"], linewidth=0.9, alpha=0.7, label=label)
    axis.set_xticks(range(len(tasks)), tasks)
    axis.set_ylabel("loss")


def _points(row: Row) -> torch.Tensor:
    finite = [point for point in row["losses"] if None not in point]
    return torch.tensor(finite, dtype=torch.float64).reshape(-1, len(row["tasks"]))


def _along_front(points: torch.Tensor) -> list[int]:
    """The rows that no other dominates, along the front."""
    kept: list[int] = []
    for i in sorted(range(len(points)), key=lambda i: tuple(points[i].tolist())):
        if not kept or points[i, 1] < points[kept[-1], 1]:
            kept.append(i)
    return kept


def _style(method: str) -> dict[str, Any]:
    return {
        "color": COLOURS.get(method, "0.4"),
        "marker": MARKERS.get(method, "X"),
        "label": LABELS.get(method, method),
    }
