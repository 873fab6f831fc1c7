"""One front as a figure: a 2D plot for two tasks, a 3D plot for three, parallel coordinates for more."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from paretomtl._support.files.paths import as_path
from paretomtl._support.imports.optional_packages import require
from paretomtl.core import nondominated
from paretomtl.front import Front
from paretomtl.front.solution_labels import short
from paretomtl.methods.registry import colour_of, label_of, marker_of
from paretomtl.report.figures.layers import Layer, Quantity
from paretomtl.report.figures.parallel import Polyline, draw_parallel
from paretomtl.report.figures.scatter3d import PROJECTION_3D, draw_scatter3d
from paretomtl.report.figures.style import RAY, paper_style, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_FAINT = 0.35  # the opacity of solutions that another one dominates
_NUMBERED = 12  # the most solutions that are numbered; more leave no room
_NUMBER: dict[str, Any] = {"textcoords": "offset points", "fontsize": 7.5, "color": "0.3"}
_WEDGE: dict[str, Any] = {"color": "0.955", "linewidth": 0, "zorder": -1}


def draw_front(front: Front, path: str | Path | None = None, *, split: str | None = None) -> Figure:
    """Draw the losses of a front's solutions; return the figure.

    Two tasks: one loss against the other. If preferences are directions, they are drawn as rays, and every other region
    is grey. Three tasks: points in 3D. More: parallel coordinates, one line per solution. Dominated solutions are
    faint, or hollow in 3D. Solutions that are not finite, or have a loss beyond the reference point while others have
    none, are left out and counted in the title.

    The panel shows losses on the split that ranks. If there is a test split, a second panel shows the same solutions
    there, in the same units; solutions that are faint in the first panel are faint in both.

    Args:
        front: what to draw.
        path: the file to write; its suffix sets the format: ``.pdf`` and ``.svg`` are vector formats, ``.png`` is not.
            The figure is closed after it is written.
        split: the split to show, in one panel; by default ``front.ranking_split``, and test in a second panel.
    """
    path = None if path is None else as_path("path", path)
    if split is not None and (not isinstance(split, str) or split not in front.losses):
        raise ValueError(f"'split' must be one of {list(front.losses)}. Got {split!r} instead.")
    splits = front.shown_splits if split is None else (split,)
    panels = [_Panel.of(front, each, splits[0]) for each in splits]
    if not panels[0].finite:
        raise ValueError(f"'split' must have a solution with finite losses to draw. Got none on {splits[0]!r}.")
    panels = [panel for panel in panels if panel.finite]
    pyplot = require("matplotlib.pyplot", "figures")
    tasks = len(front.tasks)
    across, wide = (len(panels), 1) if tasks < 4 else (1, len(panels))
    with paper_style():
        size = (4.6, 3.9) if tasks < 4 else (1.5 + 1.1 * tasks, 3.6)
        figure = pyplot.figure(figsize=(size[0] * across, size[1] * wide), layout="constrained" if panels[1:] else None)
        points = torch.cat([panel.losses[panel.finite] for panel in panels])
        whose = f"{plain(front.problem)}, {plain(label_of(front.method))}"
        if panels[1:]:
            figure.suptitle(whose, x=0.01, ha="left")
        for number, panel in enumerate(panels):
            axis = figure.add_subplot(wide, across, number + 1, **(PROJECTION_3D if tasks == 3 else {}))
            draw = {2: _draw_two, 3: _draw_three}.get(tasks, _draw_many)
            draw(axis, front, panel, points)
            title = f"losses on {panel.split}{panel.missing}"
            axis.set_title(title if panels[1:] else f"{whose}, {title}", loc="left", pad=22 if tasks > 3 else None)
        if path is not None:
            try:
                _save(figure, path)
            finally:
                pyplot.close(figure)
    return figure  # type: ignore[no-any-return]


@dataclass(frozen=True)
class _Panel:
    """The solutions of a front on one split.

    Attributes:
        split: the split of the losses.
        losses: ``[K, m]``.
        finite: the rows to draw.
        kept: the non-dominated ones among them, on the split that ranks.
        ranks: whether this is that split.
        beyond: the number of rows left out: they lie beyond the reference point, and would squeeze all others.
    """

    split: str
    losses: Tensor
    finite: list[int]
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
    def missing(self) -> str:
        """A note on the solutions that are not drawn."""
        broken = len(self.losses) - len(self.finite) - self.beyond
        counts = {"not finite": broken, "beyond the reference": self.beyond}
        return "".join(f", {count} {what}" for what, count in counts.items() if count)


def _finite_rows(losses: Tensor) -> list[int]:
    return [row for row, fine in enumerate(losses.isfinite().all(-1).tolist()) if fine]


def _save(figure: Figure, path: Path) -> None:
    """Write a figure in the format of the path's suffix; the same figure gives the same bytes."""
    known = figure.canvas.get_supported_filetypes()
    kind = path.suffix.removeprefix(".").lower()
    if kind not in known:
        raise ValueError(f"'path' must end in one of {', '.join(f'.{each}' for each in sorted(known))}. Got '{path}'.")
    without = {"png": ["Software"], "svg": ["Date", "Creator"], "pdf": ["CreationDate", "Creator", "Producer"]}
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=200, bbox_inches="tight", metadata=dict.fromkeys(without.get(kind, [])) or None)


