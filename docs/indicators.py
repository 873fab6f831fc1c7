"""Draw what the indicators of a front measure, as docs/indicators.md shows it, from stored losses on MultiMNIST.

python docs/indicators.py     # writes docs/indicators.png
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from studies import multi_mnist_rows

from paretomtl.compare import tight_references
from paretomtl.compare.row_indicators import points_box_share
from paretomtl.methods.registry import colour_of, label_of, marker_of

HERE = Path(__file__).parent
SHOWN = ("pareto-mtl", "linear", "mgda")
GREY = "#d9d9d9"


def draw(path: Path) -> None:
    """Draw the box at the loose reference, and the same corner at the tight one."""
    rows = multi_mnist_rows()
    first = {row["method"]: row for row in rows if row["seed"] == 0}
    tight = tight_references(rows)["test"]
    figure = Figure(figsize=(9.6, 5.0), layout="constrained")
    loose_axis, tight_axis = figure.subplots(1, 2)
    points = first["pareto-mtl"]["losses"]
    _panel(loose_axis, points, first["pareto-mtl"]["reference"])
    _points(loose_axis, "pareto-mtl", points)
    share = points_box_share(points, first["pareto-mtl"]["reference"])
    title = f"the problem's own reference: {100 * share:.1f} % of the box is filled"
    loose_axis.set(title=title, xlim=(0, 2.1), ylim=(0, 2.1))
    _panel(tight_axis, points, tight)
    for method in SHOWN:
        _points(tight_axis, method, first[method]["losses"])
    alone = [min(column) for column in zip(*first["single-task"]["losses"], strict=True)]
    for line, value in ((tight_axis.axvline, alone[0]), (tight_axis.axhline, alone[1])):
        line(value, color=colour_of("single-task"), linestyle=":", linewidth=1)
    tight_axis.plot([], [], color=colour_of("single-task"), linestyle=":", linewidth=1, label="separate networks")
    limits = [(0.9 * best, point + 0.1 * (point - best)) for best, point in zip(alone, tight, strict=True)]
    tight_axis.set(
        title=f"its corner, at the tight reference: {100 * points_box_share(points, tight):.0f} %",
        xlim=limits[0],
        ylim=limits[1],
    )
    for axis in (loose_axis, tight_axis):
        axis.set(xlabel="test loss, top-left", ylabel="test loss, bottom-right")
        axis.title.set_fontsize(11)
    figure.legend(*tight_axis.get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=9)
    figure.savefig(path, dpi=130)


def _panel(axis: Any, points: list[list[float]], reference: list[float]) -> None:
    """Shade the hypervolume of the points, and outline the box between their ideal point and the reference."""
    inside = [point for point in points if all(a < b for a, b in zip(point, reference, strict=True))]
    for number, (x, y) in enumerate(inside):
        label = "hypervolume of Pareto MTL" if number == 0 else None
        axis.add_patch(Rectangle((x, y), reference[0] - x, reference[1] - y, color=GREY, linewidth=0, label=label))
    ideal = [min(column) for column in zip(*points, strict=True)]
    sides = [b - a for a, b in zip(ideal, reference, strict=True)]
    axis.add_patch(Rectangle(tuple(ideal), *sides, fill=False, edgecolor="black", linestyle="--", label="its box"))
    axis.plot(*reference, "k+", markersize=10, markeredgewidth=2, label="reference", zorder=4, linestyle="none")


def _points(axis: Any, method: str, points: list[list[float]]) -> None:
    x, y = zip(*points, strict=True)
    axis.scatter(x, y, color=colour_of(method), marker=marker_of(method), s=28, zorder=3, label=label_of(method))


if __name__ == "__main__":
    draw(HERE / "indicators.png")
