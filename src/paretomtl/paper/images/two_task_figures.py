"""Scatter plots of two tasks: all methods of a set, or the same models by two quantities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from paretomtl.compare import Row
from paretomtl.methods.registry import is_separate
from paretomtl.paper.images.cells import METHODS
from paretomtl.paper.panels import grid, layer, legend, panel_title
from paretomtl.paper.rows import pick_by_seed
from paretomtl.report.figures.layers import Layer, Quantity
from paretomtl.report.figures.scatter2d import FRONT, draw_scatter2d, label_outer, point_to_better
from paretomtl.report.figures.style import add_caption

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FAINT = "Faint: other seeds."
"""The last sentence on a figure that shows all seeds."""


def draw_methods(axis: Axes, rows: Sequence[Row], quantity: Quantity) -> str:
    """Draw all methods of these rows, and return a remark on models outside the panel."""
    layers = [
        layer(method, pick_by_seed(rows, method=method), joined=method == "pareto-mtl", others=method == "pareto-mtl")
        for method in METHODS
        if not is_separate(method)
    ]
    return draw_scatter2d(axis, quantity, layers, pick_by_seed(rows, method="single-task"))


def numbers_note(rows: Sequence[Row]) -> str:
    """What the numbers of models and rays mean; empty without Pareto MTL."""
    tasks = next((row["tasks"] for row in rows if row["method"] == "pareto-mtl"), None)
    if tasks is None:
        return ""
    first, second = (task.replace("-", " ") for task in tasks)
    return f"Numbers go from the vector (1, 0), for {second}, to (0, 1), for {first}."


def how_drawn(rows: Sequence[Row]) -> str:
    """The caption of fronts with numbers."""
    seeds = FAINT if len({row["seed"] for row in rows}) > 1 else ""
    return " ".join(filter(None, (FRONT, numbers_note(rows), seeds)))


def draw_pair(layers: Sequence[Layer], quantities: Sequence[Quantity], title: str) -> Figure | None:
    """Draw the same models by several quantities, one panel each."""
    rows = [row for each in layers for row in each.rows]
    if not rows:
        return None
    figure, axes = grid(1, len(quantities), height=4.35)
    for axis, quantity in zip(axes, quantities, strict=True):
        panel_title(axis, quantity.words.capitalize(), draw_scatter2d(axis, quantity, layers) or " ")
    point_to_better(axes[0], quantities[0])
    label_outer(axes)
    legend(figure)
    add_caption(figure, title, how_drawn(rows))
    return figure