def _draw_two(axis: Axes, front: Front, panel: _Panel, points: Tensor) -> None:
    origin = (0.0, 0.0) if front.ideal is None else front.ideal
    least = torch.minimum(points.amin(0), torch.tensor(origin, dtype=torch.float64)).tolist()
    most = points.amax(0).tolist()
    spans = [high - low or 1.0 for low, high in zip(least, most, strict=True)]
    lows = [low - (0.04 * span if low < 0 else 0.0) for low, span in zip(least, spans, strict=True)]
    highs = [high + 0.1 * span for high, span in zip(most, spans, strict=True)]
    names = [f"{plain(task)} loss on {panel.split}" for task in front.tasks]
    axis.set(xlim=(lows[0], highs[0]), ylim=(lows[1], highs[1]), xlabel=names[0], ylabel=names[1])
    if front.reading == "direction":
        far = 2 * max(high - start for high, start in zip(highs, origin, strict=True))
        _draw_rays(axis, front, origin, far)
    colour, marker = colour_of(front.method), marker_of(front.method)
    if panel.ranks:  # on other splits the line would go back and forth
        along = sorted(panel.kept, key=lambda row: tuple(panel.losses[row].tolist()))
        axis.plot(*panel.losses[along].T.tolist(), color=colour, linewidth=0.8, alpha=0.6, zorder=2)
    for row in panel.finite:
        x, y = panel.losses[row].tolist()
        shown = 1.0 if row in panel.kept else _FAINT
        style: dict[str, Any] = {"color": colour, "marker": marker, "linewidths": 0.5, "edgecolors": "white"}
        axis.scatter([x], [y], s=34, alpha=shown, zorder=3, **style)
        if len(panel.finite) <= _NUMBERED:
            axis.annotate(_label(front, row), (x, y), (5, 4), **_NUMBER)


def _draw_rays(axis: Axes, front: Front, origin: Sequence[float], far: float) -> None:
    """Draw preference vectors as rays, and every other region grey, in the units in which regions were decided.

    A region holds the directions that are nearer to its vector than to any other, so it ends half way to its
    neighbours. If units differ between solutions, regions have no common borders and are left out.
    """
    rows = list(range(len(front.preferences))) if front.scale is None else list(front.subproblems)
    factors = torch.ones(len(rows), 2, dtype=torch.float64) if front.scale is None else front.scale.double().cpu()
    vectors = front.preferences[rows].double()
    for vector, factor in zip(vectors, factors, strict=True):
        end = _end(math.atan2(float(vector[1]), float(vector[0])), factor, origin, far)
        axis.plot([origin[0], end[0]], [origin[1], end[1]], **RAY)
    whole = len(rows) == len(front.preferences) and bool(torch.allclose(factors, factors[:1].expand_as(factors)))
    if not whole or len(rows) < 2:
        return
    angles = sorted(set(torch.atan2(vectors[:, 1], vectors[:, 0]).tolist()))
    inner = [(a + b) / 2 for a, b in itertools.pairwise(angles)]
    borders = [_end(angle, factors[0], origin, far) for angle in (0.0, *inner, math.pi / 2)]
    for first, second in list(itertools.pairwise(borders))[1::2]:
        axis.fill([origin[0], first[0], second[0]], [origin[1], first[1], second[1]], **_WEDGE)


def _end(angle: float, factor: Tensor, origin: Sequence[float], far: float) -> tuple[float, float]:
    """Return a point outside the panel, in a direction of scaled losses."""
    x, y = math.cos(angle) / float(factor[0]), math.sin(angle) / float(factor[1])
    length = 4 * far / math.hypot(x, y)
    return origin[0] + length * x, origin[1] + length * y


def _draw_three(axis: Any, front: Front, panel: _Panel, points: Tensor) -> None:
    layers = []
    names = [f"{task} on {panel.split}" for task in front.tasks]
    for hollow in (True, False):
        rows = [row for row in panel.finite if (row not in panel.kept) == hollow]
        row = {"tasks": names, "losses": panel.losses[rows].tolist(), "seed": front.seed}
        style = colour_of(front.method), marker_of(front.method)
        layers.append(Layer([row], label_of(front.method), *style, hollow=hollow))
    draw_scatter3d(axis, Quantity("losses", "loss"), layers, _limits(points))


def _draw_many(axis: Axes, front: Front, panel: _Panel, points: Tensor) -> None:
    colour = colour_of(front.method)
    lines = [
        Polyline(
            panel.losses[row].tolist(),
            {"color": colour, "linewidth": 1.0, "alpha": 0.85 if row in panel.kept else _FAINT},
        )
        for row in panel.finite
    ]
    limits = _limits(points)
    draw_parallel(axis, front.tasks, limits, lines)
    axis.set_ylabel(f"losses on {panel.split}")
    if len(panel.finite) <= _NUMBERED:
        low, high = limits[-1]
        for row in panel.finite:
            end = (len(front.tasks) - 1, (float(panel.losses[row, -1]) - low) / (high - low))
            axis.annotate(_label(front, row), end, (5, 0), va="center", **_NUMBER)


def _label(front: Front, row: int) -> str:
    """The label of a solution: its name, or its number."""
    return plain(short(front.names[row])) if front.names else str(front.subproblems[row])


def _limits(points: Tensor) -> tuple[tuple[float, float], ...]:
    limits = []
    for low, high in zip(points.amin(0).tolist(), points.amax(0).tolist(), strict=True):
        margin = 0.04 * (high - low) or 0.05
        limits.append((low - margin, high + margin))
    return tuple(limits)
