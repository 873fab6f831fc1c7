"""Scatter plots of two tasks: all methods of a set, or the same solutions by two quantities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from paretomtl.compare import Row
from paretomtl.methods.registry import is_separate
from paretomtl.paper.images.cells import METHODS, SET_TITLES
from paretomtl.paper.panels import caption, grid, layer, legend
from paretomtl.paper.rows import has, pick_by_seed
from paretomtl.report.figures.layers import Layer, Quantity, panel_limits
from paretomtl.report.figures.scatter2d import NUMBERS, draw_scatter2d

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SEEDS = "Large: the first seed. Small and faint: the others."
"""The note of a figure that shows all seeds."""
_WITH_SEEDS = ("pareto-mtl", "linear")  # the methods whose other seeds are shown
_SEEDS_OF_SOME = "Large: the first seed. Small and faint: the other seeds of Pareto MTL and grid search."


def draw_methods(axis: Axes, rows: Sequence[Row], quantity: Quantity) -> str:
    """Draw all methods of these rows, and return a remark on solutions outside the panel."""
    layers = [
        layer(method, pick_by_seed(rows, method=method), joined=method == "pareto-mtl", others=method in _WITH_SEEDS)
        for method in METHODS
        if not is_separate(method)
    ]
    return draw_scatter2d(axis, quantity, layers, pick_by_seed(rows, method="single-task"))


def methods_note(rows: Sequence[Row]) -> str:
    """The note of a figure by :func:`draw_methods`."""
    return f"{NUMBERS}\n{_SEEDS_OF_SOME}" if has(rows, method="pareto-mtl") else _SEEDS_OF_SOME


def draw_pair(
    layers: Sequence[Layer], quantities: Sequence[Quantity], note: str = f"{NUMBERS}\n{SEEDS}", *, origin: bool = True
) -> Figure | None:
    """Draw the same solutions by several quantities, one panel each."""
    first = next((each.rows[0] for each in layers if each.rows), None)
    if first is None:
        return None
    figure, axes = grid(1, len(quantities), width=3.9, height=4.1, below=1.1)
    for i, (axis, quantity) in enumerate(zip(axes, quantities, strict=True)):
        outside = draw_scatter2d(axis, quantity, layers, limits=panel_limits(quantity, layers, origin=origin))
        caption(axis, i, f"{SET_TITLES[first['problem']]}, {quantity.words}", outside)
    legend(figure, note, columns=2)
    return figure
