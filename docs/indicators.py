"""Draw what the indicators of a front measure, for docs/reference/indicators.md, from stored losses on MultiMNIST.

python docs/indicators.py     # writes docs/indicators.png and docs/indicators-dark.png
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from matplotlib.patches import Rectangle
from studies import multi_mnist_rows

from paretomtl.compare import tight_references
from paretomtl.compare.row_indicators import points_box_share
from paretomtl.methods.registry import colour_of, label_of, marker_of
from paretomtl.paper.panels import grid, legend, panel_title
from paretomtl.report.figures.style import INK, QUIET, SMALL, add_caption, better_arrow, figure_style, save_figure

HERE = Path(__file__).parent
SHOWN = ("pareto-mtl", "linear", "mgda")
CAPTION = (
    "Five models of Pareto MTL on MultiMNIST. Left, their trade-offs are a detail in the corner of the dashed box. "
    "Right, the same corner up to the tight reference, where fronts can be told apart."
)


def main() -> None:
    """Draw the box at the loose reference, and the same corner at the tight one."""
    rows = multi_mnist_rows()
    first = {row["method"]: row for row in rows if row["seed"] == 0}
    with figure_style():
        figure, (left, right) = grid(1, 2, height=3.9)
        tight = tight_references(rows)["test"]
        points, loose = first["pareto-mtl"]["losses"], first["pareto-mtl"]["reference"]
        shares = [points_box_share(points, reference) for reference in (loose, tight)]
        limits = draw_corner(right, first, tight)
        draw_whole(left, points, loose, limits)
        panel_title(left, "The problem's own reference", f"{100 * shares[0]:.1f} % of the box is filled")
        panel_title(right, "The tight reference", f"{100 * shares[1]:.0f} % of the box is filled")
        for axis in (left, right):
            axis.set(xlabel="test loss, top-left digit", ylabel="test loss, bottom-right digit")
            axis.set_box_aspect(1)
        legend(figure)
        filled = f"{100 * shares[0]:.1f} % of the box is filled, at a tight one {100 * shares[1]:.0f} %"
        add_caption(figure, f"At a loose reference {filled}", CAPTION)
        save_figure(figure, HERE, "indicators")


def draw_whole(axis: Any, points: list[list[float]], reference: list[float], limits: list[tuple[float, float]]) -> None:
    """Draw the whole box of Pareto MTL, and which part of it the other panel shows."""
    draw_box(axis, points, reference)
    draw_points(axis, "pareto-mtl", points)
    (left, right), (bottom, top) = limits
    axis.add_patch(Rectangle((left, bottom), right - left, top - bottom, fill=False, edgecolor=INK, linewidth=0.8))
    axis.text(right + 0.03, top + 0.02, "right panel", fontsize=SMALL)
    axis.set(xlim=(0, 1.05 * reference[0]), ylim=(0, 1.05 * reference[1]))
    better_arrow(axis, (0.4, 0.4), (0.55, 0.55))


def draw_corner(axis: Any, first: dict[str, Any], tight: list[float]) -> list[tuple[float, float]]:
    """Draw some methods up to the tight reference, and what separate networks reach; return the limits."""
    draw_box(axis, first["pareto-mtl"]["losses"], tight)
    for method in SHOWN:
        draw_points(axis, method, first[method]["losses"])
    alone = [min(column) for column in zip(*first["single-task"]["losses"], strict=True)]
    style: dict[str, Any] = {"color": colour_of("single-task"), "linestyle": ":", "linewidth": 1.2}
    axis.axvline(alone[0], label="separate networks", **style)
    axis.axhline(alone[1], **style)
    limits = [(0.9 * best, point + 0.1 * (point - best)) for best, point in zip(alone, tight, strict=True)]
    axis.set(xlim=limits[0], ylim=limits[1])
    return limits


def draw_box(axis: Any, points: list[list[float]], reference: list[float]) -> None:
    """Shade the hypervolume of the points, and outline the box between their ideal point and the reference."""
    inside = [point for point in points if all(a < b for a, b in zip(point, reference, strict=True))]
    for x, y in inside:
        area: dict[str, Any] = {"color": "0.87", "linewidth": 0, "zorder": 0, "label": "hypervolume of Pareto MTL"}
        axis.add_patch(Rectangle((x, y), reference[0] - x, reference[1] - y, **area))
    ideal = [min(column) for column in zip(*points, strict=True)]
    sides = [b - a for a, b in zip(ideal, reference, strict=True)]
    axis.add_patch(Rectangle(tuple(ideal), *sides, fill=False, edgecolor=QUIET, linestyle="--", label="its box"))
    cross: dict[str, Any] = {"marker": "+", "markersize": 10, "markeredgewidth": 2, "linestyle": "none"}
    axis.plot(*reference, color=INK, label="reference", zorder=4, **cross)


def draw_points(axis: Any, method: str, points: list[list[float]]) -> None:
    """Draw the models of a method."""
    style = {"color": colour_of(method), "marker": marker_of(method), "edgecolor": "white", "linewidth": 0.5}
    axis.scatter(*zip(*points, strict=True), s=42, zorder=3, label=label_of(method), **style)


if __name__ == "__main__":
    main()
