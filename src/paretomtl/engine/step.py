"""One step of a group: measure the batch, freeze models that broke, update the others.

Nothing in a step waits for the device: there is no ``.item()`` and no Python branch on a tensor. Tests prove it by
``torch.compile(fullgraph=True)`` and by CUDA's sync debug mode. The same function serves one model and a stack,
launched and captured, so that strategies differ in nothing else.

A task without labels is NaN for all models; a model that broke is NaN alone. Within a stack, a step sees the
difference. For models one after another both look the same within a step. The task is then left out, and right after
the step a runner compares all models: those that differ go back to where they were two steps ago, for which a second
copy is kept, and are frozen. For a problem without data, every NaN is a break.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from paretomtl.engine.accumulate import measure_micro_batches
from paretomtl.engine.batches.partition import MicroBatches
from paretomtl.engine.gradients import zero
from paretomtl.engine.measure import BatchResult, matches_majority, measure_batch
from paretomtl.engine.model_group import Group, match_strides
from paretomtl.engine.models.stack import Stack
from paretomtl.engine.rollback import rollback_on_failure


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
    """Advance every active model by one step: one forward pass, and m backward passes, or one without a Gramian.

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
    models = group.models
    with rollback_on_failure([group]):
        if isinstance(batch, MicroBatches):
            result = measure_micro_batches(group, batch, number=number, total=total, weigh=weigh)
            group.processes.broadcast_tensors(models.live_buffers())
        else:
            result = measure_batch(group, batch, number=number, total=total, weigh=weigh, labelled=labelled)
    weights, updates, present = result.weights, result.updates, result.present
    if group.weights is None:
        group.weights = weights
    elif weigh:  # a task without labels keeps its weight for steps that do not weigh
        group.weights = torch.where(present, weights, group.weights)
    if not result.known:
        group.active = group.active & _find_healthy(group, result, alone=batch is None)
    group.restore_frozen()
    group.save_previous()
    if group.clip_norm is not None:
        updates = _clip(updates, models.count, group.clip_norm)
    for parameter, update in zip(models.trained.values(), updates, strict=True):
        if update is not None:
            update = update.to(parameter.dtype)
            if group.static_memory or isinstance(models, Stack):  # as fused optimizers want it
                update = match_strides(update, parameter)
        parameter.grad = update
    group.optimizer.step()
    group.optimizer.zero_grad(set_to_none=True)
    group.restore_frozen()
    weights = torch.where(group.active[:, None], weights, zero(weights.device))
    return StepRecord(result.losses, weights, present, result.counts)


def _find_healthy(group: Group, result: BatchResult, *, alone: bool) -> Tensor:
    """The models that go on, ``[K]`` bool, by the sizes of their losses and gradients."""
    sizes = torch.where(result.present, result.sizes, zero(result.sizes.device))
    finite = (sizes < torch.inf).all(-1) & result.present.any(-1)
    if len(finite) == 1 or alone:
        return finite
    return finite & matches_majority(result.counts, group.active)


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
