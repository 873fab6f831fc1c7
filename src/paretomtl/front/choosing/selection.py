"""Selection rules: direction, importance, knee and regret. Each gives its reason as text."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import torch
from torch import Tensor

from paretomtl._support.argument_checks import as_numbers, quote
from paretomtl._support.text import short_number
from paretomtl.front.choosing.candidates import CandidateTable, Choice
from paretomtl.front.indicators import angles

ByTask: TypeAlias = Sequence[float] | Mapping[str, float]
"""One number per task, in their order or by name."""

KNEE = 0.01
"""The least distance of a knee below the chord, as a share of the front's range.

The synthetic front is concave except at its ends, which bend the other way by a thousandth: that is no knee.
"""


def by_direction(table: CandidateTable, scaled: Tensor, direction: ByTask) -> Choice:
    """Choose the loss vector nearest to a direction."""
    wanted = _row_of("direction", direction, table.tasks)
    distance = angles(scaled, wanted)
    rows = sorted(
        (row for row in table.candidates() if not distance[row].isnan()), key=lambda row: float(distance[row])
    )
    if not rows:
        if table.candidates():
            reason = f"all losses on {table.on} that no other model dominates are zero, which has no direction"
            return table.choose_none(f"No model has a direction: {reason}. Choose by importance or bounds.")
        return _nothing(table)
    second = f"; the next is {table.label(rows[1])} at {distance[rows[1]]:.1f}°" if rows[1:] else ""
    return table.choose(
        rows[0],
        f"its losses on {table.on} are {distance[rows[0]]:.1f}° from the direction {_shown(wanted)}{second}.",
    )


def by_importance(table: CandidateTable, scale: Tensor | None, importance: ByTask) -> Choice:
    """Choose the least weighted sum of losses, scaled by the mean of the factors ``[K, m]`` of training."""
    share = _row_of("importance", importance, table.tasks)
    known = [] if scale is None else [row for row in table.candidates() if bool(scale[row].isfinite().all())]
    factors = torch.ones_like(share) if scale is None or not known else scale[known].to(share).mean(0)
    sums = (table.losses.to(share) * factors) @ (share / share.sum())
    rows = sorted(table.candidates(), key=lambda row: float(sums[row]))
    if not rows:
        return _nothing(table)
    first, *others = (short_number(float(sums[row])) for row in rows[:2])
    second = f"; the next is {table.label(rows[1])} with {others[0]}" if others else ""
    scaled = "" if bool((factors == 1).all()) else ", scaled as in training and"
    return table.choose(
        rows[0],
        f"the least mean of the losses on {table.on}{scaled} weighted by {_shown(share)}, {first}{second}.",
    )


def knee(table: CandidateTable) -> Choice:
    """Choose the model farthest below the chord, or the hyperplane, through the best model of each task."""
    rows = table.within_reference()
    if not rows:
        return _nothing(table)
    if len(table.candidates()) == 1 < len(table.losses):
        alone = f"{table.label(rows[0])} dominates all other models on {table.on}"
        return table.choose_none(f"No knee: {alone}. Any other rule chooses it.")
    losses = table.losses[rows]
    low, high = losses.amin(0), losses.amax(0)
    unit = (losses - low) / torch.where(high > low, high - low, 1.0)
    ends = unit[losses.argmin(0)]
    tasks = len(table.tasks)
    if len({tuple(end) for end in ends.tolist()}) < tasks or torch.linalg.matrix_rank(ends) < tasks:
        return table.choose_none(f"No knee: the best models of the tasks on {table.on} span no chord.")
    normal = torch.linalg.solve(ends, torch.ones(tasks, dtype=torch.float64))
    if not bool((normal > 0).all()):
        reason = "the plane through the best of each task is tilted so that below it is not better"
        return table.choose_none(f"No knee: {reason} on {table.on}. Choose by direction, importance or bounds.")
    below = (1.0 - unit @ normal) / normal.norm()
    best = int(below.argmax())
    if float(below[best]) <= KNEE:
        return table.choose_none(
            f"No knee: no model on {table.on} lies more than {KNEE:g} of the range of the front below the chord "
            "through the best of each task. The front is concave or straight; choose by direction, importance, regret "
            "or bounds.",
        )
    return table.choose(
        rows[best],
        f"it lies farthest below the chord through the best of each task on {table.on}, by {below[best]:.3g} of "
        f"losses scaled to the range of the front.{table.left_out()}",
    )


def least_regret(table: CandidateTable) -> Choice:
    r"""Choose the model whose largest regret is smallest (Savage 1951).

    .. math:: \min_k \max_i \frac{L_{ki} - \min_j L_{ji}}{\max_j L_{ji} - \min_j L_{ji}}

    with j over the non-dominated models that are not beyond the reference point of the front: one diverged model
    would squeeze the regrets of all others. Such models are not chosen either. A task in which all losses are equal
    counts as 0. The least sum of regrets breaks ties.
    """
    rows = table.within_reference()
    if not rows:
        return _nothing(table)
    losses = table.losses[rows]
    low, high = losses.amin(0), losses.amax(0)
    regrets = (losses - low) / torch.where(high > low, high - low, 1.0)
    largest = regrets.amax(-1)
    order = sorted(range(len(rows)), key=lambda i: (float(largest[i]), float(regrets[i].sum())))
    best = order[0]
    if len(rows) == 1:
        within = " within the reference point" if table.left_out() else ""
        return table.choose(
            rows[0], f"it is the only model on {table.on}{within} that no other one dominates.{table.left_out()}"
        )
    task, second = table.tasks[int(regrets[best].argmax())], order[1]
    return table.choose(
        rows[best],
        f"its largest regret on {table.on}, in {task}, is the smallest: {largest[best]:.3g} of the way from the "
        f"best to the worst of the front; the next is {table.label(rows[second])} with "
        f"{largest[second]:.3g}.{table.left_out()}",
    )


def _nothing(table: CandidateTable) -> Choice:
    return table.choose_none(f"No model has finite losses on {table.on}: {table.known()}.")


def _row_of(name: str, row: ByTask, tasks: Sequence[str]) -> Tensor:
    if isinstance(row, Mapping):
        unknown = [task for task in row if task not in tasks]
        if unknown:
            raise ValueError(f"'{name}' must name tasks of {list(tasks)}. Got {unknown[0]!r} instead.")
        row = [row.get(task, 0.0) for task in tasks]
    values = as_numbers(row)
    fits = values is not None and len(values) == len(tasks) and all(math.isfinite(v) and v >= 0 for v in values)
    if not fits or not values or not any(values):
        shown = row if values is None else values
        raise ValueError(
            f"'{name}' must be {len(tasks)} numbers, not negative and not all zero. Got {quote(shown)} instead."
        )
    return torch.tensor(values, dtype=torch.float64)


def _shown(row: Tensor) -> str:
    return "(" + ", ".join(f"{value:g}" for value in row.tolist()) + ")"
