"""The fronts of several methods in one figure, drawn from the rows of a comparison alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from paretomtl._support.imports.optional_packages import require
from paretomtl.compare.rows import best_losses, is_ideal, points_tensor, read_row, rows_split
from paretomtl.core import nondominated
from paretomtl.methods.registry import colour_of, label_of, marker_of
from paretomtl.report.figures.layers import Limits
from paretomtl.report.figures.parallel import Polyline, draw_parallel
from paretomtl.report.figures.style import RAY, paper_style, save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Row = dict[str, Any]


def draw_comparison(rows: Sequence[Row], folder: Path) -> list[Path]:
    """Draw the first seed's solutions of each method as PNG and SVG; return the paths.

    Two tasks: one loss against the other, with the preference vectors as rays, and a line through the non-dominated
    solutions of each front. More tasks: parallel coordinates, whose axes span the losses of solutions within the
    reference. The panel shows losses on the split that ranks; if there is a test split, a second panel shows those on
    test.
    """
    rows = [read_row(row) for row in rows]
    first = [row for row in rows if row["seed"] == min(r["seed"] for r in rows)]
    ranking = rows_split(rows)
    splits = [ranking, *(["test"] if all("test" in row["losses"] for row in first) else [])]
    pyplot = require("matplotlib.pyplot", "figures")
    with paper_style():
        size = (4.6 * len(splits), 3.9)
        figure, axes = pyplot.subplots(1, len(splits), figsize=size, squeeze=False, sharey=True, layout="constrained")
        plane = len(first[0]["tasks"]) == 2
        draw = _plane if plane else _parallel
        for axis, split in zip(axes[0], splits, strict=True):
            draw(axis, first, split, splits)
            axis.tick_params(labelleft=True)
            title = f"{first[0]['problem']}, losses on {split}, seed {first[0]['seed']}"
            axis.set_title(title, loc="left", pad=None if plane else 22)
        if plane:
            axes[0][-1].legend(fontsize=8.5, handletextpad=0.4)
        else:  # lines cross the whole panel
            figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=8.5)
        paths = save_figure(figure, folder, "compare")
        pyplot.close(figure)
    return paths


def _plane(axis: Axes, rows: Sequence[Row], split: str, splits: Sequence[str]) -> None:
    for row in rows:
        points, style = points_tensor(row, split), _style(row["method"])
        if is_ideal(row):
            _separate(axis, best_losses(row, split), style)
            continue
        axis.scatter(points[:, 0], points[:, 1], s=26, zorder=3, linewidths=0.4, edgecolors="white", **style)
        if row["reading"] != "start":
            line = points[_along_front(points)]
            axis.plot(line[:, 0], line[:, 1], color=style["color"], linewidth=0.8, alpha=0.6, zorder=2)
    right, top = _limits(rows, splits)
    axis.set_xlim(0, right)
    axis.set_ylim(0, top)
    for i, direction in enumerate(next((row["vectors"] for row in rows if row["reading"] == "direction"), [])):
        length = 2 * max(right, top)
        label = "preference vectors" if i == 0 else None
        axis.plot([0, length * direction[0]], [0, length * direction[1]], **RAY, label=label)
    outside = sum(
        int((points_tensor(row, split) > torch.tensor([right, top])).any(-1).sum()) for row in rows if not is_ideal(row)
    )
    note = f"\n({outside} solutions lie beyond the reference)" if outside else ""
    names = [f"{task} loss on {split}" for task in rows[0]["tasks"]]
    axis.set(xlabel=f"{names[0]}{note}", ylabel=names[1])


def _limits(rows: Sequence[Row], splits: Sequence[str]) -> list[float]:
    """Return the ends of the axes: the largest losses on any of the splits, capped at the reference."""
    points = torch.cat([points_tensor(row, split) for row in rows for split in splits])
    largest = points.amax(0).tolist() if len(points) else [1.0] * points.shape[1]
    reference = next((row["reference"] for row in rows if row["reference"]), None)
    limits = [torch.inf] * len(largest) if reference is None else reference
    return [min(1.08 * value, 1.02 * limit) for value, limit in zip(largest, limits, strict=True)]


def _separate(axis: Axes, best: Sequence[float], style: dict[str, Any]) -> None:
    """Draw the losses of separate networks as lines: they are not a point, because each network has only one task."""
    if not best:
        return
    line = {"color": style["color"], "linewidth": 0.9, "linestyle": ":", "zorder": 1}
    axis.axvline(best[0], label=style["label"], **line)
    axis.axhline(best[1], **line)


def _parallel(axis: Axes, rows: Sequence[Row], split: str, splits: Sequence[str]) -> None:
    lines = [
        Polyline(point, {"color": style["color"], "linewidth": 0.9, "alpha": 0.7, "label": "" if i else style["label"]})
        for row in rows
        for style in [_style(row["method"])]
        for i, point in enumerate(points_tensor(row, split).tolist())
    ]
    draw_parallel(axis, rows[0]["tasks"], _ranges(rows, splits), lines)
    beyond = sum(int((~_inside(row, points_tensor(row, split))).sum()) for row in rows if not is_ideal(row))
    note = f"({beyond} {'solution lies' if beyond == 1 else 'solutions lie'} beyond the reference)" if beyond else ""
    axis.set(xlabel=note, ylabel=f"losses on {split}")


def _ranges(rows: Sequence[Row], splits: Sequence[str]) -> Limits:
    """Return the range of each task's losses over all splits, of solutions within the reference if there are any."""
    pairs = [(row, points_tensor(row, split)) for row in rows for split in splits]
    inside = torch.cat([points[_inside(row, points)] for row, points in pairs])
    points = inside if len(inside) else torch.cat([points for _, points in pairs])
    if not len(points):
        return ((0.0, 1.0),) * points.shape[1]
    ends = zip(points.amin(0).tolist(), points.amax(0).tolist(), strict=True)
    return tuple((low, high) if high > low else (low - 0.05, high + 0.05) for low, high in ends)


def _inside(row: Row, points: torch.Tensor) -> torch.Tensor:
    reference = torch.tensor(row["reference"] or [torch.inf] * points.shape[1], dtype=torch.float64)
    return (points <= reference).all(-1)


def _along_front(points: torch.Tensor) -> list[int]:
    """Return the non-dominated rows, in order along the front."""
    kept = nondominated(points).nonzero().flatten().tolist()
    return sorted(kept, key=lambda i: tuple(points[i].tolist()))


def _style(method: str) -> dict[str, Any]:
    return {
        "color": colour_of(method),
        "marker": marker_of(method),
        "label": label_of(method),
    }
