"""Layers of a panel: which quantity of stored rows is drawn, in which style and within which limits."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from paretomtl.compare import Row
from paretomtl.compare.rows import accuracies
from paretomtl.core import nondominated

Point = tuple[float, ...]
Limits = tuple[tuple[float, float], ...]
_USELESS = 0.5  # an accuracy below which a model does not widen a panel
_FURTHER = 1.5  # other methods widen a panel up to this many times the worst value of Pareto MTL
_FENCE = 4.0  # times the distance of the quartiles: a value further from them is an outlier
_LINE = 36  # the letters of a note above one of three panels in a row


@dataclass(frozen=True)
class Quantity:
    """A quantity of stored rows that a panel shows: their field, and its name in words, if tasks do not have it."""

    field: str
    words: str

    @property
    def rising(self) -> bool:
        """Whether more is better."""
        return self.field.endswith("metrics")

    def of(self, task: str) -> str:
        """The name of a task's axis."""
        return ", ".join(filter(None, (self.words, task.replace("-", " "))))

    def points(self, row: Row) -> list[Point]:
        """The models of a row, in the order of its preference vectors, without those that are not finite."""
        return [tuple(point) for point in self.values(row) if None not in point]

    def values(self, row: Row) -> list[list[Any]]:
        """The models, with None for numbers that are not finite."""
        if not self.rising:
            return list(row[self.field])
        return [[value if value == value else None for value in point] for point in accuracies(row, self.field)]

    def badness(self, value: float) -> float:
        """The distance of a value from the best possible one."""
        return 1 - value if self.rising else value

    def along_front(self, points: Sequence[Point]) -> list[int]:
        """The places of the points that no other one dominates, in order along the front."""
        if not points:
            return []
        bad = torch.tensor([[self.badness(value) for value in point] for point in points], dtype=torch.float64)
        return sorted(nondominated(bad).nonzero().flatten().tolist(), key=lambda k: points[k])


TEST_LOSS, TRAIN_LOSS = Quantity("losses", "test loss"), Quantity("train_losses", "training loss")
TEST_ACCURACY, TRAIN_ACCURACY = Quantity("metrics", "test accuracy"), Quantity("train_metrics", "training accuracy")


@dataclass(frozen=True)
class Layer:
    """Rows that are drawn in one style: the first seed, and the other seeds faintly.

    Attributes:
        rows: one for each seed, the first one first.
        label: for the legend.
        colour: of the points.
        marker: of the points.
        joined: whether a line runs along the front of the first seed; dominated models are then white inside.
        hollow: whether all points are white inside, without a line.
        others: whether to show the other seeds.
        numbered: whether joined models have numbers, where there is room for them.
    """

    rows: Sequence[Row]
    label: str
    colour: str
    marker: str
    joined: bool = False
    hollow: bool = False
    others: bool = False
    numbered: bool = True

    def shown(self, quantity: Quantity) -> list[Point]:
        """All points to draw, whether they fit into the panel or not."""
        return [point for row in self.rows[: None if self.others else 1] for point in quantity.points(row)]


def panel_limits(
    quantity: Quantity,
    layers: Sequence[Layer],
    alone: Sequence[Row] = (),
    *,
    origin: bool = True,
    outliers: bool = True,
) -> Limits:
    """Return the limits of each task's axis, for two or more tasks.

    The joined layers, which are those of Pareto MTL, decide the size of a panel: a method that leaves a task untrained
    would squeeze all the others.

    Args:
        quantity: what is shown.
        layers: the models.
        alone: rows of separate networks.
        origin: whether losses begin at zero.
        outliers: whether models of the joined layers that are much worse than most models have room too.
    """
    filled = [each for each in layers if each.rows]
    count = len(next((row["tasks"] for row in [*(each.rows[0] for each in filled), *alone]), (0, 0)))
    lines = best_alone(quantity, alone, count)
    every = [point for each in filled for point in each.shown(quantity)]
    good = _useful(quantity, every, filled) or every
    joined = [point for each in filled if each.joined for point in quantity.points(each.rows[0])]
    useful = _useful(quantity, joined, filled)
    main = useful if 2 * len(useful) > len(joined) else joined or good
    limits = []
    for task in range(count):
        far = _FURTHER * max((quantity.badness(point[task]) for point in main), default=0.0)
        values = [point[task] for point in main]
        values += [point[task] for point in good if quantity.badness(point[task]) <= far]
        values = [*(values if outliers else _without_outliers(quantity, values)), *lines[task]]
        low, high = min(values, default=0.0), max(values, default=1.0)
        if origin and not quantity.rising:
            limits.append((0.0, 1.08 * high))
        else:
            margin = 0.08 * (high - low) or 0.05
            limits.append((low - margin, high + margin))
    return tuple(limits)


def _without_outliers(quantity: Quantity, values: Sequence[float]) -> list[float]:
    """The values that are not much worse than most."""
    if len(values) < 2:
        return list(values)
    low, _, high = statistics.quantiles([quantity.badness(value) for value in values], n=4, method="inclusive")
    return [value for value in values if quantity.badness(value) <= high + _FENCE * (high - low)]


def _useful(quantity: Quantity, points: Sequence[Point], layers: Sequence[Layer]) -> list[Point]:
    """The points that are good enough in every task to widen a panel: losses below the reference."""
    reference = layers[0].rows[0]["reference"] if layers else []
    poor = [_USELESS] * len(reference) if quantity.rising else reference
    return [point for point in points if all(quantity.badness(v) < p for v, p in zip(point, poor, strict=True))]


def best_alone(quantity: Quantity, rows: Sequence[Row], count: int) -> list[list[float]]:
    """Return the best value of the first row of separate networks in each task, if there is such a row."""
    best: list[list[float]] = [[] for _ in range(count)]
    for row in rows[:1]:
        for task in range(count):
            finite = [point[task] for point in quantity.values(row) if point[task] is not None]
            best[task] = [min(finite, key=quantity.badness)] if finite else []
    return best


def outside(quantity: Quantity, layers: Sequence[Layer], limits: Limits) -> str:
    """Say in a line how many models lie outside the limits; empty if there are none."""
    counts = {}
    for each in layers:
        beyond = [
            any(not low <= value <= high for value, (low, high) in zip(point, limits, strict=True))
            for point in each.shown(quantity)
        ]
        if any(beyond):
            counts[each.label] = sum(beyond)
    if not counts:
        return ""
    named = f"outside: {', '.join(f'{count} of {label}' for label, count in counts.items())}"
    total = sum(counts.values())
    return named if len(named) <= _LINE else f"outside: {total} model{'s' if total > 1 else ''}"


def to_unit(values: Sequence[float | None], limits: Limits) -> list[float]:
    """Scale values to 0 at the first limit and 1 at the second; None becomes NaN."""
    return [
        math.nan if value is None else (value - low) / (high - low)
        for value, (low, high) in zip(values, limits, strict=True)
    ]


def margin_of(low: float, high: float) -> float:
    """The margin around a range of values; that of equal values grows with them, so that rounding never loses it.

    Example:
        >>> margin_of(0.0, 1.0), margin_of(2.0, 2.0), margin_of(1e18, 1e18) > 1e16
        (0.06, 0.1, True)
    """
    return 0.06 * (high - low) or 0.05 * max(1.0, abs(high))
