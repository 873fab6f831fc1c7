"""Weighing by coupled methods: the rows of one front together, whichever groups they are trained in."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from paretomtl.engine.measure import Measurement, find_healthy
from paretomtl.engine.model_group import Group, split_by_group
from paretomtl.methods import Step, slice_state


def weigh_fronts(
    groups: Sequence[Group],
    measured: Sequence[Measurement],
    *,
    number: int | Tensor,
    total: int,
    alone: bool,
) -> list[Tensor]:
    """Weigh each group by a method that sees all rows of a front at once, and advance its state.

    Each seed is a separate front; their rows follow one another. Models that are frozen, or that break in this step,
    have no task present: the method sees no stand-in for them (:attr:`~paretomtl.methods.inputs.SafeStep.valid`).
    """
    method, active = groups[0].method, torch.cat([group.active for group in groups])
    gramians = [each.gramian for each in measured if each.gramian is not None]
    rows = Measurement(
        torch.cat([each.losses for each in measured]),
        torch.cat([each.present for each in measured]),
        torch.cat([each.counts for each in measured]),
        torch.cat(gramians) if gramians else None,
        torch.cat([each.sizes for each in measured]),
        all(each.known for each in measured),
        None,
    )
    state = {name: torch.cat([group.state[name] for group in groups]) for name in groups[0].state}
    present = rows.present & (active & find_healthy(rows, active, alone=alone))[:, None]
    weights, states = [], []
    for part in slices(len(active), groups[0].front_size):
        gramian = None if rows.gramian is None else rows.gramian[part]
        step = Step(rows.losses[part], gramian, present[part], number, total)
        alpha, after = method.weigh(step, slice_state(state, part))
        weights.append(alpha)
        states.append(after)
    rows_after = {name: split_by_group(torch.cat([after[name] for after in states]), groups) for name in state}
    for k, group in enumerate(groups):
        group.state = {name: parts[k] for name, parts in rows_after.items()}
    return list(split_by_group(torch.cat(weights), groups))


def slices(count: int, size: int | None) -> list[slice]:
    """The rows of each front of ``size`` rows; without a size, all rows are one front."""
    size = size or count
    return [slice(start, min(start + size, count)) for start in range(0, count, size)]
