"""One step of K models: losses, gradients, Gramian, weights, update."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from paretomtl.engine.data.batches import MicroBatches
from paretomtl.engine.gradients import zero
from paretomtl.engine.measure import BatchResult, matches_majority, measure_batch, measure_micro_batches
from paretomtl.engine.models.flat_memory import ModelState
from paretomtl.engine.models.models import Models, Stack
from paretomtl.engine.processes import ProcessGroup
from paretomtl.engine.rollback import undone_on_failure
from paretomtl.methods import Method, State


@dataclass
class Group:
    """K models that step together, by one optimizer.

    Attributes:
        models: one module, or a stack.
        method: how their tasks are weighed.
        optimizer: over the parameters of all K.
        scheduler: of its learning rate.
        state: what the method remembers.
        clip_norm: the longest update of a model that the optimizer sees.
        autocast: the precision of forward passes, where it is lower than that of the parameters.
        fixed: whether all that a step writes stays where it is, as a captured one knows it there.
        ranks: the processes that train the same models, each on its share of a batch.
        alive: ``[K]`` bool; a model whose losses were once not finite is out.
        weights: ``[K, m]`` of the last step that weighed; None before the first.
        previous: parameters and buffers one step ago, which still had finite losses.
        older: the same two steps ago, for models in groups of their own, whose losses are compared after the step.
        failed: the error of a forward pass of a stack, which left everything as it was.
        draws_on_host: whether passes draw from NumPy's or Python's generator; None where that is not known yet.
    """

    models: Models
    method: Method
    optimizer: torch.optim.Optimizer
    scheduler: torch.optim.lr_scheduler.LRScheduler | None
    state: State
    clip_norm: float | None = None
    autocast: torch.dtype | None = None
    static_memory: bool = False
    ranks: ProcessGroup = field(default_factory=ProcessGroup)
    active: Tensor = field(init=False)
    weights: Tensor | None = field(init=False, default=None)
    previous: ModelState = field(init=False)
    before_previous: ModelState | None = field(init=False)
    failed: Exception | None = field(init=False, default=None)
    draws_on_host: bool | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.previous = self.models.copy()
        alone = self.models.problem.train is not None and not isinstance(self.models, Stack)
        self.before_previous = self.models.copy() if alone else None
        device = next(iter(self.previous.values())).device
        self.active = torch.ones(self.models.count, dtype=torch.bool, device=device)

    def restore_frozen(self) -> None:
        """Put models that are out back to where they last had finite losses."""
        if self.active.device.type == "cpu" and bool(self.active.all()):  # on a GPU, asking would wait
            return
        self.models.restore(~self.active, self.previous)

    def save_previous(self) -> None:
        """Take down where the models are."""
        if self.before_previous is not None and self.static_memory:
            self.before_previous.write(self.previous)
        elif self.before_previous is not None:
            self.previous, self.before_previous = self.before_previous, self.previous
        self.models.remember(self.previous)

    def freeze(self, sound: Tensor, *, last_step: bool) -> None:
        """Models that are not sound, ``[K]`` bool, stay where they last were.

        Args:
            sound: which models go on.
            last_step: whether it was the last step that began with parameters that were not sound, so that one step
                before it they were.
        """
        broken = self.active & ~sound
        self.active &= sound  # in place: a captured step reads it there
        if broken.device.type == "cpu" and not bool(broken.any()):  # on a GPU, asking would wait
            return
        if last_step and self.before_previous is not None:
            self.previous.write(self.before_previous, broken)

    def stored(self) -> dict[str, Any]:
        """Everything that steps change, for a checkpoint."""
        return {
            "tensors": self.models.tensors(),
            "previous": self.previous,
            "older": self.before_previous,
            "alive": self.active,
            "weights": self.weights,
            "state": self.state,
            "optimizer": self.optimizer.state_dict(),
            "scheduler": None if self.scheduler is None else self.scheduler.state_dict(),
        }

    def load(self, stored: Mapping[str, Any]) -> None:
        """Go back to what :meth:`stored` returned."""
        device = self.active.device
        self.models.restore(torch.ones_like(self.active), _moved(stored["tensors"], device))
        self.previous = self._kept(stored["previous"])
        self.before_previous = None if stored["older"] is None else self._kept(stored["older"])
        mine, theirs = ({name: t.shape for name, t in each.items()} for each in (self.state, stored["state"]))
        if mine != theirs or stored["alive"].shape != self.active.shape:
            raise ValueError(f"the method has a state of {mine}, and not of {theirs}")
        self.active = stored["alive"].to(device)
        self.weights = None if stored["weights"] is None else stored["weights"].to(device)
        self.state = _moved(stored["state"], device)
        self.optimizer.load_state_dict(stored["optimizer"])
        trained = [p for part in self.optimizer.param_groups for p in part["params"]]
        for index, values in stored["optimizer"]["state"].items():
            mine = self.optimizer.state[trained[index]]
            for name, value in values.items():  # load_state_dict casts what was kept in another precision on purpose
                if isinstance(value, Tensor) and mine[name].dtype != value.dtype:
                    mine[name] = value.to(mine[name].device)
                if isinstance(value, Tensor) and value.shape == trained[index].shape:
                    mine[name] = _laid_out(mine[name], trained[index])
        if self.scheduler is not None:
            self.scheduler.load_state_dict(stored["scheduler"])

    def _kept(self, values: Mapping[str, Tensor]) -> ModelState:
        """Stored values, laid out as those of the models are."""
        kept = self.models.copy()
        for name, tensor in values.items():
            if name in kept and kept[name].shape == tensor.shape:
                kept[name].copy_(tensor)
            else:  # a buffer that was made, or grew, in a forward pass
                kept[name] = tensor.to(self.active.device)
        return kept

    def precision(self) -> contextlib.AbstractContextManager[Any]:
        """The context of a forward pass."""
        if self.autocast is None:
            return contextlib.nullcontext()
        return torch.autocast(self.active.device.type, dtype=self.autocast)


def split_by_group(rows: Tensor, groups: Sequence[Group]) -> tuple[Tensor, ...]:
    """What belongs to the models of each group, of something that leads with all models."""
    return torch.split(rows, [group.models.count for group in groups])


@dataclass(frozen=True)
class StepRecord:
    """What one step saw and did, ``[K, m]`` each.

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
    """Advance every living model by one step: one forward pass, and m backward passes, or one without a Gramian.

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
    with undone_on_failure([group]):
        if isinstance(batch, MicroBatches):
            found = measure_micro_batches(group, batch, number=number, total=total, weigh=weigh)
            group.ranks.broadcast_tensors(models.held())
        else:
            found = measure_batch(group, batch, number=number, total=total, weigh=weigh, labelled=labelled)
    weights, updates, present = found.weights, found.updates, found.present
    if group.weights is None:
        group.weights = weights
    elif weigh:  # a task without labels keeps its weight for steps that do not weigh
        group.weights = torch.where(present, weights, group.weights)
    if not found.known:
        group.active = group.active & _sound(group, found, alone=batch is None)
    group.restore_frozen()
    group.save_previous()
    if group.clip_norm is not None:
        updates = _clipped(updates, models.count, group.clip_norm)
    for parameter, update in zip(models.trained.values(), updates, strict=True):
        if update is not None:
            update = update.to(parameter.dtype)
            if group.static_memory or isinstance(models, Stack):  # as fused optimizers want it
                update = _laid_out(update, parameter)
        parameter.grad = update
    group.optimizer.step()
    group.optimizer.zero_grad(set_to_none=True)
    group.restore_frozen()
    weights = torch.where(group.active[:, None], weights, zero(weights.device))
    return StepRecord(found.losses, weights, present, found.counts)


def _sound(group: Group, found: BatchResult, *, alone: bool) -> Tensor:
    """The models that go on, ``[K]`` bool, by the sizes of their losses and gradients."""
    sizes = torch.where(found.present, found.sizes, zero(found.sizes.device))
    finite = (sizes < torch.inf).all(-1) & found.present.any(-1)
    if len(finite) == 1 or alone:
        return finite
    return finite & matches_majority(found.counts, group.active)


def _clipped(updates: list[Tensor | None], count: int, longest: float) -> list[Tensor | None]:
    """Each model's update, no longer than ``longest``."""
    squares = [u.detach().reshape(count, -1).double().square().sum(-1) for u in updates if u is not None]
    factor = (longest / (torch.stack(squares).sum(0).sqrt() + 1e-6)).clamp_max(1.0)
    scaled: list[Tensor | None] = []
    for update in updates:
        if update is None:
            scaled.append(None)
            continue
        mine = factor[0] if count == 1 else factor.reshape(-1, *[1] * (update.ndim - 1))
        scaled.append(update * mine.to(update.dtype))
    return scaled


def _laid_out(tensor: Tensor, like: Tensor) -> Tensor:
    """The same numbers with the strides of another tensor of this shape."""
    if tensor.stride() == like.stride():
        return tensor
    laid_out = torch.empty_strided(like.shape, like.stride(), dtype=tensor.dtype, device=tensor.device)
    return laid_out.copy_(tensor)


def _moved(tensors: Mapping[str, Tensor], device: torch.device) -> dict[str, Tensor]:
    return {name: tensor.to(device) for name, tensor in tensors.items()}
