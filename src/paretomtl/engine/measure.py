"""Measurement of a batch: losses, gradients and Gramian of K models, and the weights and updates that follow.

A method without a Gramian takes one backward pass, and must know before it whether all tasks have labels. Asking
waits for the device, which a captured step cannot do. Training data without NaN or negative classes count as labelled
there, and a batch that proves otherwise is left out of the step; with such values, the step takes m passes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from paretomtl._support.argument_checks import known_finite
from paretomtl.engine.gradients import (
    Gathered,
    TaskGradients,
    gramian,
    one_backward,
    task_gradients,
    weigh_rows,
    zero,
)
from paretomtl.engine.model_group import Group
from paretomtl.engine.models.base import Models
from paretomtl.engine.models.stack import Stack
from paretomtl.methods import State, Step


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
class GradientTargets:
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
    def of(cls, models: Models) -> GradientTargets:
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
    models, wanted = group.models, GradientTargets.of(group.models)
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
