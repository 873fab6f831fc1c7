"""The step of a method: losses and Gramian of one training step, and the state between steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from torch import Tensor

State: TypeAlias = dict[str, Tensor]
"""The state of a method between steps. Every tensor leads with K, so that a state can be sliced, stored and sent."""


@dataclass(frozen=True)
class Step:
    """One training step of K models, as a method sees it.

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
    ``valid [K]`` says which subproblems are not broken: a coupled method must leave the others out.
    """

    losses: Tensor
    gramian: Tensor
    present: Tensor
    number: int | Tensor
    total: int
    precision: float
    valid: Tensor


def slice_state(state: State, rows: slice | Tensor | list[int]) -> State:
    """The part of a state that belongs to some subproblems."""
    return {name: tensor[rows] for name, tensor in state.items()}
