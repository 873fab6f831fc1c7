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
        axis.set_title(f"{first[0]['problem']}, losses on {first[0]['split']}, seed {first[0]['seed']}")
        axis.legend(fontsize=8.5, handletextpad=0.4)
        paths = save_figure(figure, folder, "compare")
        pyplot.close(figure)
    return paths


def _plane(axis: Axes, rows: Sequence[Row]) -> None:
    reference = next((row["reference"] for row in rows if row["reference"]), None)
    for row in rows:
        points = _points(row)
        style = _style(row["method"])
        axis.scatter(points[:, 0], points[:, 1], s=26, zorder=3, linewidths=0.4, edgecolors="white", **style)
        if row["reading"] != "start" and row["method"] != "single-task":
            line = points[_best_first(points)]
            axis.plot(line[:, 0], line[:, 1], color=style["color"], linewidth=0.8, alpha=0.6, zorder=2)
    largest = torch.cat([_points(row) for row in rows]).amax(0).tolist()
    right, top = (
        [min(1.08 * value, 1.02 * limit) for value, limit in zip(largest, reference, strict=True)]
        if reference
        else [1.08 * value for value in largest]
    )
    axis.set_xlim(0, right)
    axis.set_ylim(0, top)
    for row in rows:
        for direction in row["vectors"] if row["reading"] == "direction" else []:
            length = 2 * max(right, top)
            axis.plot([0, length * direction[0]], [0, length * direction[1]], **RAY)
    axis.set_xlabel(rows[0]["tasks"][0])
    axis.set_ylabel(rows[0]["tasks"][1])
    outside = sum(int(((_points(row) > torch.tensor([right, top])).any(-1)).sum()) for row in rows)
    if outside:
        axis.annotate(
            f"{outside} beyond the reference",
            (1.0, 1.0),
            xycoords="axes fraction",
            ha="right",
            va="bottom",
            fontsize=7.5,
        )


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


def _best_first(points: torch.Tensor) -> list[int]:
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
