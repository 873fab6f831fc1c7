"""Panels: figures of several axes, each with its title, and one legend for all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paretomtl._support.imports.optional_packages import require
from paretomtl._support.significance import mean
from paretomtl.compare import Row
from paretomtl.methods.registry import colour_of, is_separate, label_of, marker_of
from paretomtl.paper.study import Draw
from paretomtl.report.figures.layers import Layer
from paretomtl.report.figures.style import INK, QUIET, SMALL, WIDTH, figure_style, save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw_figures(rows: Sequence[Row], folder: Path, figures: Mapping[str, Draw]) -> list[Path]:
    """Draw each figure as PNG and SVG, named by its key, and return the paths.

    A figure with nothing to draw is left out.
    """
    pyplot = require("matplotlib.pyplot", "figures")
    paths = []
    with figure_style():
        for name, draw in figures.items():
            figure = draw(rows)
            if figure is not None:
                paths += save_figure(figure, folder, name)
                pyplot.close(figure)
    return paths


def grid(
    lines: int, columns: int, panels: int | None = None, *, width: float = WIDTH, height: float = 2.6, **options: Any
) -> tuple[Figure, list[Axes]]:
    """A figure with a grid of panels, line by line.

    Args:
        lines: the number of lines of panels.
        columns: the number of columns of panels.
        panels: the number of panels, if fewer than the grid holds; the rest stays empty.
        width: the width of the figure, in inches.
        height: the height of a panel with its title and labels, in inches.
        options: options of every panel, such as its projection.
    """
    pyplot = require("matplotlib.pyplot", "figures")
    size = (width, height * lines)
    figure, axes = pyplot.subplots(
        lines, columns, figsize=size, layout="constrained", squeeze=False, subplot_kw=options
    )
    figure.get_layout_engine().set(h_pad=0.08, w_pad=0.06)
    every = list(axes.flat)
    for axis in every[len(every) if panels is None else panels :]:
        axis.remove()
    return figure, every[:panels]


def panel_title(axis: Axes, title: str, *notes: str) -> None:
    """Write a title above a panel, in bold, and notes below it, in small letters; empty notes are left out."""
    lines = [line for note in notes for line in note.splitlines() if line]
    axis.set_title(title, loc="left", pad=5 + 11 * len(lines))
    style: dict[str, Any] = {"ha": "left", "va": "bottom", "fontsize": SMALL, "color": QUIET, "annotation_clip": False}
    axis.annotate("\n".join(lines), (0, 1), (0, 3), xycoords="axes fraction", textcoords="offset points", **style)


def name_lines(axis: Axes, names: Sequence[str]) -> None:
    """Write names at the left, at the heights 0, 1, 2 and so on, each with a pale line."""
    axis.set_yticks(range(len(names)), names)
    axis.set_ylim(-0.6, len(names) - 0.4)
    axis.grid(axis="y", color="0.9", linewidth=0.7)
    axis.tick_params(axis="y", length=0, labelsize=9)


def draw_strip(axis: Axes, height: int, method: str, values: Sequence[float], **style: Any) -> None:
    """Draw a value per seed as points and their mean as a bar, at one of the heights of :func:`name_lines`."""
    heights = [height + 0.1 * (k - (len(values) - 1) / 2) for k in range(len(values))]
    marks: dict[str, Any] = {
        "color": colour_of(method),
        "marker": marker_of(method),
        "edgecolor": "white",
        "linewidth": 0.4,
    }
    axis.scatter(values, heights, s=48 if is_separate(method) else 24, zorder=3, **{**marks, **style})
    if values:
        axis.plot([mean(values)] * 2, [height - 0.36, height + 0.36], color=INK, linewidth=1.4, zorder=2)


def legend(figure: Figure, note: str = "", *, columns: int = 4) -> None:
    """Draw one legend for all panels, at the bottom, under a note."""
    entries: dict[str, Any] = {}
    for axis in figure.axes:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    figure.legend(
        entries.values(),
        entries.keys(),
        ncols=columns,
        columnspacing=1.4,
        title=note or None,
        loc="outside lower left",
        alignment="left",
    )


def layer(method: str, rows: Sequence[Row], **options: Any) -> Layer:
    """The layer of a method, in its usual style."""
    style = {"label": label_of(method), "colour": colour_of(method), "marker": marker_of(method)}
    return Layer(rows, **{**style, **options})
