"""One front as a figure: a plane for two tasks, all pairs of three, parallel coordinates for more."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor

from paretomtl._support.files.paths import as_path
from paretomtl._support.imports.optional_packages import require
from paretomtl._support.splits import split_word
from paretomtl.core import nondominated
from paretomtl.front import Front
from paretomtl.front.solution_labels import short
from paretomtl.methods.registry import colour_of, marker_of
from paretomtl.report.figures.captions import front_caption, front_title
from paretomtl.report.figures.layers import Limits, margin_of
from paretomtl.report.figures.parallel import Polyline, draw_parallel
from paretomtl.report.figures.style import (
    QUIET,
    RAY,
    SMALL,
    WIDTH,
    add_caption,
    better_arrow,
    figure_style,
    finish_figure,
    plain,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_FAINT = 0.35  # the opacity of lines of models that another one dominates
_NUMBERED = 12  # the most models that are numbered; more leave no room
_CLOSE = 0.2  # in inches: numbers of points nearer to each other would overlap
_LABEL = 24  # letters of a shared label
_NEAR = 0.06  # as a share of the height of a panel: lines that end nearer to each other share a label
_NUMBER: dict[str, Any] = {"textcoords": "offset points", "fontsize": SMALL, "color": QUIET}
_WEDGE: dict[str, Any] = {"color": "0.955", "linewidth": 0, "zorder": -1}


def draw_front(front: Front, path: str | Path | None = None, *, split: str | None = None, dark: bool = False) -> Figure:
    """Draw the losses of a front's models; return the figure.

    Two tasks: one loss against the other. If preferences are directions, they are drawn as rays, and every other region
    is grey. Three tasks: every pair of them. More: parallel coordinates, one line per model, best up. Dominated models
    are hollow, or faint lines. Models that are not finite, or have a loss beyond the reference point while others have
    none, are left out and counted in the title of the panel. A caption says what is seen.

    A panel shows losses on the split that ranks. If there is a test split, another one shows the same models there, in
    the same units; models that are hollow in the first panel are hollow in both.

    Args:
        front: what to draw.
        path: the file to write; its suffix sets the format: ``.pdf`` and ``.svg`` are vector formats, ``.png`` is not.
            The figure is closed after it is written.
        split: the split to show, in one panel; by default ``front.ranking_split``, and test in a second panel.
        dark: whether to draw for a dark background.
    """
    path = None if path is None else as_path("path", path)
    if split is not None and (not isinstance(split, str) or split not in front.losses):
        raise ValueError(f"'split' must be one of {list(front.losses)}. Got {split!r} instead.")
    splits = front.shown_splits if split is None else (split,)
    panels = [_Panel.of(front, each, splits[0]) for each in splits]
    if not panels[0].rows:
        raise ValueError(f"'split' must have a model with finite losses to draw. Got none on {splits[0]!r}.")
    panels = [panel for panel in panels if panel.rows]
    with figure_style():
        figure = _DRAW.get(len(front.tasks), _draw_many)(front, panels)
        columns = {f"{task} loss": panels[0].losses[:, i].tolist() for i, task in enumerate(front.tasks)}
        look = "hollow" if len(columns) < 4 else "faint"
        rays = len(columns) == 2 and front.reading == "direction"
        rows, kept = panels[0].rows, panels[0].kept
        text = front_caption(
            front, columns, [False] * len(columns), rows, kept, rays=rays, regions=_has_regions(front), beaten=look
        )
        add_caption(figure, plain(front_title(front), 72), plain(text, 400))
        finish_figure(figure, path, dark=dark)
    return figure


@dataclass(frozen=True)
class _Panel:
    """The models of a front on one split.

    Attributes:
        split: the split of the losses.
        losses: ``[K, m]``.
        rows: the rows to draw.
        kept: the non-dominated ones among them, on the split that ranks.
        ranks: whether this is that split.
        beyond: the number of rows left out: they lie beyond the reference point, and would squeeze all others.
    """

    split: str
    losses: Tensor
    rows: list[int]
    kept: list[int]
    ranks: bool
    beyond: int

    @classmethod
    def of(cls, front: Front, split: str, ranking: str) -> _Panel:
        ranked = _finite_rows(front.losses[ranking])
        best = nondominated(front.losses[ranking].double()[ranked]).tolist() if ranked else []
        kept = [row for row, good in zip(ranked, best, strict=True) if good]
        losses = front.losses[split].double().cpu()
        finite = _finite_rows(losses)
        most = torch.tensor(front.reference or [torch.inf] * losses.shape[1], dtype=torch.float64)
        drawn = [row for row in finite if bool((losses[row] <= most).all())] or finite
        kept = [row for row in kept if row in drawn]
        return cls(split, losses, drawn, kept, split == ranking, len(finite) - len(drawn))

    @property
    def title(self) -> str:
        """The split, and a note on the models that are not drawn."""
        broken = len(self.losses) - len(self.rows) - self.beyond
        counts = {"not finite": broken, "beyond the reference": self.beyond}
        return f"Losses on {split_word(self.split)}" + "".join(
            f", {count} {what}" for what, count in counts.items() if count
        )


def _finite_rows(losses: Tensor) -> list[int]:
    return [row for row, fine in enumerate(losses.isfinite().all(-1).tolist()) if fine]


def _points(panels: Sequence[_Panel]) -> Tensor:
    """All losses that are drawn, which set the limits of all panels."""
    return torch.cat([panel.losses[panel.rows] for panel in panels])


def _draw_two(front: Front, panels: Sequence[_Panel]) -> Figure:
    pyplot = require("matplotlib.pyplot", "figures")
    size = (WIDTH if panels[1:] else 4.6, 3.5)
    figure, axes = pyplot.subplots(1, len(panels), figsize=size, squeeze=False, layout="constrained")
    origin = (0.0, 0.0) if front.ideal is None else front.ideal
    points = _points(panels)
    least = torch.minimum(points.amin(0), torch.tensor(origin, dtype=torch.float64)).tolist()
    most = points.amax(0).tolist()
    spans = [high - low or 1.0 for low, high in zip(least, most, strict=True)]
    lows = [low - (0.04 * span if low < 0 else 0.0) for low, span in zip(least, spans, strict=True)]
    highs = [high + 0.1 * span for high, span in zip(most, spans, strict=True)]
    for axis, panel in zip(axes[0], panels, strict=True):
        axis.set(xlim=(lows[0], highs[0]), ylim=(lows[1], highs[1]))
        if front.reading == "direction":
            far = 2 * max(high - start for high, start in zip(highs, origin, strict=True))
            _draw_rays(axis, front, origin, far)
        _draw_pair(axis, front, panel, (0, 1))
        axis.set_title(panel.title)
    better_arrow(axes[0][0])
    return figure  # type: ignore[no-any-return]


def _draw_three(front: Front, panels: Sequence[_Panel]) -> Figure:
    pyplot = require("matplotlib.pyplot", "figures")
    pairs = list(itertools.combinations(range(3), 2))
    size = (WIDTH, 2.6 * len(panels))
    figure, axes = pyplot.subplots(len(panels), 3, figsize=size, squeeze=False, layout="constrained")
    limits = _limits(_points(panels))
    for line, panel in zip(axes, panels, strict=True):
        for axis, pair in zip(line, pairs, strict=True):
            axis.set(xlim=limits[pair[0]], ylim=limits[pair[1]])
            _draw_pair(axis, front, panel, pair)
        line[0].set_title(panel.title)
    better_arrow(axes[0][0])
    return figure  # type: ignore[no-any-return]


def _draw_pair(axis: Axes, front: Front, panel: _Panel, pair: tuple[int, int]) -> None:
    """Draw one loss against another: filled models are not dominated, and a line joins them if there are two tasks."""
    labels = [plain(f"{front.tasks[task]} loss") for task in pair]
    axis.set(xlabel=labels[0], ylabel=labels[1])
    colour, marker = colour_of(front.method), marker_of(front.method)
    values = panel.losses[:, list(pair)]
    if panel.ranks and len(front.tasks) == 2:  # on other splits the line would go back and forth
        along = sorted(panel.kept, key=lambda row: tuple(values[row].tolist()))
        axis.plot(*values[along].T.tolist(), color=colour, linewidth=0.9, alpha=0.6, zorder=2)
    for row in panel.rows:
        x, y = values[row].tolist()
        filled = row in panel.kept
        style: dict[str, Any] = {
            "facecolor": colour if filled else "white",
            "edgecolors": "white" if filled else colour,
            "linewidths": 0.5 if filled else 1.1,
        }
        axis.scatter([x], [y], s=38 if filled else 28, marker=marker, zorder=3 if filled else 2.5, **style)
    if len(panel.rows) <= _NUMBERED:
        _number_points(axis, front, panel.rows, values)


def _number_points(axis: Axes, front: Front, rows: Sequence[int], values: Tensor) -> None:
    """Number the points of a panel; points so near to each other that numbers would overlap share a label."""
    spans = [high - low for low, high in (axis.get_xlim(), axis.get_ylim())]
    place = axis.get_subplotspec()
    assert place is not None
    inches = cast("Figure", axis.figure).get_figwidth() / place.get_geometry()[1]
    places = values / values.new_tensor(spans) * inches
    groups: list[list[int]] = []
    for row in rows:
        near = [group for group in groups if float((places[group] - places[row]).norm(dim=-1).min()) < _CLOSE]
        groups = [group for group in groups if group not in near]
        groups.append(sorted([row, *(other for group in near for other in group)]))
    for group in groups:
        labels = [_label(front, row) for row in group]
        text = ", ".join(labels)
        text = text if len(group) == 1 or len(text) <= _LABEL else f"{labels[0]} and {len(group) - 1} more"
        axis.annotate(text, tuple(values[group].amax(0).tolist()), (5, 4), **_NUMBER)


def _draw_rays(axis: Axes, front: Front, origin: Sequence[float], far: float) -> None:
    """Draw preference vectors as rays, and every other region grey, in the units in which regions were decided.

    A region holds the directions that are nearer to its vector than to any other, so it ends half way to its
    neighbours. If units differ between models, regions have no common borders and are left out.
    """
    rows = list(range(len(front.preferences))) if front.scale is None else list(front.subproblems)
    factors = torch.ones(len(rows), 2, dtype=torch.float64) if front.scale is None else front.scale.double().cpu()
    vectors = front.preferences[rows].double()
    for vector, factor in zip(vectors, factors, strict=True):
        end = _end(math.atan2(float(vector[1]), float(vector[0])), factor, origin, far)
        axis.plot([origin[0], end[0]], [origin[1], end[1]], **RAY)
    if not _has_regions(front):
        return
    angles = sorted(set(torch.atan2(vectors[:, 1], vectors[:, 0]).tolist()))
    inner = [(a + b) / 2 for a, b in itertools.pairwise(angles)]
    borders = [_end(angle, factors[0], origin, far) for angle in (0.0, *inner, math.pi / 2)]
    for first, second in list(itertools.pairwise(borders))[1::2]:
        axis.fill([origin[0], first[0], second[0]], [origin[1], first[1], second[1]], **_WEDGE)


def _has_regions(front: Front) -> bool:
    """Whether all rows of directions were trained in the same units, so that regions have common borders."""
    alike = front.scale is None or bool(torch.allclose(front.scale, front.scale[:1].expand_as(front.scale)))
    whole = front.scale is None or len(front.subproblems) == len(front.preferences)
    return alike and whole and len(front.preferences) > 1


def _end(angle: float, factor: Tensor, origin: Sequence[float], far: float) -> tuple[float, float]:
    """Return a point outside the panel, in a direction of scaled losses."""
    x, y = math.cos(angle) / float(factor[0]), math.sin(angle) / float(factor[1])
    length = 4 * far / math.hypot(x, y)
    return origin[0] + length * x, origin[1] + length * y


def _draw_many(front: Front, panels: Sequence[_Panel]) -> Figure:
    pyplot = require("matplotlib.pyplot", "figures")
    size = (min(WIDTH, 1.6 + 1.2 * len(front.tasks)), 2.9 * len(panels))
    figure, axes = pyplot.subplots(len(panels), 1, figsize=size, squeeze=False, layout="constrained")
    limits = tuple((high, low) for low, high in _limits(_points(panels)))  # low losses are up
    colour = colour_of(front.method)
    for (axis,), panel in zip(axes, panels, strict=True):
        lines = [
            Polyline(
                panel.losses[row].tolist(),
                {"color": colour, "linewidth": 1.1, "alpha": 0.9 if row in panel.kept else _FAINT},
            )
            for row in panel.rows
        ]
        draw_parallel(axis, front.tasks, limits, lines)
        axis.set_title(panel.title, pad=22)
        if len(panel.rows) <= _NUMBERED:
            _number_lines(axis, front, panel, limits[-1])
    return figure  # type: ignore[no-any-return]


def _number_lines(axis: Axes, front: Front, panel: _Panel, limits: tuple[float, float]) -> None:
    """Number the lines at their right ends; lines that end at the same height share a label."""
    worst, best = limits
    heights = sorted(((float(panel.losses[row, -1]) - worst) / (best - worst), row) for row in panel.rows)
    groups: list[list[tuple[float, int]]] = []
    for height, row in heights:
        if groups and height - groups[-1][-1][0] < _NEAR:
            groups[-1].append((height, row))
        else:
            groups.append([(height, row)])
    for group in groups:
        middle = sum(height for height, _ in group) / len(group)
        text = ", ".join(_label(front, row) for _, row in sorted(group, key=lambda each: each[1]))
        axis.annotate(text, (len(front.tasks) - 1, middle), (5, 0), va="center", **_NUMBER)


_DRAW = {2: _draw_two, 3: _draw_three}


def _label(front: Front, row: int) -> str:
    """The label of a model: its name, or its number."""
    return plain(short(front.names[row])) if front.names else str(front.subproblems[row])


def _limits(points: Tensor) -> Limits:
    limits = []
    for low, high in zip(points.amin(0).tolist(), points.amax(0).tolist(), strict=True):
        margin = margin_of(low, high)
        limits.append((low - margin, high + margin))
    return tuple(limits)
