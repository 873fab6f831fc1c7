"""Measurement of a batch: losses, gradients and Gramian of K models, and the weights and updates that follow.

A method without a Gramian takes one backward pass, and must know before it whether all tasks have labels. Asking
waits for the device, which a captured step cannot do. Training data without NaN or negative classes count as labelled
there, and a batch that proves otherwise is left out of the step; with such values, the step takes m passes.

Several processes average losses and task gradients before the Gramian, weighed by samples: m gradients travel instead
of one, and the weights are those of one process. Cheaper ways would change the weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from paretomtl._support.checks import known_finite
from paretomtl.engine.accumulate import Sums, all_reduce_rows
from paretomtl.engine.batches.partition import MicroBatches
from paretomtl.engine.batches.structure import samples_by_task
from paretomtl.engine.gradients import (
    Gathered,
    TaskGradients,
    gramian,
    one_backward,
    task_gradients,
    weigh_rows,
    zero,
)
from paretomtl.engine.group import Group
from paretomtl.engine.models.base import Models
from paretomtl.engine.models.stack import Stack
from paretomtl.methods import State, Step
from paretomtl.problems.per_task import TaskBatch


@dataclass(frozen=True)
class BatchResult:
    """Losses, weights and updates of one batch.

    Attributes:
        losses: ``[K, m]``.
        present: which tasks have labels, ``[K, m]``.
        counts: how many samples have, or :attr:`present`, ``[K, m]``.
        weights: ``[K, m]``.
        updates: for each parameter.
        sizes: of losses, and of gradients where they are known: not finite where these are not, ``[K, m]``.
        known: whether all is known to be finite.
    """

    losses: Tensor
    present: Tensor
    counts: Tensor
    weights: Tensor
    updates: list[Tensor | None]
    sizes: Tensor
    known: bool


def measure_batch(
    group: Group, batch: Any, *, number: int | Tensor, total: int, weigh: bool, labelled: bool | None
) -> BatchResult:
    """The weights and updates of a batch that is seen as a whole, here alone."""
    models, method = group.models, group.method
    with group.precision():
        losses = models.losses(batch)
    seen = losses.detach().reshape(models.count, -1)
    seen = seen if seen.dtype.itemsize >= 4 else seen.float()
    known = known_finite(seen)
    present = torch.ones_like(seen, dtype=torch.bool) if known or batch is None else seen == seen
    step = Step(seen, present=present, number=number, total=total)
    by_gradients = method.needs_gramian and (weigh or group.weights is None)
    trusting = labelled is True
    if labelled is None and not by_gradients:
        labelled = known or batch is None or bool(present.all())
    sizes = seen.abs()
    if by_gradients or not labelled:
        weights, updates, c = _weigh_by_gradients(group, losses, step, weigh=weigh)
        known = known and known_finite(c)
        sizes = sizes + c.diagonal(dim1=-2, dim2=-1)  # not finite where any gradient of the task is not
    else:
        weights, group.state = weigh_step(group, step, weigh=weigh)
        in_trunk = [models.problem.is_shared(name) for name in models.trained]
        alpha = weights.reshape(losses.shape).to(losses.dtype)
        updates = one_backward(losses, alpha, list(models.trained.values()), in_trunk)
        if trusting:
            whole, nothing = present.all(), zero(present.device)
            updates = [None if u is None else torch.where(whole, u, nothing) for u in updates]
    return BatchResult(seen, present, present, weights, updates, sizes, known)


def measure_micro_batches(
    group: Group, batch: MicroBatches, *, number: int | Tensor, total: int, weigh: bool
) -> BatchResult:
    """The weights and updates of a batch that is seen in micro-batches, and by several processes.

    Losses and task gradients are averaged over all of them before the Gramian is taken, each counted by its samples, so
    that the weights are those of the whole batch, and the same in every process. Gradients of each task travel only
    where the method weighs by them; of a representation, the Gramian alone does.
    """
    models, processes = group.models, group.processes
    parameters = list(models.trained.values())
    in_trunk = [models.problem.is_shared(name) for name in models.trained]
    by_gramian = group.method.needs_gramian and (weigh or group.weights is None)
    at_representation = by_gramian and models.problem.representation is not None
    wanted = _Targets(parameters, in_trunk, [])
    losses, counts = torch.empty(0), torch.empty(0)
    summed: Sums | None = None
    one_pass = False
    for part, samples in zip(batch.parts, batch.samples, strict=True):
        with group.precision():
            losses = models.losses(part)
        if at_representation:
            wanted = _Targets.of(models)
        counts, broken = count_labels(models, losses.detach(), part, samples)
        one_pass = not by_gramian and len(batch.parts) == 1 and bool((counts > 0).all())
        rows = [] if one_pass else task_gradients(losses, wanted.parameters)
        sums = Sums.of(losses, counts, broken, rows)
        summed = sums if summed is None else summed.plus(sums)
    assert summed is not None
    summed = summed.all_reduce(processes)
    shape = (models.count, len(models.problem.tasks))
    numbers = summed.counts.reshape(shape)
    seen = summed.means().reshape(shape).to(torch.promote_types(losses.dtype, torch.float32))
    seen = torch.where(summed.broken.reshape(-1, 1) > 0, torch.inf, seen)
    present = (numbers > 0) | seen.isinf()
    step = Step(seen, present=present, number=number, total=total)
    if by_gramian:
        rows = summed.mean_rows()
        rows = rows if at_representation else all_reduce_rows(processes, rows, parameters)
        c = gramian(wanted.trunk(rows), models.count)
        c = processes.all_reduce_tensor(c).to(c.dtype) if at_representation else c
        weights, group.state = weigh_step(group, replace(step, gramian=c), weigh=weigh)
        updates = weigh_rows(weights.reshape(losses.shape), present.reshape(losses.shape), rows, wanted.in_trunk)
        if at_representation:
            updates = processes.all_reduce(wanted.through_encoder(models, updates), parameters)
        sizes = seen.abs() + c.diagonal(dim1=-2, dim2=-1)
        return BatchResult(seen, present, numbers, weights, updates, sizes, known_finite(seen, c))
    weights, group.state = weigh_step(group, step, weigh=weigh)
    alpha = weights.reshape(losses.shape).to(losses.dtype)
    if one_pass:
        share = torch.where(summed.counts > 0, counts / summed.counts, 0.0)
        updates = one_backward(losses, alpha, parameters, in_trunk, share)
    else:
        updates = weigh_rows(alpha, present.reshape(losses.shape), summed.mean_rows(), in_trunk)
    return BatchResult(
        seen, present, numbers, weights, processes.all_reduce(updates, parameters), seen.abs(), known_finite(seen)
    )


def count_labels(models: Models, losses: Tensor, part: Any, samples: int) -> tuple[Tensor, Tensor]:
    """The samples that each loss counts for, shaped like the losses; and which models broke, ``[K]`` or no dimension.

    A model without any loss where there are samples broke, and so did one with NaN in spite of labels, where the
    problem counts these. Counts also show a model that broke in some part or in another process: it has a loss for
    fewer samples than another model.
    """
    present = ~losses.isnan()
    labels = models.problem.labels_in(part)
    own = samples_by_task(part).to(losses.device) if isinstance(part, TaskBatch) else None
    if labels is None or samples == 0:
        return present * (float(samples) if own is None else own), ~present.any(-1) & (samples > 0)
    labels = labels.to(losses.device).double()
    if own is not None:  # batches that stand in have no labels
        labels = torch.where(own > 0, labels, 0.0)
    return torch.where(present, labels, 0.0), (~present & (labels > 0)).any(-1)


def matches_majority(counts: Tensor, active: Tensor) -> Tensor:
    """The models that have losses wherever another active one has, ``[K]`` bool; the others broke.

    Without labels a task is NaN for all models alike.

    Args:
        counts: how many samples each task has a loss for, or whether it has one, ``[K, m]``.
        active: ``[K]`` bool.
    """
    most = (counts * active[:, None]).amax(0) if counts.dtype != torch.bool else (counts & active[:, None]).any(0)
    return (counts >= most).all(-1)


def weigh_step(group: Group, step: Step, *, weigh: bool) -> tuple[Tensor, State]:
    """Weights by the method, or those of the last step; and the state after it.

    A negative weight raises a loss until its constraint is met. Kept for steps that do not weigh, it would raise the
    loss on and on, and models would diverge: it counts as zero there.
    """
    if weigh or group.weights is None:
        return group.method.weigh(step, group.state)
    weights = group.weights.clamp_min(0.0)
    return weights if step.present is None else torch.where(step.present, weights, zero(weights.device)), group.state


@dataclass(frozen=True)
class _Targets:
    """The tensors whose gradients are taken: the parameters, or the representation and the heads.

    Attributes:
        parameters: in the order of the gradients.
        in_trunk: which of them the Gramian is taken over.
        encoder: the parameters before the representation, where there is one.
    """

    parameters: Sequence[Tensor]
    in_trunk: Sequence[bool]
    encoder: Sequence[Tensor]

    @classmethod
    def of(cls, models: Models) -> _Targets:
        """The targets after a forward pass."""
        in_trunk = [models.problem.is_shared(name) for name in models.trained]
        parameters = list(models.trained.values())
        if models.problem.representation is None:
            return cls(parameters, in_trunk, [])
        if not models.captured:
            raise ValueError(
                f"'representation' must name a submodule that the model calls. {models.problem.representation!r} was "
                "not called."
            )
        encoder = [p for p, inside in zip(parameters, in_trunk, strict=True) if inside]
        heads = [p for p, inside in zip(parameters, in_trunk, strict=True) if not inside]
        captured = list(models.captured)
        return cls([*captured, *heads], [True] * len(captured) + [False] * len(heads), encoder)

    def trunk(self, rows: TaskGradients) -> TaskGradients:
        """The part of the task gradients that the Gramian is taken over."""
        return [tuple(g for g, inside in zip(row, self.in_trunk, strict=True) if inside) for row in rows]

    def through_encoder(self, models: Models, updates: list[Tensor | None]) -> list[Tensor | None]:
        """Updates of the representation and the heads as updates of all parameters, by one more backward pass."""
        count = len(models.captured)
        reached = [(z, g) for z, g in zip(models.captured, updates[:count], strict=True) if g is not None]
        back = torch.autograd.grad([z for z, _ in reached], self.encoder, [g for _, g in reached], allow_unused=True)
        encoder, heads = iter(back), iter(updates[count:])
        return [next(encoder) if models.problem.is_shared(name) else next(heads) for name in models.trained]


def _weigh_by_gradients(
    group: Group, losses: Tensor, step: Step, *, weigh: bool
) -> tuple[Tensor, list[Tensor | None], Tensor]:
    """Weights, updates and Gramian by the gradients of each task."""
    models, wanted = group.models, _Targets.of(group.models)
    gradients = task_gradients(losses, wanted.parameters)
    together = all(wanted.in_trunk) and (group.static_memory or isinstance(models, Stack))
    gathered = Gathered.of(gradients, models.count) if together else None
    c = gramian(wanted.trunk(gradients), models.count) if gathered is None else gathered.gramian()
    step = replace(step, gramian=c if group.method.needs_gramian else None)
    weights, group.state = weigh_step(group, step, weigh=weigh)
    assert step.present is not None
    if gathered is not None and not wanted.encoder:
        return weights, gathered.combine(weights), c
    shape = losses.shape
    updates = weigh_rows(weights.reshape(shape), step.present.reshape(shape), gradients, wanted.in_trunk)
    return weights, wanted.through_encoder(models, updates) if wanted.encoder else updates, c
