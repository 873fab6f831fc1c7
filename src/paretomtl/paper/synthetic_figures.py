"""The figures of the synthetic study, drawn only from its stored rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from paretomtl._support.imports.optional_packages import require
from paretomtl.compare import Row
from paretomtl.methods.registry import colour_of, label_of, marker_of
from paretomtl.paper.study import Draw
from paretomtl.problems import synthetic
from paretomtl.report.figures.style import RAY, TRUTH

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def _draw_convergence(rows: Sequence[Row]) -> Figure:
    figure, axes = _panels(1, 3)
    for axis, method in zip(axes, ("random-search", "mgda", "pareto-mtl"), strict=True):
        row = _first_seed(rows, part="convergence", method=method)
        _draw_solutions(axis, row)
        _set_title(axis, axes, f"{_label(method)}, {row['preferences']} runs")
    axes[0].legend(loc="lower left", fontsize=8.5, handletextpad=0.4)
    return figure


def _draw_initialization(rows: Sequence[Row]) -> Figure:
    figure, axes = _panels(1, 3)
    panels = (
        ("convergence", "mgda", "MOO-MTL"),
        ("no initial phase", "pareto-mtl", "Pareto MTL without initialization"),
        ("convergence", "pareto-mtl", "Pareto MTL with initialization"),
    )
    for axis, (part, method, title) in zip(axes, panels, strict=True):
        _draw_solutions(axis, _first_seed(rows, part=part, method=method))
        _set_title(axis, axes, title)
    return figure


def _draw_difficulty(rows: Sequence[Row]) -> Figure:
    ratios = sorted({row["ratio"] for row in rows if row["part"] == "difficulty"})
    figure, axes = _panels(len(ratios), 3)
    methods = ("random-search", "mgda", "pareto-mtl")
    for line, ratio in zip(axes.reshape(len(ratios), 3), ratios, strict=True):
        for axis, method in zip(line, methods, strict=True):
            _draw_solutions(axis, _first_seed(rows, part="difficulty", method=method, ratio=ratio))
            _set_title(axis, axes.flat, f"{_label(method)}, $a_1 = {ratio:.0f}$, $a_2 = 1$")
    return figure


def _draw_preferences(rows: Sequence[Row]) -> Figure:
    figure, axes = _panels(1, 3)
    chosen = [row for row in rows if row["part"] == "preferences" and row["seed"] == 0]
    for axis, row in zip(axes, chosen, strict=True):
        _draw_solutions(axis, row)
        for x, y in row["vectors"]:
            axis.annotate("", (x, y), (0, 0), arrowprops={"arrowstyle": "-|>", "color": "0.35", "lw": 0.9})
        kind = "even" if row["vectors"][0][0] == 1.0 else "biased"
        _set_title(axis, axes, f"{row['preferences']} {kind} vectors")
    return figure


def _draw_three_objectives(rows: Sequence[Row]) -> Figure:
    pyplot = require("matplotlib.pyplot", "figures")
    chosen = [row for row in rows if row["tasks"] == 3 and row["seed"] == 0 and row["stage"] == "final"]
    titles = ("15 even vectors", "15 vectors gathered in the middle", "15 even vectors, then released")
    caption = "crosses: outside their own region"
    figure: Figure = pyplot.figure(figsize=(10.5, 3.7))
    truth = synthetic(tasks=3).truth
    assert truth is not None
    surface = truth.front(1500)
    for i, (row, title) in enumerate(zip(chosen, titles, strict=True)):
        axis = figure.add_subplot(1, 3, i + 1, projection="3d", computed_zorder=False)
        axis.scatter(*surface.T.numpy(), s=1.2, color="0.75", alpha=0.5, depthshade=False, rasterized=True)
        points = torch.tensor(row["losses"])
        stuck = torch.tensor([status == "infeasible" for status in row["status"]])
        axis.scatter(
            *points[~stuck].T.numpy(), s=26, color=colour_of("pareto-mtl"), edgecolor="white", depthshade=False
        )
        axis.scatter(*points[stuck].T.numpy(), s=26, marker="x", color="black", depthshade=False)
        axis.set(xlim=(0, 1), ylim=(0, 1), zlim=(0, 1), xlabel="$f_1$", ylabel="$f_2$", zlabel="$f_3$")
        axis.view_init(elev=24, azim=40)
        axis.set_title(f"({'abc'[i]}) {title}", y=-0.19)
        for set_ticks in (axis.set_xticks, axis.set_yticks, axis.set_zticks):
            set_ticks([0, 0.5, 1])
    figure.text(0.5, -0.02, caption, ha="center", fontsize=9)
    return figure


def _panels(lines: int, columns: int) -> tuple[Figure, Any]:
    pyplot = require("matplotlib.pyplot", "figures")
    figure, axes = pyplot.subplots(
        lines, columns, figsize=(3.5 * columns, 3.35 * lines), layout="constrained", squeeze=lines == 1
    )
    return figure, axes


def _first_seed(rows: Sequence[Row], **fields: Any) -> Row:
    """The final row of the first seed with these fields."""
    wanted = {**fields, "seed": 0, "stage": "final"}
    return next(row for row in rows if all(row[name] == value for name, value in wanted.items()))


def _draw_solutions(axis: Axes, row: Row) -> None:
    """Draw the true front, the preference rays and the solutions of one run."""
    reference = row["reference"]
    truth = synthetic(difficulties=[row["ratio"], 1.0]).truth
    assert truth is not None
    axis.plot(*truth.front(400).T.numpy(), label="Pareto front", **TRUTH)
    if row["method"] == "pareto-mtl":
        far = 2 * max(reference)
        for u in row["vectors"]:
            axis.plot([0, far * u[0]], [0, far * u[1]], **RAY)
    x, y = torch.tensor(row["losses"]).T.numpy()
    style: dict[str, Any] = {"color": colour_of(row["method"]), "marker": marker_of(row["method"])}
    axis.scatter(x, y, s=34, edgecolor="white", linewidth=0.6, zorder=3, clip_on=False, label="solutions", **style)
    axis.set(xlim=(0, 1.08 * reference[0]), ylim=(0, 1.08 * reference[1]), xlabel="$f_1$", ylabel="$f_2$")
    axis.set_box_aspect(1)


def _set_title(axis: Axes, axes: Any, text: str) -> None:
    """Write a caption below the panel, lettered as in the paper."""
    letter = "abcdefghijkl"[list(axes).index(axis)]
    axis.set_title(f"({letter}) {text}", y=-0.3)


def _label(method: str) -> str:
    """The label of a method; the paper's figure 2 shows random weights as linear scalarization."""
    return label_of("linear" if method == "random-search" else method)


FIGURES: dict[str, Draw] = {
    "synthetic-convergence": _draw_convergence,
    "synthetic-initialization": _draw_initialization,
    "synthetic-difficulty": _draw_difficulty,
    "synthetic-preferences": _draw_preferences,
    "synthetic-three-objectives": _draw_three_objectives,
}
