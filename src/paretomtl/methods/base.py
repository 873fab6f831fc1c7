from __future__ import annotations

import dataclasses
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor

from paretomtl._support.checks import (
    as_rows,
    as_whole,
    check_count,
    check_floating,
    check_not_negative,
    check_tasks,
    check_trailing,
    known_finite,
    may_ask,
)
from paretomtl._support.cuda import may_launch
from paretomtl.core import preferences as vectors
from paretomtl.methods._weigher_state import check_saved, to_letters

State: TypeAlias = dict[str, Tensor]
"""What a method remembers between steps. Every tensor leads with K, so that a state can be sliced, stored and sent."""

Reading: TypeAlias = Literal["direction", "importance", "start"]
"""What the K rows mean: directions of the loss vector, importances of the tasks, or nothing but K starts."""


@dataclass(frozen=True)
class Step:
    """What a method sees of one training step of K models.

    Attributes:
        losses: ``L [K, m]``.
        gramian: ``C [K, m, m]`` of the task gradients; None for methods that do not need it.
        present: ``[K, m]`` bool, the tasks that had labels in this batch; None when all had.
        number: how many steps came before this one; an int, or a tensor without dimensions in a captured graph.
        total: how many steps were planned when training began; 0 when that is not known. A run that is trained longer
            passes it.
    """

    losses: Tensor
    gramian: Tensor | None = None
    present: Tensor | None = None
    number: int | Tensor = 0
    total: int = 0


@dataclass(frozen=True)
class SafeStep:
    """A :class:`Step` made safe, in float64: absent tasks have loss 0 and gradient 0, broken subproblems losses of 1.

    The Gramian is zero for methods that do not need one; ``precision`` is the relative error that it came with.
    """

    losses: Tensor
    gramian: Tensor
    present: Tensor
    number: int | Tensor
    total: int
    precision: float


class Method(ABC):
    """A rule that turns losses and Gramian into task weights (paper, section 4.3). Immutable: state in, state out.

    A method implements :meth:`init` and ``_weigh``; everything else is common. Computations are in float64. A
    subproblem whose losses or Gramian are not finite gets zero weights and keeps its state, and never touches another
    one.
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """What the command line and stored results call it."""

    @property
    @abstractmethod
    def needs_gramian(self) -> bool:
        """Whether :class:`Step` must carry a Gramian: m backward passes a step instead of one."""

    @property
    @abstractmethod
    def reading(self) -> Reading:
        """What the K rows of ``preferences`` mean to this method."""

    @abstractmethod
    def spread(self, count: int, tasks: int, *, seed: int = 0) -> Tensor:
        """The rows ``[K, m]`` that a bare number of preferences stands for."""

    def usual_count(self, tasks: int) -> int:
        """How many rows to train where the user does not say: what covers a front (docs/how-many.md), or 5 starts."""
        return 5 if self.reading == "start" else vectors.usual_count(tasks)

    @abstractmethod
    def init(self, preferences: Tensor) -> State:
        """The state before the first step, from rows ``[K, m]``."""

    @abstractmethod
    def _weigh(self, step: SafeStep, state: State) -> tuple[Tensor, State]:
        """Weights ``[K, m]`` and the next state."""

    def _weigh_in_units(self, step: SafeStep, state: State) -> tuple[Tensor, State]:
        """The same for losses as they come; a method that scales them overrides it."""
        return self._weigh(step, state)

    def _weigh_by_kernel(self, step: Step, state: State) -> tuple[Tensor, State] | None:
        """What :meth:`weigh` returns, by a kernel for a CUDA device; None where there is none for this."""
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
            found = self._weigh_by_kernel(step, state)
            if found is not None:
                return found
        precision = torch.finfo((step.losses if step.gramian is None else step.gramian).dtype).eps
        present = torch.ones_like(step.losses, dtype=torch.bool) if step.present is None else step.present
        present = present.expand(step.losses.shape)
        given = [step.losses] if step.gramian is None else [step.losses, step.gramian]
        if may_ask(present) and bool(present.all()) and known_finite(*given):  # nothing needs to be made safe
            gramian = step.losses.new_zeros(()) if step.gramian is None else step.gramian.detach()
            gramian = gramian.double().expand(*step.losses.shape, tasks)
            sound = SafeStep(step.losses.detach().double(), gramian, present, step.number, step.total, precision)
            weights, after = self._weigh_in_units(sound, state)
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
        seen = SafeStep(losses, gramian, present, step.number, step.total, precision)
        weights, after = self._weigh_in_units(seen, state)
        after = {name: torch.where(_against(valid, new), new, state[name]) for name, new in after.items()}
        return torch.where(valid & present, weights, 0.0).to(step.losses.dtype), after

    def status(self, state: State, losses: Tensor | None = None) -> list[str]:
        """One word per subproblem on how it stands, by its last step, or by ``losses [K, m]`` measured since."""
        return ["trained"] * _count(state)

    def violation(self, state: State, losses: Tensor) -> Tensor | None:
        """How far measured losses ``[K, m]`` are outside of their regions, ``[K]``, at most 0 inside; None without."""
        return None

    def since(self, state: State) -> list[int] | None:
        """The step since which each subproblem has had the status of its last step; None for methods without one."""
        return None

    def scale_of(self, state: State) -> Tensor | None:
        """The factors ``[K, m]`` that this method multiplies the losses by before it decides; None for none."""
        return None

    @property
    def minds_units(self) -> bool:
        """Whether losses of different units would decide for this method what it should decide itself."""
        return True

    def with_first_losses(self, rows: Sequence[Sequence[float]]) -> Method:
        """This method with ``scale="auto"`` settled, given the first losses ``[n, m]`` of some models."""
        return self

    def measured(self, state: State) -> dict[str, Tensor]:
        """What this method measured on the way, by name, tensors that lead with K; nothing for most."""
        return {}

    @property
    def ideal(self) -> tuple[float, ...] | None:
        """The point that losses are counted from before this method decides; None for zero."""
        return None

    def snapshots(self, total: int) -> tuple[int, ...]:
        """The steps of a plan of ``total`` before which the models are worth keeping besides the final ones."""
        return ()

    @property
    def ends_with_plan(self) -> bool:
        """Whether the last steps of the plan differ from others, so that a run cannot be trained longer than it."""
        return False

    def bind(self, preferences: Tensor | Sequence[Sequence[float]], index: int, *, total: int = 0) -> Weigher:
        """This method for one subproblem of ``preferences [K, m]``, for a training loop of one's own.

        Args:
            preferences: all K rows; regions need the others too.
            index: which of them.
            total: how many optimizer steps are planned; 0 when that is not known.
        """
        return Weigher(self, as_rows("preferences", preferences), index, total)


def describe(method: Method) -> str:
    """A configured method with the options that are on, so that an option that is new, and off, changes nothing.

    Example:
        >>> from paretomtl.methods import ParetoMTL
        >>> describe(ParetoMTL(initial_steps=0))
        'ParetoMTL(initial_steps=0, epsilon=0.1, release_steps=0)'
    """
    if not dataclasses.is_dataclass(method):
        return without_addresses(repr(method))
    fields = {field.name: getattr(method, field.name) for field in dataclasses.fields(method)}
    said = [f"{name}={value!r}" for name, value in fields.items() if value is not None and value is not False]
    return without_addresses(f"{type(method).__name__}({', '.join(said)})")


def without_addresses(text: str) -> str:
    """A text that does not change from one process to the next: Python shows many objects with their addresses."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", text)


