"""Planes of two tasks: what several methods reach in one task against the other."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from paretomtl.compare import Row
from paretomtl.compare.rows import accuracies
from paretomtl.methods.registry import colour_of, label_of
from paretomtl.report.figures.style import RAY

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Point = tuple[float, ...]
Limits = tuple[tuple[float, float], ...]
NUMBERS = "Numbers: the preference vectors from (1, 0) to (0, 1), which favours the first task."
_USELESS = 0.5  # an accuracy below which a solution does not widen a panel
_FURTHER = 1.5  # times as bad as Pareto MTL: as far as other methods widen a panel
_NUMBERED = 9  # so many solutions have room for their numbers
_NEAR = 0.045  # of a panel: rays that end nearer to each other share a label


@dataclass(frozen=True)
class Quantity:
    """What a plane shows of the rows: a field of theirs, and its name in words."""

    field: str
    words: str

    @property
    def rising(self) -> bool:
        """Whether more is better."""
        return self.field.endswith("metrics")

    def points(self, row: Row) -> list[Point]:
        """The solutions of a row, in the order of its preference vectors, without those that are not finite."""
        return [tuple(point) for point in self.values(row) if None not in point]

    def values(self, row: Row) -> list[list[Any]]:
        """The solutions with None for what is not finite."""
        if not self.rising:
            return list(row[self.field])
        return [[value if value == value else None for value in point] for point in accuracies(row, self.field)]

    def badness(self, value: float) -> float:
        """How far a value is from the best that could be."""
        return 1 - value if self.rising else value


TEST_LOSS, TRAIN_LOSS = Quantity("losses", "test loss"), Quantity("train_losses", "training loss")
TEST_ACCURACY, TRAIN_ACCURACY = Quantity("metrics", "test accuracy"), Quantity("train_metrics", "training accuracy")


@dataclass(frozen=True)
class Layer:
    """Rows that are drawn alike: the first seed, and the others faintly.

    Attributes:
        rows: one for each seed, the first one first.
        label: for the legend.
        colour: of the points.
        marker: of the points.
        joined: a line through the solutions of the first seed, which are numbered.
        hollow: points that are white inside, and a dashed line.
        others: whether to show the other seeds.
        numbered: whether joined solutions have numbers, where there is room for them.
    """

    rows: Sequence[Row]
    label: str
    colour: str
    marker: str
    joined: bool = False
    hollow: bool = False
    others: bool = False
    numbered: bool = True

    def shown(self, space: Quantity) -> list[Point]:
        """All points that are drawn, if the panel is large enough."""
        return [point for row in self.rows[: None if self.others else 1] for point in space.points(row)]


def draw_scatter2d(
    axis: Axes, space: Quantity, layers: Sequence[Layer], alone: Sequence[Row] = (), limits: Limits | None = None
) -> str:
    """Draw one task against the other; returns words on what lies outside of the panel, empty if nothing does.

    Losses have the preference vectors as rays.

    Args:
        axis: where to draw.
        space: what to show.
        layers: the solutions.
        alone: rows of separate networks, whose first is shown by dotted lines.
        limits: from where to where each task is shown; those of :func:`plane_limits` if left out.
    """
    filled = [each for each in layers if each.rows]
    limits = limits or plane_limits(space, filled, alone)
    axis.set(xlim=limits[0], ylim=limits[1])
    axis.set_box_aspect(1)
    tasks = next(row["tasks"] for row in [*(each.rows[0] for each in filled), *alone])
    axis.set_xlabel(f"{space.words}, {tasks[0].replace('-', ' ')}")
    axis.set_ylabel(f"{space.words}, {tasks[1].replace('-', ' ')}")
    for each in filled:
        _draw_layer(axis, space, each)
    for task, (values, line) in enumerate(zip(_alone(space, alone, 2), (axis.axvline, axis.axhline), strict=True)):
        for value in values:
            label = label_of("single-task") if task == 0 else None
            line(value, color=colour_of("single-task"), linewidth=1, linestyle=":", zorder=1, label=label)
    if not space.rising:
        _draw_rays(axis, filled, limits)
    return outside(space, filled, limits)


def plane_limits(space: Quantity, layers: Sequence[Layer], alone: Sequence[Row] = (), *, origin: bool = True) -> Limits:
    """From where to where each task is shown, of two or more.

    A plane is as large as the solutions of the joined layers ask for, which are those of Pareto MTL: a method that
    leaves a task untrained would squeeze all the others.

    Args:
        space: what is shown.
        layers: the solutions.
        alone: rows of separate networks.
        origin: whether losses begin at zero.
    """
    filled = [each for each in layers if each.rows]
    count = len(next((row["tasks"] for row in [*(each.rows[0] for each in filled), *alone]), (0, 0)))
    lines = _alone(space, alone, count)
    every = [point for each in filled for point in each.shown(space)]
    good = _useful(space, every, filled) or every
    joined = [point for each in filled if each.joined for point in space.points(each.rows[0])]
    useful = _useful(space, joined, filled)
    main = useful if 2 * len(useful) > len(joined) else joined or good
    found = []
    for task in range(count):
        far = _FURTHER * max((space.badness(point[task]) for point in main), default=0.0)
        values = [*(point[task] for point in main), *lines[task]]
        values += [point[task] for point in good if space.badness(point[task]) <= far]
        low, high = min(values, default=0.0), max(values, default=1.0)
        if origin and not space.rising:
            found.append((0.0, 1.08 * high))
        else:
            margin = 0.08 * (high - low) or 0.05
            found.append((low - margin, high + margin))
    return tuple(found)


def _useful(space: Quantity, points: Sequence[Point], layers: Sequence[Layer]) -> list[Point]:
    """The points that are good enough in every task to widen a panel: losses below the reference."""
    reference = layers[0].rows[0]["reference"] if layers else []
    poor = [_USELESS] * len(reference) if space.rising else reference
    return [point for point in points if all(space.badness(v) < p for v, p in zip(point, poor, strict=True))]


def _draw_rays(axis: Axes, layers: Sequence[Layer], limits: Limits) -> None:
    """The first preference vectors that there are, as rays to the edges of the panel."""
    (_, right), (_, top) = limits
    each = next((each for each in layers if each.rows[0]["reading"] == "direction"), None)
    if each is None:
        return
    vectors = each.rows[0]["vectors"]
    lengths = [min(right / x if x > 0 else math.inf, top / y if y > 0 else math.inf) for x, y in vectors]
    ends = [(length * x, length * y) for length, (x, y) in zip(lengths, vectors, strict=True)]
    many = len(vectors) > _NUMBERED
    style = {**RAY, "linestyle": "-", "linewidth": 0.4} if many else RAY
    for i, (x, y) in enumerate(ends):
        axis.plot([0, x], [0, y], **style, label="Preference vectors" if i == 0 else None)
    if each.joined and not many:
        _number_rays(axis, ends, right, top)


def _number_rays(axis: Axes, ends: Sequence[Point], right: float, top: float) -> None:
    """A number at the end of each ray, outside of the panel; one label for rays that end near each other."""
    groups: list[list[int]] = []
    for i, (x, y) in enumerate(ends):
        last = ends[groups[-1][-1]] if groups else (math.inf, math.inf)
        if math.hypot((x - last[0]) / right, (y - last[1]) / top) < _NEAR:
            groups[-1].append(i)
        else:
            groups.append([i])
    for group in groups:
        x, y = (sum(ends[i][task] for i in group) / len(group) for task in range(2))
        text = str(group[0] + 1) if len(group) == 1 else f"{group[0] + 1}–{group[-1] + 1}"
        beside = x > 0.999 * right
        style: dict[str, Any] = {"ha": "left", "va": "center"} if beside else {"ha": "center", "va": "bottom"}
        offset = (4, 0) if beside else (0, 3)
        axis.annotate(text, (x, y), offset, textcoords="offset points", fontsize=7, color="0.35", **style)


def _draw_layer(axis: Axes, space: Quantity, each: Layer) -> None:
    face = "white" if each.hollow else each.colour
    edge = each.colour if each.hollow else "white"
    if each.others:
        faint = [point for row in each.rows[1:] for point in space.points(row)]
        options: dict[str, Any] = {"edgecolors": each.colour} if each.hollow else {"linewidths": 0}
        axis.scatter(*_columns(faint), s=14, c=face, marker=each.marker, alpha=0.3, zorder=2, **options)
    points = space.points(each.rows[0])
    if not each.joined:
        style: dict[str, Any] = {"c": face, "edgecolors": edge, "marker": each.marker, "linewidths": 0.5}
        axis.scatter(*_columns(points), s=30, zorder=3, label=each.label, **style)
        return
    marks: dict[str, Any] = {"marker": each.marker, "markersize": 6.5, "markerfacecolor": face, "markeredgecolor": edge}
    line: dict[str, Any] = {
        "color": each.colour,
        "linewidth": 1,
        "linestyle": "--" if each.hollow else "-",
        "zorder": 3.5,
    }
    numbered = each.numbered and len(each.rows[0]["vectors"]) <= _NUMBERED
    axis.plot([], [], **line, **marks, markeredgewidth=0.6, label=each.label)
    axis.plot(*_columns(points), **line)
    for i, (x, y) in enumerate(space.values(each.rows[0])):
        if x is None or y is None:
            continue
        height = 4 + 0.01 * i  # each with its number above those before it
        axis.scatter(x, y, s=62 if numbered else 24, c=face, edgecolors=edge, marker=each.marker, zorder=height,
                     linewidths=0.7)  # fmt: skip
        if numbered:
            colour = each.colour if each.hollow else "white"
            axis.text(x, y, str(i + 1), color=colour, fontsize=6.5, ha="center", va="center_baseline", clip_on=True,
                      zorder=height + 0.005)  # fmt: skip


def _alone(space: Quantity, rows: Sequence[Row], count: int) -> list[list[float]]:
    """For each task what the first row of separate networks reaches in it, if there is one."""
    found: list[list[float]] = [[] for _ in range(count)]
    for row in rows[:1]:
        for task in range(count):
            finite = [point[task] for point in space.values(row) if point[task] is not None]
            found[task] = [min(finite, key=space.badness)] if finite else []
    return found


def projected(row: Row, pair: Sequence[int]) -> Row:
    """A row with two of its tasks alone, and without rays."""
    fields = {name: [row[name][task] for task in pair] for name in ("tasks", "reference")}
    return {**row, **fields, "reading": "", "losses": [[point[task] for task in pair] for point in row["losses"]]}


def outside(space: Quantity, layers: Sequence[Layer], limits: Limits) -> str:
    """Words on the solutions that lie outside of the limits, empty if there are none."""
    said = []
    for each in layers:
        inside = [
            all(low <= value <= high for value, (low, high) in zip(point, limits, strict=True))
            for point in each.shown(space)
        ]
        if not all(inside):
            said.append(f"{inside.count(False)} of {each.label}")
    return "\n".join(textwrap.wrap(f"outside: {'; '.join(said)}", 44)) if said else ""


def _columns(points: Sequence[Point]) -> tuple[list[float], list[float]]:
    return [x for x, _ in points], [y for _, y in points]
