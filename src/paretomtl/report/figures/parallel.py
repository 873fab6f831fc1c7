"""Parallel coordinates: a vertical axis per task, and a line per model."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from paretomtl.report.figures.layers import Limits, to_unit
from paretomtl.report.figures.style import SMALL, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LETTERS = 12  # of a line of a name below an axis

_HUGE = 1e6  # larger values are written with an exponent


@dataclass(frozen=True)
class Polyline:
    """A line through parallel coordinates.

    Attributes:
        values: one for each axis; None if it is not finite.
        style: of the line.
    """

    values: Sequence[float | None]
    style: Mapping[str, Any] = field(default_factory=dict)


def draw_parallel(axis: Axes, names: Sequence[str], limits: Limits, lines: Sequence[Polyline]) -> None:
    """Draw lines through one vertical axis per name, with the values at its two ends.

    Args:
        axis: where to draw.
        names: of the axes, from the left to the right.
        limits: the values at the lower and upper end of each axis; the first may be the larger one.
        lines: what to draw.
    """
    places = range(len(names))
    for place, (low, high) in zip(places, limits, strict=True):
        axis.plot([place, place], [0, 1], color="0.45", linewidth=0.8, zorder=1)
        digits = _digits(low, high)
        for value, height in ((low, 0), (high, 1)):
            style: dict[str, Any] = {"ha": "center", "va": "bottom" if height else "top", "fontsize": SMALL}
            offset = (0, 5 if height else -5)
            axis.annotate(
                f"{value:.{digits}f}" if abs(value) < _HUGE else f"{value:.3g}",
                (place, height),
                offset,
                textcoords="offset points",
                **style,
            )
    for each in lines:
        axis.plot(places, to_unit(each.values, limits), **each.style)
    axis.set(xlim=(-0.22, len(names) - 0.78), ylim=(-0.025, 1.025), yticks=[])
    axis.set_xticks(places, [_in_lines(plain(name.replace("-", " "))) for name in names])
    axis.tick_params(axis="x", length=0, pad=16)
    axis.spines[:].set_visible(False)


def _in_lines(name: str) -> str:
    return textwrap.fill(name, _LETTERS, break_long_words=False)


def _digits(low: float, high: float) -> int:
    """Return the number of decimals that resolves about a hundredth of the range."""
    return max(0, 2 - round(math.log10(abs(high - low))))
