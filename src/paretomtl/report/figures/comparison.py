"""Several methods in one figure: their models, and their hypervolumes over seeds; drawn from stored rows alone."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from paretomtl._support.files.paths import as_path
from paretomtl._support.imports.optional_packages import require
from paretomtl._support.significance import mean
from paretomtl._support.splits import split_word
from paretomtl.compare import Row, Summary, summaries
from paretomtl.compare.rows import best_losses, is_ideal, points_tensor, read_row, rows_split
from paretomtl.core import nondominated
from paretomtl.methods.registry import colour_of, label_of, marker_of
from paretomtl.report.figures.captions import comparison_caption
from paretomtl.report.figures.layers import Limits, margin_of
from paretomtl.report.figures.parallel import Polyline, draw_parallel
from paretomtl.report.figures.style import (
    INK,
    QUIET,
    RAY,
    WIDTH,
    add_caption,
    better_arrow,
    figure_style,
    finish_figure,
    plain,
    save_figure,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LINES = ("-", "--", "-.", ":")  # lines differ by more than their colour


def plot_comparison(rows: Sequence[Row], path: str | Path | None = None, *, dark: bool = False) -> Figure:
    """Draw the models of each method's first seed, and the hypervolumes of all seeds; return the figure.

    Two tasks: one loss against the other, with the preference vectors as rays, and a line through the non-dominated
    models of each method. Three: every pair of tasks. More: parallel coordinates of the balanced model of each method,
    best up. Losses are those on the split that ranks. Hypervolumes are on this split, and on test if there is one. A
    caption gives the verdict.

    Args:
        rows: of :func:`paretomtl.compare.compare`.
        path: the file to write; its suffix, such as ``.pdf``, ``.svg`` or ``.png``, sets the format. The figure is
            closed after it is written.
        dark: whether to draw for a dark background.
    """
    path = None if path is None else as_path("path", path)
    with figure_style():
        figure = _draw([read_row(row) for row in rows])
        finish_figure(figure, path, dark=dark)
    return figure


def draw_comparison(rows: Sequence[Row], folder: Path) -> list[Path]:
    """Write the figure of :func:`plot_comparison` as ``compare.png``, ``compare-dark.png`` and ``compare.svg``."""
    pyplot = require("matplotlib.pyplot", "figures")
    with figure_style():
        figure = _draw([read_row(row) for row in rows])
        paths = save_figure(figure, folder, "compare")
        pyplot.close(figure)
    return paths


def _draw(rows: Sequence[Row]) -> Figure:
    if not rows:
        raise ValueError("'rows' must have a run to draw. Got none.")
    ranking = rows_split(rows)
    table = sorted(summaries(rows), key=lambda each: each.ideal)  # separate networks, which are no front, come last
    order = [each.method for each in table]
    seed = min(row["seed"] for row in rows)
    first = sorted((row for row in rows if row["seed"] == seed), key=lambda row: order.index(row["method"]))
    tasks = len(first[0]["tasks"])
    pyplot = require("matplotlib.pyplot", "figures")
    strip = 0.75 + 0.26 * len(table)
    if tasks == 2:
        figure = pyplot.figure(figsize=(WIDTH, max(3.3, strip)), layout="constrained")
        left, right = figure.subplots(1, 2, width_ratios=(1.15, 1))
        _draw_plane(left, first, ranking)
        left.set_title(f"Models on {split_word(ranking)}, seed {seed}")
        better_arrow(left)
    else:
        figure = pyplot.figure(figsize=(WIDTH, 2.7 + strip), layout="constrained")
        above, below = figure.subfigures(2, 1, height_ratios=(2.7, strip))
        right = below.subplots()
        if tasks == 3:
            _draw_pairs(above.subplots(1, 3), first, ranking, seed)
        else:
            axis = above.subplots()
            _draw_balanced(axis, first, ranking)
            axis.set_title(
                f"The balanced model of each method on {split_word(ranking)}, seed {seed}: up is better", pad=22
            )
    _draw_hypervolumes(right, table, ranking)
    title = f"{first[0]['problem']}: {len(table)} method{'s' if len(table) > 1 else ''}, same recipe"
    add_caption(figure, plain(title, 72), plain(f"{comparison_caption(rows)}{_lines_drawn(first, tasks)}", 500))
    return figure  # type: ignore[no-any-return]


def _lines_drawn(rows: Sequence[Row], tasks: int) -> str:
    """Name the lines of a plane: preferences, and separate networks."""
    dashed = tasks == 2 and any(row["reading"] == "direction" for row in rows)
    dotted = tasks < 4 and any(map(is_ideal, rows))
    return (" Dashed: the preferences." if dashed else "") + (" Dotted: separate networks." if dotted else "")


def _draw_plane(axis: Axes, rows: Sequence[Row], split: str) -> None:
    (left, right), (bottom, top) = _plane_limits(rows, split)
    axis.set(xlim=(left, right), ylim=(bottom, top))
    for direction in next((row["vectors"] for row in rows if row["reading"] == "direction"), []):
        length = 2 * max(right, top)
        axis.plot([0, length * direction[0]], [0, length * direction[1]], **RAY)
    for row in rows:
        _draw_models(axis, row, split, (0, 1), line=row["reading"] != "start")
    tasks = rows[0]["tasks"]
    axis.set(xlabel=plain(f"{tasks[0]} loss"), ylabel=plain(f"{tasks[1]} loss"))
    _note_outside(axis, rows, split, (right, top))


def _draw_pairs(axes: Sequence[Axes], rows: Sequence[Row], split: str, seed: int) -> None:
    limits, tasks = _ranges(rows, split), rows[0]["tasks"]
    for axis, pair in zip(axes, itertools.combinations(range(3), 2), strict=True):
        axis.set(xlim=limits[pair[0]], ylim=limits[pair[1]])
        for row in rows:
            _draw_models(axis, row, split, pair, line=False)
        axis.set(xlabel=plain(f"{tasks[pair[0]]} loss"), ylabel=plain(f"{tasks[pair[1]]} loss"))
    axes[0].set_title(f"Models on {split_word(split)}, seed {seed}")
    better_arrow(axes[0])
    _note_outside(axes[0], rows, split, [high for _, high in limits])


def _draw_models(axis: Axes, row: Row, split: str, pair: tuple[int, int], *, line: bool) -> None:
    """Draw the models of a row; separate networks are dotted lines, because each of them has only one task."""
    colour = colour_of(row["method"])
    if is_ideal(row):
        best = best_losses(row, split)
        for place, draw in zip(pair, (axis.axvline, axis.axhline), strict=True):
            if best:
                draw(best[place], color=colour, linewidth=1.0, linestyle=":", zorder=1)
        return
    points = points_tensor(row, split)[:, list(pair)]
    style: dict[str, Any] = {"color": colour, "marker": marker_of(row["method"]), "edgecolors": "white"}
    x, y = points.T.tolist()
    axis.scatter(x, y, s=34, zorder=3, linewidths=0.5, **style)
    if line:
        along = points[_along_front(points)]
        axis.plot(*along.T.tolist(), color=colour, linewidth=0.9, alpha=0.6, zorder=2)


def _plane_limits(rows: Sequence[Row], split: str) -> Limits:
    """Return the limits of the axes: from zero, or a loss below it, to the largest loss within the reference."""
    points = torch.cat([points_tensor(row, split) for row in rows])
    reference = next((row["reference"] for row in rows if row["reference"]), None)
    most = torch.tensor(reference or [torch.inf] * points.shape[1], dtype=torch.float64)
    inside = points[(points <= most).all(-1)]
    shown = inside if len(inside) else points
    if not len(shown):
        return ((0.0, 1.0),) * points.shape[1]
    limits = []
    for low, high in zip(shown.amin(0).tolist(), shown.amax(0).tolist(), strict=True):
        start = min(low, 0.0)
        margin = 0.08 * (high - start) or 0.05
        limits.append((start - (margin if start < 0 else 0.0), high + margin))
    return tuple(limits)


def _note_outside(axis: Axes, rows: Sequence[Row], split: str, ends: Sequence[float]) -> None:
    most = torch.tensor(ends, dtype=torch.float64)
    count = sum(int((points_tensor(row, split) > most).any(-1).sum()) for row in rows if not is_ideal(row))
    if count:
        note = f"{count} {'model lies' if count == 1 else 'models lie'} beyond the reference"
        axis.set_xlabel(f"{axis.get_xlabel()}\n({note})")


def balanced_models(rows: Sequence[Row], split: str) -> dict[str, torch.Tensor]:
    """The losses of one model per method: that of the smallest largest regret, over the ranges of all methods."""
    points = {row["method"]: points_tensor(row, split) for row in rows if not is_ideal(row)}
    known = {method: some for method, some in points.items() if len(some)}
    if not known:
        return {}
    every = torch.cat(list(known.values()))
    low, span = every.amin(0), (every.amax(0) - every.amin(0)).clamp_min(1e-12)
    return {method: some[int(((some - low) / span).amax(-1).argmin())] for method, some in known.items()}


def _draw_balanced(axis: Axes, rows: Sequence[Row], split: str) -> None:
    """Draw one line per method: its balanced model."""
    balanced = balanced_models(rows, split)
    shown = torch.stack(list(balanced.values())) if balanced else torch.empty(0, len(rows[0]["tasks"]))
    limits = tuple((high, best) for best, high in padded(shown))  # low losses are up
    lines = [
        Polyline(
            point.tolist(),
            {
                "color": colour_of(method),
                "linestyle": _LINES[number % len(_LINES)],
                "linewidth": 1.3,
                "marker": marker_of(method),
                "markersize": 5,
            },
        )
        for number, (method, point) in enumerate(balanced.items())
    ]
    draw_parallel(axis, rows[0]["tasks"], limits, lines)


def _draw_hypervolumes(axis: Axes, table: Sequence[Summary], split: str) -> None:
    """Draw the hypervolume of each seed and the means, the best method at the top; those on test are hollow."""
    for number, each in enumerate(table):
        height = len(table) - 1 - number
        for part, shift, filled in ((each, 0.14, True), (each.test, -0.2, False)):
            if part is None:
                continue
            colour, values = colour_of(each.method), list(part.hypervolumes)
            style: dict[str, Any] = {
                "marker": marker_of(each.method),
                "zorder": 3,
                "linewidths": 0.5 if filled else 0.9,
            }
            style |= {"facecolor": colour if filled else "white", "edgecolors": "white" if filled else colour}
            axis.scatter(values, [height + shift] * len(values), s=30 if filled else 20, **style)
            if len(values) > 1:
                axis.plot([mean(values)] * 2, [height + shift - 0.16, height + shift + 0.16], color=INK, linewidth=1.4)
    names = [plain(label_of(each.method), 22) + ("*" if each.ideal else "") for each in reversed(table)]
    axis.set_yticks(range(len(table)), names)
    axis.locator_params(axis="x", nbins=6)
    axis.set_ylim(-0.6, len(table) - 0.4)
    axis.grid(axis="y", color="0.92", linewidth=0.7)
    axis.tick_params(axis="y", length=0)
    tested = table[0].test is not None
    axis.set_title(f"Hypervolume on {split_word(split)}{', hollow: test' if tested else ''}")
    star = "\n* a point of separate networks, which is no front" if any(each.ideal for each in table) else ""
    axis.set_xlabel(f"larger is better; points are seeds, bars their means{star}", color=QUIET)


def _ranges(rows: Sequence[Row], split: str) -> Limits:
    """Return the range of each task's losses, of models within the reference if there are any."""
    points = [points_tensor(row, split) for row in rows]
    inside = torch.cat([some[_inside(row, some)] for row, some in zip(rows, points, strict=True)])
    return padded(inside if len(inside) else torch.cat(points))


def padded(points: torch.Tensor) -> Limits:
    """Return the range of each column with a margin; (0, 1) for no points."""
    if not len(points):
        return ((0.0, 1.0),) * points.shape[1]
    limits = []
    for low, high in zip(points.amin(0).tolist(), points.amax(0).tolist(), strict=True):
        margin = margin_of(low, high)
        limits.append((low - margin, high + margin))
    return tuple(limits)


def _inside(row: Row, points: torch.Tensor) -> torch.Tensor:
    reference = torch.tensor(row["reference"] or [torch.inf] * points.shape[1], dtype=torch.float64)
    return (points <= reference).all(-1)


def _along_front(points: torch.Tensor) -> list[int]:
    """Return the non-dominated rows, in order along the front."""
    kept = nondominated(points).nonzero().flatten().tolist()
    return sorted(kept, key=lambda i: tuple(points[i].tolist()))
