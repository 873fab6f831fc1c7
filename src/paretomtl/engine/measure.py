"""Measurement of a batch: losses, gradients and Gramian of K models, and how updates follow from weights.

A method without a Gramian takes one backward pass, and must know beforehand whether all tasks have labels. Checking
the batch waits for the device, which a captured step cannot do. There, training data without NaN or negative classes
count as labelled, and a batch that proves otherwise is left out of the step. With such values, the step takes m passes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
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


@dataclass
class Measurement:
    """Losses, gradients and Gramian of K models on a batch, before any task is weighed.

    Attributes:
        losses: ``[K, m]``.
        present: which tasks have labels, ``[K, m]``.
        counts: how many samples have labels, or :attr:`present`, ``[K, m]``.
        gramian: of the task gradients, ``[K, m, m]``; None where the method does not weigh by it.
        sizes: magnitudes of losses, and of gradients if they are known; not finite where these are not, ``[K, m]``.
        known: whether everything is known to be finite.
    """

    losses: Tensor
    present: Tensor
    counts: Tensor
    gramian: Tensor | None
    sizes: Tensor
    known: bool
    _combine: Callable[[Tensor], list[Tensor | None]] | None

    def combine(self, weights: Tensor) -> list[Tensor | None]:
        """The update of each parameter for weights ``[K, m]``; works once, because it frees the gradients."""
        assert self._combine is not None
        combine, self._combine = self._combine, None
        return combine(weights)


def measure_batch(group: Group, batch: Any, *, weigh: bool, labelled: bool | None) -> Measurement:
    """Measure a whole batch, in this process alone."""
    models = group.models
    with group.precision():
        losses = models.losses(batch)
    seen = losses.detach().reshape(models.count, -1)
    seen = seen if seen.dtype.itemsize >= 4 else seen.float()
    known = known_finite(seen)
    present = torch.ones_like(seen, dtype=torch.bool) if known or batch is None else seen == seen
    by_gramian = group.method.needs_gramian and (weigh or group.weights is None)
    trusting = labelled is True
    if labelled is None and not by_gramian:
        labelled = known or batch is None or bool(present.all())
    if not by_gramian and labelled:
        combine = _combine_by_one_pass(models, losses, present if trusting else None)
        return Measurement(seen, present, present, None, seen.abs(), known, combine)
    c, combine = _measure_gradients(group, losses, present)
    sizes = seen.abs() + c.diagonal(dim1=-2, dim2=-1)  # not finite where any gradient of the task is not
    c_or_none = c if group.method.needs_gramian else None
    return Measurement(seen, present, present, c_or_none, sizes, known and known_finite(c), combine)


def matches_majority(counts: Tensor, active: Tensor) -> Tensor:
    """Find the models that have losses wherever another active one has, ``[K]`` bool; the others broke.

    A task without labels is NaN for all models.

    Args:
        counts: how many samples each task has a loss for, or whether it has one, ``[K, m]``.
        active: ``[K]`` bool.
    """
    most = (counts * active[:, None]).amax(0) if counts.dtype != torch.bool else (counts & active[:, None]).any(0)
    return (counts >= most).all(-1)


def find_healthy(measured: Measurement, active: Tensor, *, alone: bool) -> Tensor:
    """Find the models with finite losses and gradients, ``[K]`` bool; without data, each is judged ``alone``."""
    sizes = torch.where(measured.present, measured.sizes, zero(measured.sizes.device))
    finite = (sizes < torch.inf).all(-1) & measured.present.any(-1)
    if len(finite) == 1 or alone:
        return finite
    return finite & matches_majority(measured.counts, active)


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
        in_trunk, parameters = models.in_trunk, list(models.trained.values())
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
        return [next(encoder) if inside else next(heads) for inside in models.in_trunk]


def _combine_by_one_pass(
    models: Models, losses: Tensor, present: Tensor | None
) -> Callable[[Tensor], list[Tensor | None]]:
    """Updates by one backward pass of the weighted sum; zero if ``present`` shows a task without labels."""

    def combine(weights: Tensor) -> list[Tensor | None]:
        alpha = weights.reshape(losses.shape).to(losses.dtype)
        updates = one_backward(losses, alpha, list(models.trained.values()), models.in_trunk)
        if present is None:
            return updates
        whole, nothing = present.all(), zero(present.device)
        return [None if u is None else torch.where(whole, u, nothing) for u in updates]

    return combine


def _measure_gradients(
    group: Group, losses: Tensor, present: Tensor
) -> tuple[Tensor, Callable[[Tensor], list[Tensor | None]]]:
    """The Gramian of the task gradients, and the updates as weighted sums of them."""
    models, targets = group.models, GradientTargets.of(group.models)
    gradients = task_gradients(losses, targets.parameters)
    together = all(targets.in_trunk) and (group.static_memory or isinstance(models, Stack))
    gathered = Gathered.of(gradients, models.count) if together else None
    c = gramian(targets.trunk(gradients), models.count) if gathered is None else gathered.gramian()

    def combine(weights: Tensor) -> list[Tensor | None]:
        if gathered is not None and not targets.encoder:
            return gathered.combine(weights)
        shape = losses.shape
        updates = weigh_rows(weights.reshape(shape), present.reshape(shape), gradients, targets.in_trunk)
        return targets.through_encoder(models, updates) if targets.encoder else updates

    return c, combine
