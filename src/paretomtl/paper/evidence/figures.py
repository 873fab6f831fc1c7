"""The figures of the study, drawn only from its stored rows."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from paretomtl.compare import Row, Summary
from paretomtl.methods.registry import colour_of
from paretomtl.paper.evidence.verdicts import by_setting, measured_on, summaries_of
from paretomtl.paper.panels import caption, grid, name_lines
from paretomtl.paper.study import Draw

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLUMNS = 3


def draw_hypervolumes(rows: Sequence[Row]) -> Figure | None:
    """The hypervolume of every arm and seed, a panel for each problem, the best arm on top."""
    return _draw(rows, "hypervolume", lambda summary: measured_on(summary).hypervolumes)


def draw_regrets(rows: Sequence[Row]) -> Figure | None:
    """The regret over random utilities of every arm and seed: what somebody who chooses a model loses."""
    return _draw(rows, "regret (less is better)", lambda summary: measured_on(summary).regrets)


def _draw(rows: Sequence[Row], label: str, values_of: Callable[[Summary], Sequence[float]]) -> Figure | None:
    settings = _fronts(rows)
    if not settings:
        return None
    most = max(len({row["method"] for row in own}) for own in settings.values())
    figure, axes = _grid(len(settings), height=0.24 * most + 1.0)
    for number, (axis, (title, own)) in enumerate(zip(axes, settings.items(), strict=True)):
        found = [each for each in summaries_of(own) if not each.ideal][::-1]
        name_lines(axis, [each.method for each in found])
        for height, summary in enumerate(found):
            trained_by = next(row["trained_by"] for row in own if row["method"] == summary.method)
            known = [value for value in values_of(summary) if math.isfinite(value)]
            _draw_strip(axis, height, trained_by, known)
        axis.set_xlabel(f"{label} on {measured_on(found[0]).split}")
        caption(axis, number, title)
    return figure


def _draw_strip(axis: Axes, height: int, method: str, values: Sequence[float]) -> None:
    """A point for each seed, and the mean as a bar, within one line."""
    step = 0.6 / max(1, len(values) - 1)
    heights = [height + step * (k - (len(values) - 1) / 2) for k in range(len(values))]
    axis.scatter(values, heights, s=9, color=colour_of(method), edgecolor="none", alpha=0.7, zorder=3)
    if values:
        axis.plot(
            [statistics.fmean(values)] * 2, [height - 0.36, height + 0.36], color="black", linewidth=1.3, zorder=4
        )


def _fronts(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """The settings with at least two arms."""
    return {title: own for title, own in by_setting(rows).items() if len({row["method"] for row in own}) > 1}


def _grid(count: int, *, height: float) -> tuple[Figure, list[Axes]]:
    return grid(-(-count // _COLUMNS), min(count, _COLUMNS), count, width=4.2, height=height, below=0.1)


FIGURES: dict[str, Draw] = {
    "beyond-hypervolume": draw_hypervolumes,
    "beyond-regret": draw_regrets,
}
"""The figures by the name of their files."""
