"""Groups: models that step together by one optimizer, their state, and which of them are frozen.

A model with a loss or a Gramian that is not finite goes back to its parameters one step ago and stays there. A copy
of the parameters is kept for that.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from paretomtl.engine.average import WeightAverage
from paretomtl.engine.batches.structure import map_tensors
from paretomtl.engine.gradients import clip
from paretomtl.engine.models.base import Models
from paretomtl.engine.models.flat_memory import ModelState
from paretomtl.engine.models.stack import Stack
from paretomtl.engine.processes import ProcessGroup
from paretomtl.methods import Method, State


@dataclass
class Group:
    """K models that step together, by one optimizer.

    Attributes:
        models: one module, or a stack.
        method: how their tasks are weighed.
        optimizer: over the parameters of all K.
        scheduler: of its learning rate.
        state: the state of the method.
        clip_norm: the largest norm of a model's gradient.
        autocast: the precision of forward passes, if it is lower than that of the parameters.
        static_memory: whether steps write in place only, as a captured step must.
        processes: the processes that train the same models, each on its share of a batch.
        front_size: how many rows of all groups make one front; None for all of them.
        active: ``[K]`` bool; a model whose losses were once not finite is frozen.
        weights: ``[K, m]`` of the last step that weighed; None before the first.
        compared: whether losses are compared with those of other groups after a step, as for models in separate groups.
        before_previous: the values two steps ago; None before a step after which they may be needed.
        average: the running mean of the models' values, which is evaluated and stored in their place; None for none.
        failed: the error of a stack's forward pass, which was rolled back.
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
    processes: ProcessGroup = field(default_factory=ProcessGroup)
    front_size: int | None = None
    active: Tensor = field(init=False)
    weights: Tensor | None = field(init=False, default=None)
    compared: bool = field(init=False)
    before_previous: ModelState | None = field(init=False, default=None)
    average: WeightAverage | None = field(init=False, default=None)
    failed: Exception | None = field(init=False, default=None)
    draws_on_host: bool | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.compared = self.models.problem.train is not None and not isinstance(self.models, Stack)
        device = next(iter(self.models.tensors().values())).device
        self.active = torch.ones(self.models.count, dtype=torch.bool, device=device)

    @functools.cached_property
    def previous(self) -> ModelState:
        """Parameters and buffers one step ago, which still had finite losses; the first ones before the first step."""
        return self.models.copy()

    def average_weights(self, share: float) -> None:
        """Evaluate and store a running mean of the models' values from now on; ``share`` is its reach."""
        self.average = WeightAverage(share, self.models.copy())

    def solution(self) -> ModelState:
        """The values of the models that are evaluated and stored."""
        newest = self.models.tensors()
        return newest if self.average is None else self.average.up_to(newest)

    def restore_frozen(self) -> None:
        """Restore frozen models to their last values with finite losses."""
        if self.active.device.type == "cpu" and bool(self.active.all()):  # on a GPU, asking would wait
            return
        self.models.restore(~self.active, self.previous)

    def keep_weights(self, weights: Tensor, present: Tensor, *, weighed: bool) -> None:
        """Keep weights ``[K, m]`` for steps that do not weigh; a task without labels keeps its last weight."""
        if self.weights is None:
            self.weights = weights
        elif weighed:
            self.weights = torch.where(present, weights, self.weights)

    def take_step(self, changes: list[Tensor | None], *, known: bool) -> None:
        """Take one optimizer step along changes of all parameters, which are detached; frozen models stay behind.

        Models whose losses are not ``known`` to be finite may turn out to have broken in the step before.
        """
        self.restore_frozen()
        if self.compared and not known:
            self._save_before_previous()
        self.previous.follow(self.models.tensors())
        if self.clip_norm is not None:
            changes = clip(changes, self.models.count, self.clip_norm)
        for parameter, change in zip(self.models.trained.values(), changes, strict=True):
            if change is not None:
                change = change.to(parameter.dtype)
                if self.static_memory or isinstance(self.models, Stack):  # fused optimizers need it
                    change = match_strides(change, parameter)
            parameter.grad = change
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.restore_frozen()

    def _save_before_previous(self) -> None:
        if self.before_previous is None:
            self.before_previous = self.previous.copy()
        elif self.static_memory:
            self.before_previous.write(self.previous)
        else:
            self.previous, self.before_previous = self.before_previous, self.previous

    def freeze(self, healthy: Tensor, *, last_step: bool) -> None:
        """Freeze the models that are not healthy, ``[K]`` bool, at their last good values.

        Args:
            healthy: which models go on.
            last_step: whether the last step began with broken parameters, so that the good ones are those before it.
        """
        broken = self.active & ~healthy
        self.active &= healthy  # in place: a captured step reads it there
        if broken.device.type == "cpu" and not bool(broken.any()):  # on a GPU, asking would wait
            return
        if last_step and self.before_previous is not None:
            self.previous.write(self.before_previous, broken)

    def stored(self) -> dict[str, Any]:
        """Everything that steps change, for a checkpoint."""
        return {
            "tensors": self.models.tensors(),
            "previous": self.previous,
            "alive": self.active,
            "weights": self.weights,
            "state": self.state,
            "optimizer": self.optimizer.state_dict(),
            "scheduler": None if self.scheduler is None else self.scheduler.state_dict(),
            **({} if self.average is None else {"average": self.average.stored()}),
        }

    def load(self, stored: Mapping[str, Any]) -> None:
        """Restore what :meth:`stored` returned."""
        device = self.active.device
        self.models.restore(torch.ones_like(self.active), _to_device(stored["tensors"], device))
        self.previous = self._copy_of(stored["previous"])
        own, other = ({name: t.shape for name, t in each.items()} for each in (self.state, stored["state"]))
        if own != other or stored["alive"].shape != self.active.shape:
            raise ValueError(f"the method has a state of {own}, not of {other}")
        self.active = stored["alive"].to(device)
        self.weights = None if stored["weights"] is None else stored["weights"].to(device)
        self.state = _to_device(stored["state"], device)
        trained = [p for part in self.optimizer.param_groups for p in part["params"]]
        saved = stored["optimizer"]["state"]
        of_parameters = {index: values for index, values in saved.items() if index in range(len(trained))}
        castable = {  # load_state_dict turns strings, arrays and complex numbers into something else
            index: {name: value for name, value in values.items() if _is_real(value)}
            for index, values in of_parameters.items()
        }
        self.optimizer.load_state_dict({**stored["optimizer"], "state": {**saved, **castable}})
        for index, values in of_parameters.items():
            values_now = self.optimizer.state[trained[index]]
            for name, value in values.items():  # load_state_dict has cast them; some differ in precision on purpose
                if name not in castable[index]:
                    values_now[name] = map_tensors(lambda tensor: tensor.to(device), value)
                elif isinstance(value, Tensor) and values_now[name].dtype != value.dtype:
                    values_now[name] = value.to(values_now[name].device)
                if isinstance(value, Tensor) and value.shape == trained[index].shape:
                    values_now[name] = match_strides(values_now[name], trained[index])
        if self.scheduler is not None:
            self.scheduler.load_state_dict(stored["scheduler"])
        if self.average is not None:
            self.average.load(stored["average"])

    def _copy_of(self, values: Mapping[str, Tensor]) -> ModelState:
        """Stored values in the memory layout of the models."""
        state = self.models.copy()
        for name, tensor in values.items():
            if name in state and state[name].shape == tensor.shape:
                state[name].copy_(tensor)
            else:  # a buffer that was made, or grew, in a forward pass
                state[name] = tensor.to(self.active.device)
        return state

    def release(self) -> None:
        """Free what only further steps need."""
        self.before_previous = None
        self.optimizer.state.clear()

    def precision(self) -> contextlib.AbstractContextManager[Any]:
        """The context of a forward pass."""
        if self.autocast is None:
            return contextlib.nullcontext()
        return torch.autocast(self.active.device.type, dtype=self.autocast)


def split_by_group(rows: Tensor, groups: Sequence[Group]) -> tuple[Tensor, ...]:
    """Rows of all models, split into those of each group."""
    return torch.split(rows, [group.models.count for group in groups])


def match_strides(tensor: Tensor, like: Tensor) -> Tensor:
    """The same numbers with the strides of another tensor of this shape, as fused optimizers need them."""
    if tensor.stride() == like.stride():
        return tensor
    laid_out = torch.empty_strided(like.shape, like.stride(), dtype=tensor.dtype, device=tensor.device)
    return laid_out.copy_(tensor)


def _is_real(value: Any) -> bool:
    return not value.is_complex() if isinstance(value, Tensor) else isinstance(value, (int, float, type(None)))


def _to_device(tensors: Mapping[str, Tensor], device: torch.device) -> dict[str, Tensor]:
    return {name: tensor.to(device) for name, tensor in tensors.items()}
