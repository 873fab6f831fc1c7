"""The interface of methods: losses and Gramian in, task weights out. All share a state, and safe steps in float64."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal, TypeAlias

import torch
from torch import Tensor

from paretomtl._support.argument_checks import (
    as_rows,
    check_count,
    check_floating,
    check_tasks,
    check_trailing,
    known_finite,
)
from paretomtl._support.cuda import may_launch
from paretomtl.core import preferences as vectors
from paretomtl.methods.inputs import SafeStep, State, Step
from paretomtl.methods.weigher import Weigher

Reading: TypeAlias = Literal["direction", "importance", "start"]
"""The meaning of the K rows: directions of the loss vector, importances of the tasks, or only K starts."""


class Method(ABC):
    """A rule that turns losses and Gramian into task weights (paper, section 4.3). Immutable: state in, state out.

    A method implements :meth:`init` and ``_weigh``; the rest is shared. Computations are in float64. A model whose
    losses or Gramian are not finite gets zero weights, keeps its state, and never affects another one.
    """

    separate: ClassVar[bool] = False
    """Whether the models are separate networks, each for only one task. They are a baseline, not a front."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The name on the command line and in stored results."""

    @property
    @abstractmethod
    def needs_gramian(self) -> bool:
        """Whether :class:`Step` must carry a Gramian: m backward passes a step instead of one."""

    @property
    def coupled(self) -> bool:
        """Whether the weights of a row depend on the other rows of its front, as a hypervolume gradient does.

        ``_weigh`` then gets all K rows of one front with any strategy; rows that are not ``valid`` are broken models.
        Other methods may get any part of the rows. A coupled method cannot train a part of a front on its own.
        """
        return False

    @property
    @abstractmethod
    def reading(self) -> Reading:
        """The meaning of the K rows of ``preferences`` to this method."""

    @abstractmethod
    def spread(self, count: int, tasks: int, *, seed: int = 0) -> Tensor:
        """The rows ``[K, m]`` for a given number of preferences."""

    def usual_count(self, tasks: int) -> int:
        """The default number of rows: as many as cover a front (docs/guides/how-many.md), or 5 starts."""
        return 5 if self.reading == "start" else vectors.usual_count(tasks)

    @abstractmethod
    def init(self, preferences: Tensor) -> State:
        """The state before the first step, from rows ``[K, m]``."""

    @abstractmethod
    def _weigh(self, step: SafeStep, state: State) -> tuple[Tensor, State]:
        """Weights ``[K, m]`` and the next state."""

    def _weigh_in_units(self, step: SafeStep, state: State) -> tuple[Tensor, State]:
        """The same for unscaled losses; a method that scales them overrides this."""
        return self._weigh(step, state)

    def _weigh_by_kernel(self, step: Step, state: State) -> tuple[Tensor, State] | None:
        """The result of :meth:`weigh` by a CUDA kernel; None if there is no kernel for this case."""
        return None

    def weigh(self, step: Step, state: State) -> tuple[Tensor, State]:
        """The task weights ``α [K, m]`` of this step, in the precision of the losses, and the next state."""
        check_floating("losses", step.losses)
        check_trailing("losses", step.losses, _count(state), "m")
        tasks = step.losses.shape[-1]
        check_tasks("losses.shape[-1]", tasks)
        known = next((tensor.shape[1] for tensor in state.values() if tensor.ndim == 2), tasks)
        check_trailing("losses", step.losses, _count(state), known)
        if self.needs_gramian and step.gramian is None:
            raise ValueError(f"'gramian' must be given: the method '{self.name}' weighs by it. Got None instead.")
        if step.gramian is not None:
            check_floating("gramian", step.gramian)
            check_trailing("gramian", step.gramian, step.losses.shape[0], tasks, tasks)
        if step.present is not None:
            check_trailing("present", step.present, tasks)
        if may_launch(step.losses):
            result = self._weigh_by_kernel(step, state)
            if result is not None:
                return result
        precision = torch.finfo((step.losses if step.gramian is None else step.gramian).dtype).eps
        present = torch.ones_like(step.losses, dtype=torch.bool) if step.present is None else step.present
        present = present.expand(step.losses.shape)
        given = [step.losses] if step.gramian is None else [step.losses, step.gramian]
        if known_finite(*given) and bool(present.all()):  # the step is already safe
            gramian = step.losses.new_zeros(()) if step.gramian is None else step.gramian.detach()
            gramian = gramian.double().expand(*step.losses.shape, tasks)
            valid = present.any(-1)
            safe = SafeStep(step.losses.detach().double(), gramian, present, step.number, step.total, precision, valid)
            weights, after = self._weigh_in_units(safe, state)
            self._check_weights(weights, step.losses)
            return weights.to(step.losses.dtype), after
        losses = torch.where(present, step.losses.detach().double(), 0.0)
        valid = losses.isfinite().all(-1, keepdim=True) & present.any(-1, keepdim=True)
        gramian = losses.new_zeros(*losses.shape, tasks)
        if step.gramian is not None:
            pairs = present[..., :, None] & present[..., None, :]
            gramian = torch.where(pairs, step.gramian.detach().double(), 0.0)
            valid = valid & gramian.isfinite().flatten(1).all(-1, keepdim=True)
            gramian = torch.where(valid[..., None], gramian, 0.0)
        losses = torch.where(valid, losses, 1.0)
        safe = SafeStep(losses, gramian, present, step.number, step.total, precision, valid[..., 0])
        weights, after = self._weigh_in_units(safe, state)
        self._check_weights(weights, step.losses)
        after = {name: torch.where(_against(valid, new), new, state[name]) for name, new in after.items()}
        return torch.where(valid & present, weights, 0.0).to(step.losses.dtype), after

    def _check_weights(self, weights: Tensor, losses: Tensor) -> None:
        if weights.shape != losses.shape:
            raise ValueError(
                f"'_weigh' of {type(self).__name__} must return weights [K, m], a row per model: {list(losses.shape)}. "
                f"Got {list(weights.shape)} instead."
            )

    def status(self, state: State, losses: Tensor | None = None) -> list[str]:
        """The status of each model in one word, by its last step, or by ``losses [K, m]`` measured since."""
        return ["trained"] * _count(state)

    def violation(self, state: State, losses: Tensor) -> Tensor | None:
        """How far measured losses ``[K, m]`` are outside their regions, ``[K]``, at most 0 inside; None: no regions."""
        return None

    def since(self, state: State) -> list[int] | None:
        """The step since which each model has had its last status; None for methods without one."""
        return None

    def scale_of(self, state: State) -> Tensor | None:
        """The factors ``[K, m]`` by which this method multiplies the losses before it weighs them; None for none."""
        return None

    @property
    def minds_units(self) -> bool:
        """Whether losses of different units would distort the weights of this method."""
        return True

    def with_first_losses(self, rows: Sequence[Sequence[float]]) -> Method:
        """This method with ``scale="auto"`` resolved, given the first losses ``[n, m]`` of some models."""
        return self

    def measured(self, state: State) -> dict[str, Tensor]:
        """The measurements of this method by name, as tensors that lead with K; empty for most methods."""
        return {}

    @property
    def ideal(self) -> tuple[float, ...] | None:
        """The point that is subtracted from the losses before this method weighs them; None for zero."""
        return None

    def snapshots(self, total: int) -> tuple[int, ...]:
        """The steps, of ``total`` planned ones, before which a snapshot of the models is kept."""
        return ()

    @property
    def ends_with_plan(self) -> bool:
        """Whether the last steps of the plan differ from others, so that a run cannot be extended."""
        return False

    @property
    def needs_reachable(self) -> bool:
        """Whether a number of preferences stands for directions that a probe finds, because others would misguide."""
        return False

    @property
    def probe_share(self) -> float | None:
        """The first part of a run after which :meth:`settle` is called, as a share of its steps; None for never.

        Such a method measures the models of a front before it settles what each is asked for. Like a coupled one, it
        cannot train a part of a front on its own; see :meth:`for_part`.
        """
        return None

    def probe_steps(self, total: int) -> int:
        """The number of steps before :meth:`settle`, of ``total`` planned ones; 0 if the total is unknown."""
        return math.ceil((self.probe_share or 0.0) * total)

    @property
    def needs_whole_front(self) -> bool:
        """Whether this method cannot train a part of a front on its own."""
        return self.coupled or self.probe_share is not None

    def settle(self, state: State, healthy: Tensor) -> State:
        """The state after the first part of a run, from that of all rows of one front; names and shapes stay.

        It is called between two steps, so that it may wait for the device.

        Args:
            state: of all K rows.
            healthy: ``[K]`` bool, the models that are not broken.
        """
        return state

    def directions_of(self, state: State) -> Tensor | None:
        """The directions ``[K, m]`` that this method chose itself; NaN or None for rows that stay as given."""
        return None

    def decisions(self, state: State) -> tuple[str, ...]:
        """The choices that this method made during the run for the rows of one front, in words."""
        return ()

    def for_refining(
        self,
        reading: str,
        measured: Mapping[str, Tensor],
        scale: Tensor | None,
        row: int,
        importances: Tensor | None = None,
    ) -> Method:
        """The method that trains further preferences around a model, by the rows that the front has in the end.

        Args:
            reading: the meaning of those rows.
            measured: of the front, by name, ``[K, ...]``.
            scale: the factors of the front's losses, ``[K, m]``; None for none.
            row: the model.
            importances: those of all rows of the new run, ``[n, m]``, if they are known; else those of the model.
        """
        return self

    def for_part(self) -> Method:
        """The method that trains a part of a front where this one cannot, such as a shard on a cluster."""
        return self

    def bind(self, preferences: Tensor | Sequence[Sequence[float]], index: int, *, total: int = 0) -> Weigher:
        """Bind this method to one model of ``preferences [K, m]``, for your own training loop.

        Args:
            preferences: all K rows; regions need the others too.
            index: the row of the model.
            total: the number of planned optimizer steps; 0 if unknown.
        """
        return Weigher(self, as_rows("preferences", preferences), index, total)


def _count(state: State) -> int:
    return len(next(iter(state.values())))


def _against(valid: Tensor, like: Tensor) -> Tensor:
    return valid.reshape(-1, *[1] * (like.ndim - 1))


def uniform(count: int, tasks: int) -> Tensor:
    """Rows of equal shares, for methods to which they are only K starts."""
    count = check_count("count", count)
    tasks = check_tasks("tasks", tasks)
    return torch.full((count, tasks), 1.0 / tasks, dtype=torch.float64)
