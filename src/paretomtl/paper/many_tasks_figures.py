"""The figure of many tasks: what more preference vectors cover, drawn from stored rows alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paretomtl._support.optional import require
from paretomtl.compare import Row
from paretomtl.paper.panels import caption, draw_figures, grid, legend
from paretomtl.paper.statistics import mean

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_FINAL, _BEFORE = "final", "snapshot"
_COLOURS = ("#0a2a5e", "#0b5fa5", "#1b8a8f", "#c98a00", "#c1272d")
_MARKERS = ("o", "s", "^", "D", "v")
_SOLID: dict[str, Any] = {"linestyle": "-", "linewidth": 1.4}
_DASHED: dict[str, Any] = {"linestyle": (0, (5, 2)), "linewidth": 1.0}
_DOTTED: dict[str, Any] = {"linestyle": (0, (1, 1.6)), "linewidth": 1.1}
_DISTANCES = ("(solid), before the release (dashed), and of the", "points of the front nearest to the rays (dotted)")
_SHARES = ("the front meets (dotted), and of solutions in", "their own region before the release (solid)")


def draw_many_tasks(rows: Sequence[Row], folder: Path) -> list[Path]:
    """How well the front is covered, and how many regions it meets, by the number of vectors and of objectives."""
    return draw_figures(rows, folder, {"many-tasks": _many_tasks})


def _many_tasks(rows: Sequence[Row]) -> Figure | None:
    """A line of panels for even vectors, and one for gathered ones, on the same scales."""
    ways = sorted({_gathered(row) for row in rows})
    if not ways:
        return None
    figure, axes = grid(len(ways), 2, width=4.4, height=4.3, below=0.9)
    looks = {tasks: i for i, tasks in enumerate(sorted({row["tasks"] for row in rows}))}
    counts = sorted({row["preferences"] for row in rows})
    for i, gathered in enumerate(ways):
        mine = [row for row in rows if _gathered(row) == gathered]
        left, right = axes[2 * i : 2 * i + 2]
        for tasks, look in looks.items():
            _draw_objectives(left, right, [row for row in mine if row["tasks"] == tasks], look)
        vectors = "gathered vectors" if gathered else "even vectors"
        caption(left, 2 * i, f"{vectors}: IGD+ of the solutions at the end", *_DISTANCES)
        caption(right, 2 * i + 1, f"{vectors}: share of the regions that", *_SHARES)
    _scale(axes, counts)
    for tasks, look in looks.items():
        axes[0].plot([], [], label=f"{tasks} objectives", linewidth=1.4, **_marks(look))
    legend(figure, "Means over seeds.", columns=5)
    return figure


def _gathered(row: Row) -> float:
    """How far the vectors of a row are drawn towards the middle."""
    return float(row.get("gathered", 0))


def _marks(look: int) -> dict[str, Any]:
    return {"color": _COLOURS[look % len(_COLOURS)], "marker": _MARKERS[look % len(_MARKERS)], "markersize": 4.5}


def _draw_objectives(left: Axes, right: Axes, rows: Sequence[Row], look: int) -> None:
    """The lines of one number of objectives: IGD+ and shares."""
    marks = _marks(look)
    colour = {"color": marks["color"]}
    _line(left, rows, lambda row: row["igd_plus"], stage=_FINAL, **_SOLID, **marks)
    _line(left, rows, lambda row: row["igd_plus"], stage=_BEFORE, **_DASHED, **colour)
    _line(left, rows, lambda row: row["igd_plus_on_rays"], **_DOTTED, **colour)
    hollow = {**marks, "markerfacecolor": "white"}
    _line(right, rows, lambda row: row["regions_met"] / row["preferences"], **_DOTTED, **colour)
    _line(right, rows, lambda row: row["in_region"] / row["preferences"], stage=_BEFORE, **_SOLID, **hollow)


def _scale(axes: Sequence[Axes], counts: Sequence[int]) -> None:
    """All panels of a column alike."""
    ticker = require("matplotlib.ticker", "figures")
    for axis in axes:
        axis.set_xscale("log")
        axis.set_xticks(counts, [str(count) for count in counts])
        axis.set_xticks([], minor=True)
        axis.set_xlim(counts[0] / 1.15, counts[-1] * 1.15)
        axis.set_xlabel("preference vectors")
    for axis in axes[::2]:
        axis.set_yscale("log", subs=[])
        axis.set_ylabel("IGD+")
        axis.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
        axis.yaxis.set_major_formatter(ticker.FormatStrFormatter("%g"))
    ends = [axis.get_ylim() for axis in axes[::2]]
    for axis in axes[::2]:
        axis.set_ylim(min(low for low, _ in ends), max(high for _, high in ends))
    for axis in axes[1::2]:
        axis.set(ylabel="share", ylim=(0, 1.05))


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
