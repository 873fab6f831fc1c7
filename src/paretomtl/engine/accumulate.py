"""Accumulation: losses and task gradients of micro-batches and processes, summed to those of the whole batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from paretomtl.engine.gradients import TaskGradients
from paretomtl.engine.processes import ProcessGroup


@dataclass(frozen=True)
class Sums:
    """Sums over micro-batches and processes: means over samples, times the number of samples in each mean.

    Attributes:
        losses: ``Σ n L [..., m]``, in float64; absent tasks count for nothing, NaN and all.
        counts: ``Σ n [..., m]``, in float64.
        broken: ``[...]``, how many parts had losses that broke: no number, in spite of samples or labels.
        gradients: ``Σ n ∇L``; empty where they were not asked for.
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
        """Losses, counts and what broke of all processes; gradients stay those of this one."""
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
        """The share of these gradients in the means over all that was counted."""
        return scale_rows(self.gradients, torch.where(self.counts > 0, 1.0 / self.counts, 0.0))


def scale_rows(gradients: TaskGradients, factors: Tensor) -> TaskGradients:
    """Each task's gradients times a factor ``[..., m]``; a factor of zero leaves zeros, whatever was there."""
    rows: TaskGradients = []
    for i, row in enumerate(gradients):
        factor = factors[..., i]
        rows.append(tuple(None if part is None else _scaled(part, factor) for part in row))
    return rows


def all_reduce_rows(processes: ProcessGroup, gradients: TaskGradients, parameters: Sequence[Tensor]) -> TaskGradients:
    """Task gradients added up over all processes."""
    if not processes.is_distributed:
        return gradients
    summed = iter(processes.all_reduce([part for row in gradients for part in row], [*parameters] * len(gradients)))
    return [tuple(next(summed) for _ in row) for row in gradients]


def _scaled(part: Tensor, factor: Tensor) -> Tensor:
    wide = part.to(torch.promote_types(part.dtype, torch.float32))  # a half may overflow when it is multiplied
    factor = factor.to(wide.dtype).reshape([*factor.shape, *[1] * (part.ndim - factor.ndim)])
    return torch.where(factor == 0, 0.0, wide * factor)
