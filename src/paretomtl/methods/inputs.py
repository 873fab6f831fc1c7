"""The step of a method: losses and Gramian of one training step, and the state between steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from torch import Tensor

State: TypeAlias = dict[str, Tensor]
"""The state of a method between steps. The first dimension of every tensor is K: states can be sliced and stored."""


@dataclass(frozen=True)
class Step:
    """One training step of K models, as a method sees it.

    Attributes:
        losses: ``L [K, m]``.
        gramian: ``C [K, m, m]`` of the task gradients; None for methods that do not need it.
        present: ``[K, m]`` bool, the tasks that had labels in this batch; None if all had.
        number: the number of steps before this one; an int, or a scalar tensor in a captured graph.
        total: the number of steps planned when training began; 0 if unknown. A run that is extended exceeds it.
    """

    losses: Tensor
    gramian: Tensor | None = None
    present: Tensor | None = None
    number: int | Tensor = 0
    total: int = 0


@dataclass(frozen=True)
class SafeStep:
    """A :class:`Step` made safe, in float64: absent tasks have loss 0 and gradient 0, broken models losses of 1.

    The Gramian is zero for methods that do not need one; ``precision`` is the relative error that it came with.
    ``valid [K]`` says which models are not broken: a coupled method must leave the others out.
    """

    losses: Tensor
    gramian: Tensor
    present: Tensor
    number: int | Tensor
    total: int
    precision: float
    valid: Tensor


def slice_state(state: State, rows: slice | Tensor | list[int]) -> State:
    """The part of a state that belongs to some models."""
    return {name: tensor[rows] for name, tensor in state.items()}
