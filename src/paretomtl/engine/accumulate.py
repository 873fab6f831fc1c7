"""Accumulation: losses and task gradients of micro-batches and processes, summed to those of the whole batch.

Several processes average losses and task gradients before the Gramian, weighted by samples. They send m gradients
instead of one, and the weights are those of one process. Cheaper ways would change the weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from paretomtl._support.argument_checks import known_finite
from paretomtl.engine.batches.partition import MicroBatches
from paretomtl.engine.batches.structure import samples_by_task
from paretomtl.engine.gradients import (
    TaskGradients,
    gramian,
    one_backward,
    task_gradients,
    weigh_rows,
)
from paretomtl.engine.measure import GradientTargets, Measurement
from paretomtl.engine.model_group import Group
from paretomtl.engine.models.base import Models
from paretomtl.engine.processes import ProcessGroup
from paretomtl.problems.per_task import TaskBatch


@dataclass(frozen=True)
class Sums:
    """Sums over micro-batches and processes: means over samples, times the number of samples in each mean.

    Attributes:
        losses: ``Σ n L [..., m]``, in float64; absent tasks add zero, even if they are NaN.
        counts: ``Σ n [..., m]``, in float64.
        broken: ``[...]``, how many parts had a loss that is NaN in spite of samples or labels.
        gradients: ``Σ n ∇L``; empty if they were not requested.
    """

    losses: Tensor
    counts: Tensor
    broken: Tensor
    gradients: TaskGradients

    @classmethod
    def of(cls, losses: Tensor, counts: Tensor, broken: Tensor, gradients: TaskGradients) -> Sums:
        """The sums of one part: mean losses ``[..., m]``, each counted by its samples, zero without labels."""
        numbers = torch.where(counts > 0, losses.detach().double() * counts, 0.0)
        return cls(numbers, counts.double(), broken.double(), scale_rows(gradients, counts))

    def plus(self, other: Sums) -> Sums:
        """The sums of both."""
        rows: TaskGradients = [
            tuple(a if b is None else b if a is None else a + b for a, b in zip(row, other_row, strict=True))
            for row, other_row in zip(self.gradients, other.gradients, strict=True)
        ]
        return Sums(self.losses + other.losses, self.counts + other.counts, self.broken + other.broken, rows)

    def all_reduce(self, processes: ProcessGroup) -> Sums:
        """All-reduce losses, counts and broken parts; gradients stay those of this process."""
        if not processes.is_distributed:
            return self
        numbers = [self.losses, self.counts, self.broken]
        total = processes.all_reduce_tensor(torch.cat([part.reshape(-1) for part in numbers]))
        parts = torch.split(total, [part.numel() for part in numbers])
        losses, counts, broken = (new.reshape(old.shape) for new, old in zip(parts, numbers, strict=True))
        return replace(self, losses=losses, counts=counts, broken=broken)

    def means(self) -> Tensor:
        """Losses ``[..., m]``; NaN for tasks without labels."""
        return self.losses / self.counts

    def mean_rows(self) -> TaskGradients:
        """The share of these gradients in the overall means."""
        return scale_rows(self.gradients, torch.where(self.counts > 0, 1.0 / self.counts, 0.0))


def scale_rows(gradients: TaskGradients, factors: Tensor) -> TaskGradients:
    """Each task's gradients times a factor ``[..., m]``; a factor of zero gives zeros, even for NaN."""
    rows: TaskGradients = []
    for i, row in enumerate(gradients):
        factor = factors[..., i]
        rows.append(tuple(None if part is None else _scaled(part, factor) for part in row))
    return rows


def all_reduce_rows(processes: ProcessGroup, gradients: TaskGradients, parameters: Sequence[Tensor]) -> TaskGradients:
    """Sum task gradients over all processes."""
    if not processes.is_distributed:
        return gradients
    summed = iter(processes.all_reduce([part for row in gradients for part in row], [*parameters] * len(gradients)))
    return [tuple(next(summed) for _ in row) for row in gradients]


def _scaled(part: Tensor, factor: Tensor) -> Tensor:
    wide = part.to(torch.promote_types(part.dtype, torch.float32))  # the product may overflow in float16
    factor = factor.to(wide.dtype).reshape([*factor.shape, *[1] * (part.ndim - factor.ndim)])
    return torch.where(factor == 0, 0.0, wide * factor)


