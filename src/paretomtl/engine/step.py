"""One step (paper, algorithm 1): measure the batch, weigh the tasks, update the models.

Nothing in a step waits for the device: there is no ``.item()`` and no Python branch on a tensor. Tests prove it by
``torch.compile(fullgraph=True)`` and by CUDA's sync debug mode. The same function serves one model and a stack,
launched and captured, so that strategies differ in nothing else.

A task without labels is NaN for all models; a model that broke is NaN alone. Within a stack, a step sees the
difference. For models one after another both look the same within a step. The task is then left out, and right after
the step a runner compares all models: those that differ go back to where they were two steps ago, for which a second
copy is kept, and are frozen. For a problem without data, every NaN is a break.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import torch
from torch import Tensor

from paretomtl.engine.accumulate import measure_micro_batches
from paretomtl.engine.batches.partition import MicroBatches
from paretomtl.engine.coupling import weigh_fronts
from paretomtl.engine.gradients import zero
from paretomtl.engine.measure import Measurement, find_healthy, measure_batch
from paretomtl.engine.model_group import Group, match_strides
from paretomtl.engine.models.stack import Stack
from paretomtl.engine.rollback import rollback_on_failure
from paretomtl.methods import Step

T = TypeVar("T")


class Run(Protocol):
    """Calls a function with 0, 1, ... up to a count, and returns the results in that order."""

    def __call__(self, function: Callable[[int], T], count: int, /) -> list[T]: ...


def _run_in_order(function: Callable[[int], T], count: int) -> list[T]:
    return [function(k) for k in range(count)]


@dataclass(frozen=True)
class StepRecord:
    """Record of one step, ``[K, m]`` each.

    Attributes:
        losses: before the update.
        weights: of the update.
        present: which tasks had labels.
        counts: how many samples had labels, of all micro-batches and processes; :attr:`present` for one batch.
    """

    losses: Tensor
    weights: Tensor
    present: Tensor
    counts: Tensor


def train_step(
    group: Group,
    batch: Any = None,
    *,
    number: int | Tensor,
    total: int,
    weigh: bool = True,
    labelled: bool | None = None,
) -> StepRecord:
    """Advance every active model of a group by one step: measure, weigh, update (paper, algorithm 1).

    A task whose loss is NaN while another's is not has no labels in this batch, and is left out of the step; but if
    another model of the stack has a loss for it, then this one broke. A model with losses or a Gramian that are not
    finite otherwise goes back to its parameters one step ago and stays there. Nothing waits for the device, except for
    steps of one backward pass to know whether all tasks have labels.

    Args:
        group: the models.
        batch: what they see.
        number: how many steps came before; a tensor without dimensions in a captured graph.
        total: how many steps are planned.
        weigh: ask the method for weights; otherwise take those of the last step that did, with one backward pass.
        labelled: whether all tasks have labels in every batch. A step of one backward pass needs to know: None asks the
            batch, and so waits for the device; a batch that proves True wrong is left out; False takes m passes.
    """
    return train_groups([group], batch, number=number, total=total, weigh=weigh, labelled=labelled)[0]


def train_groups(
    groups: Sequence[Group],
    batch: Any,
    *,
    number: int | Tensor,
    total: int,
    weigh: bool,
    labelled: bool | None,
    run: Run = _run_in_order,
) -> list[StepRecord]:
    """The same for several groups: all are measured before any is weighed, as a coupled method needs it.

    Args:
        groups: the models of whole fronts, in order.
        batch: as above, like the options that follow.
        number: of the step.
        total: how many steps are planned.
        weigh: ask the method for weights.
        labelled: whether all tasks have labels.
        run: calls a function with 0, 1, ... up to a count: one after another, in threads, or on streams.
    """
    count = len(groups)
    with rollback_on_failure(groups):
        measured = run(lambda k: measure(groups[k], batch, weigh=weigh, labelled=labelled), count)
        weights = weigh_tasks(groups, measured, number=number, total=total, weigh=weigh, alone=batch is None)
        updates = run(lambda k: measured[k].combine(weights[k]), count)
    return run(lambda k: update(groups[k], measured[k], weights[k], updates[k], weigh, alone=batch is None), count)


def measure(group: Group, batch: Any, *, weigh: bool, labelled: bool | None = None) -> Measurement:
    """Losses, task gradients and Gramian: one forward pass, and m backward passes where the method needs them."""
    if not isinstance(batch, MicroBatches):
        return measure_batch(group, batch, weigh=weigh, labelled=labelled)
    measured = measure_micro_batches(group, batch, weigh=weigh)
    group.processes.broadcast_tensors(group.models.live_buffers())
    return measured


def weigh_tasks(
    groups: Sequence[Group],
    measured: Sequence[Measurement],
    *,
    number: int | Tensor,
    total: int,
    weigh: bool,
    alone: bool,
) -> list[Tensor]:
    """The weights of each group, by the method or those of the last step; the method's state moves on.

    A coupled method weighs the rows of a whole front at once, whichever groups they are in, and no other front's.
    Negative weights raise a loss until its constraint is met. Kept for steps that do not weigh, they would raise it on
    and on, and models would diverge: they count as zero there.
    """
    if groups[0].method.coupled and (weigh or groups[0].weights is None):
        return weigh_fronts(groups, measured, number=number, total=total, alone=alone)
    weights = []
    for group, each in zip(groups, measured, strict=True):
        if weigh or group.weights is None:
            step = Step(each.losses, each.gramian, each.present, number, total)
            alpha, group.state = group.method.weigh(step, group.state)
        else:
            alpha = torch.where(each.present, group.weights.clamp_min(0.0), zero(each.present.device))
        weights.append(alpha)
    return weights


def update(
    group: Group, measured: Measurement, weights: Tensor, updates: list[Tensor | None], weigh: bool, *, alone: bool
) -> StepRecord:
    """Take one step of the optimizer along the weighted gradients; freeze the models that broke."""
    models, present = group.models, measured.present
    if group.weights is None:
        group.weights = weights
    elif weigh:  # a task without labels keeps its weight for steps that do not weigh
        group.weights = torch.where(present, weights, group.weights)
    if not measured.known:
        group.active = group.active & find_healthy(measured, group.active, alone=alone)
    group.restore_frozen()
    group.save_previous()
    if group.clip_norm is not None:
        updates = _clip(updates, models.count, group.clip_norm)
    for parameter, change in zip(models.trained.values(), updates, strict=True):
        if change is not None:
            change = change.to(parameter.dtype)
            if group.static_memory or isinstance(models, Stack):  # as fused optimizers want it
                change = match_strides(change, parameter)
        parameter.grad = change
    group.optimizer.step()
    group.optimizer.zero_grad(set_to_none=True)
    group.restore_frozen()
    weights = torch.where(group.active[:, None], weights, zero(weights.device))
    return StepRecord(measured.losses, weights, present, measured.counts)


def _clip(updates: list[Tensor | None], count: int, longest: float) -> list[Tensor | None]:
    """Each model's update, no longer than ``longest``."""
    squares = [u.detach().reshape(count, -1).double().square().sum(-1) for u in updates if u is not None]
    factor = (longest / (torch.stack(squares).sum(0).sqrt() + 1e-6)).clamp_max(1.0)
    scaled: list[Tensor | None] = []
    for update in updates:
        if update is None:
            scaled.append(None)
            continue
        own = factor[0] if count == 1 else factor.reshape(-1, *[1] * (update.ndim - 1))
        scaled.append(update * own.to(update.dtype))
    return scaled
