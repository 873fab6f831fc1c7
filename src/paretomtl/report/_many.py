"""The figure of many tasks: what more preference vectors cover, drawn from stored rows alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paretomtl._extras import require
from paretomtl.experiments import Row
from paretomtl.experiments._statistics import mean
from paretomtl.report._panels import caption, draw_figures, grid, legend

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_FINAL, _BEFORE = "final", "snapshot"
_COLOURS = ("#0a2a5e", "#0b5fa5", "#1b8a8f", "#c98a00", "#c1272d")
_MARKERS = ("o", "s", "^", "D", "v")
_SOLID: dict[str, Any] = {"linestyle": "-", "linewidth": 1.4}
_DASHED: dict[str, Any] = {"linestyle": (0, (5, 2)), "linewidth": 1.0}
_DOTTED: dict[str, Any] = {"linestyle": (0, (1, 1.6)), "linewidth": 1.1}


def draw_many_tasks(rows: Sequence[Row], folder: Path) -> list[Path]:
    """How well the front is covered, and how many regions it meets, by the number of vectors and of objectives."""
    return draw_figures(rows, folder, {"many-tasks": _many_tasks})


def _many_tasks(rows: Sequence[Row]) -> Figure | None:
    if not rows:
        return None
    ticker = require("matplotlib.ticker", "figures")
    figure, axes = grid(1, 2, width=4.4, height=4.3, below=0.9)
    for i, tasks in enumerate(sorted({row["tasks"] for row in rows})):
        mine = [row for row in rows if row["tasks"] == tasks]
        colour: dict[str, Any] = {"color": _COLOURS[i % len(_COLOURS)]}
        marks = {**colour, "marker": _MARKERS[i % len(_MARKERS)], "markersize": 4.5}
        _line(axes[0], mine, lambda row: row["igd_plus"], stage=_FINAL, **_SOLID, **marks)
        _line(axes[0], mine, lambda row: row["igd_plus"], stage=_BEFORE, **_DASHED, **colour)
        _line(axes[0], mine, lambda row: row["igd_plus_on_rays"], **_DOTTED, **colour)
        hollow = {**marks, "markerfacecolor": "white"}
        _line(axes[1], mine, lambda row: row["regions_met"] / row["preferences"], **_DOTTED, **colour)
        _line(axes[1], mine, lambda row: row["in_region"] / row["preferences"], stage=_BEFORE, **_SOLID, **hollow)
        axes[0].plot([], [], label=f"{tasks} objectives", linewidth=1.4, **marks)
    counts = sorted({row["preferences"] for row in rows})
    for axis in axes:
        _name_counts(axis, counts)
    axes[0].set_yscale("log", subs=[])
    axes[0].set_ylabel("IGD+")
    axes[0].yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
    axes[0].yaxis.set_major_formatter(ticker.FormatStrFormatter("%g"))
    axes[1].set(ylabel="share", ylim=(0, 1.05))
    caption(axes[0], 0, "IGD+ of the solutions at the end (solid), before",
            "the release (dashed), and of the points of the front", "nearest to the rays (dotted)")  # fmt: skip
    caption(axes[1], 1, "share of the regions that the front meets", "(dotted), and of solutions in their own region",
            "before the release (solid)")  # fmt: skip
    legend(figure, "Means over seeds.", columns=5)
    return figure


def _line(
    axis: Axes, rows: Sequence[Row], value: Callable[[Row], float | None], stage: str | None = None, **style: Any
) -> None:
    """The mean over seeds against the number of vectors, of one stage or of any."""
    found: dict[int, list[float]] = {}
    for row in rows:
        number = value(row)
        if stage in (None, row["stage"]) and number is not None and math.isfinite(number):
            found.setdefault(row["preferences"], []).append(number)
    counts = sorted(found)
    if counts:
        axis.plot(counts, [mean(found[count]) for count in counts], **style)


def _name_counts(axis: Axes, counts: Sequence[int]) -> None:
    axis.set_xscale("log")
    axis.set_xticks(counts, [str(count) for count in counts])
    axis.set_xticks([], minor=True)
    axis.set_xlim(counts[0] / 1.15, counts[-1] * 1.15)
    axis.set_xlabel("preference vectors")