def measure_micro_batches(group: Group, batch: MicroBatches, *, weigh: bool) -> Measurement:
    """Measure a batch that comes in micro-batches, or is shared by several processes.

    Losses and task gradients are averaged over all of them before the Gramian is taken, weighted by samples. The
    weights are therefore those of the whole batch, and the same in every process. Task gradients are sent only if the
    method weighs by them; with a representation, only its Gramian is sent.
    """
    models, processes = group.models, group.processes
    parameters, in_trunk = list(models.trained.values()), models.in_trunk
    by_gramian = group.method.needs_gramian and (weigh or group.weights is None)
    at_representation = by_gramian and models.problem.representation is not None
    targets = GradientTargets(parameters, in_trunk, [])
    losses, counts = torch.empty(0), torch.empty(0)
    summed: Sums | None = None
    one_pass = False
    for part, samples in zip(batch.parts, batch.samples, strict=True):
        with group.precision():
            losses = models.losses(part)
        if at_representation:
            targets = GradientTargets.of(models)
        counts, broken = count_labels(models, losses.detach(), part, samples)
        one_pass = not by_gramian and len(batch.parts) == 1 and bool((counts > 0).all())
        rows = [] if one_pass else task_gradients(losses, targets.parameters)
        sums = Sums.of(losses, counts, broken, rows)
        summed = sums if summed is None else summed.plus(sums)
    assert summed is not None
    processes.broadcast_tensors(models.live_buffers())
    total = summed.all_reduce(processes)
    shape = (models.count, len(models.problem.tasks))
    numbers = total.counts.reshape(shape)
    seen = total.means().reshape(shape).to(torch.promote_types(losses.dtype, torch.float32))
    seen = torch.where(total.broken.reshape(-1, 1) > 0, torch.inf, seen)
    present = (numbers > 0) | seen.isinf()
    if not by_gramian:
        share = torch.where(total.counts > 0, counts / total.counts, 0.0) if one_pass else None

        def combine_here(weights: Tensor) -> list[Tensor | None]:
            alpha = weights.reshape(losses.shape).to(losses.dtype)
            if share is not None:
                updates = one_backward(losses, alpha, parameters, in_trunk, share)
            else:
                updates = weigh_rows(alpha, present.reshape(losses.shape), total.mean_rows(), in_trunk)
            return processes.all_reduce(updates, parameters)

        return Measurement(seen, present, numbers, None, seen.abs(), known_finite(seen), combine_here)
    mean_rows = total.mean_rows()
    mean_rows = mean_rows if at_representation else all_reduce_rows(processes, mean_rows, parameters)
    c = gramian(targets.trunk(mean_rows), models.count)
    c = processes.all_reduce_tensor(c).to(c.dtype) if at_representation else c

    def combine(weights: Tensor) -> list[Tensor | None]:
        where = present.reshape(losses.shape)
        updates = weigh_rows(weights.reshape(losses.shape), where, mean_rows, targets.in_trunk)
        if not at_representation:
            return updates
        return processes.all_reduce(targets.through_encoder(models, updates), parameters)

    sizes = seen.abs() + c.diagonal(dim1=-2, dim2=-1)
    return Measurement(seen, present, numbers, c, sizes, known_finite(seen, c), combine)


def count_labels(models: Models, losses: Tensor, part: Any, samples: int) -> tuple[Tensor, Tensor]:
    """Count the samples of each loss, in the shape of the losses, and find broken models, ``[K]`` or no dimension.

    A model broke if it has samples but no loss, or NaN in spite of labels, if the problem counts these. The counts
    also reveal a model that broke in another part or process: it has a loss for fewer samples than another model.
    """
    present = ~losses.isnan()
    labels = models.problem.labels_in(part)
    own = samples_by_task(part).to(losses.device) if isinstance(part, TaskBatch) else None
    if labels is None or samples == 0:
        known = models.problem.labelled_share(part) * (float(samples) if own is None else own)
        return present * known, ~present.any(-1) & (samples > 0)
    labels = labels.to(losses.device).double()
    if own is not None:  # stand-in batches have no labels
        labels = torch.where(own > 0, labels, 0.0)
    return torch.where(present, labels, 0.0), (~present & (labels > 0)).any(-1)