class Weigher:
    """A method bound to one subproblem, which remembers the state and counts the steps.

    Made by :meth:`paretomtl.methods.Method.bind`.
    """

    def __init__(self, method: Method, preferences: Tensor, index: int, total: int = 0) -> None:
        check_not_negative("total", total)
        self.preferences = as_rows("preferences", preferences)
        if self.preferences.ndim != 2:
            raise ValueError(f"'preferences' must have shape [K, m]. Got {list(self.preferences.shape)} instead.")
        index = as_whole(index)
        if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < len(self.preferences):
            raise IndexError(
                f"'index' must be a row of the {len(self.preferences)} preferences. Got {index!r} instead."
            )
        self.method = method
        self.index = index
        self.tasks = self.preferences.shape[-1]
        self.total = total
        self.number = torch.zeros((), dtype=torch.long)
        self.state = slice_state(method.init(self.preferences), slice(index, index + 1))
        self.pending: Any = None
        """What :func:`paretomtl.backward` has added up since the last whole step; None drops it. Not stored."""

    @property
    def status(self) -> str:
        """One word on how the subproblem stood at its last step, such as "feasible"."""
        return self.method.status(self.state)[0]

    @property
    def since(self) -> int | None:
        """The step since which it has stood so."""
        steps = self.method.since(self.state)
        return None if steps is None else steps[0]

    def __repr__(self) -> str:
        return f"Weigher({self.method!r}, index={self.index}, step {int(self.number)}, {self.status})"

    def peek(self, losses: Tensor, gramian: Tensor | None, present: Tensor | None = None) -> tuple[Tensor, State]:
        """Weights ``[m]`` from losses ``[m]`` and Gramian ``[m, m]``, and the state after that step."""
        self.state = {name: tensor.to(losses.device) for name, tensor in self.state.items()}
        self.number = self.number.to(losses.device)
        step = Step(
            losses[None],
            None if gramian is None else gramian[None],
            None if present is None else present[None],
            self.number,
            self.total,
        )
        weights, state = self.method.weigh(step, self.state)
        return weights[0], state

    def advance(self, state: State, usable: Tensor) -> None:
        """Go on to the state that :meth:`peek` returned, where ``usable`` (bool, without dimensions) says so."""
        self.state = {name: torch.where(usable, state[name], tensor) for name, tensor in self.state.items()}
        self.number = self.number + usable.long()

    def state_dict(self) -> State:
        """All that a later run needs to go on from here, as tensors; the method is in it as text, in bytes."""
        bound = {
            "method": to_letters(describe(self.method)),
            "preferences": self.preferences,
            "index": torch.tensor(self.index),
            "number": self.number,
        }
        return {name: tensor.clone() for name, tensor in (bound | self.state).items()}

    def load_state_dict(self, saved: State) -> None:
        """Go on from what :meth:`state_dict` returned for the same method, options, preferences and index.

        Anything else is refused, with the first difference. What :func:`paretomtl.backward` has added up is dropped.
        """
        check_saved(saved, self.state_dict())
        self.state = {name: saved[name].clone() for name in self.state}
        self.number = saved["number"].clone()
        self.pending = None


def slice_state(state: State, rows: slice | Tensor | list[int]) -> State:
    """The part of a state that belongs to some subproblems."""
    return {name: tensor[rows] for name, tensor in state.items()}


def _count(state: State) -> int:
    return len(next(iter(state.values())))


def _against(valid: Tensor, like: Tensor) -> Tensor:
    return valid.reshape(-1, *[1] * (like.ndim - 1))


def uniform(count: int, tasks: int) -> Tensor:
    """Rows for methods to which they are K starts and nothing else: equal shares."""
    check_count("count", count)
    check_tasks("tasks", tasks)
    return torch.full((count, tasks), 1.0 / tasks, dtype=torch.float64)
