"""The weigher: a method for one model, for your own training loop, with a state that can be stored."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, Protocol

import torch
from torch import Tensor

from paretomtl._support.argument_checks import as_rows, as_whole, check_not_negative, quote
from paretomtl.methods.description import describe
from paretomtl.methods.inputs import State, Step, slice_state

_BOUND = ("method", "preferences", "index")


class BoundMethod(Protocol):
    """The part of :class:`paretomtl.methods.Method` that a weigher calls."""

    @property
    def name(self) -> str: ...
    @property
    def needs_gramian(self) -> bool: ...
    @property
    def needs_whole_front(self) -> bool: ...
    def init(self, preferences: Tensor) -> State: ...
    def weigh(self, step: Step, state: State) -> tuple[Tensor, State]: ...
    def status(self, state: State) -> list[str]: ...
    def since(self, state: State) -> list[int] | None: ...


class Weigher:
    """A method bound to one model. It holds the state and counts the steps.

    Made by :meth:`paretomtl.methods.Method.bind`.
    """

    def __init__(self, method: BoundMethod, preferences: Tensor, index: int, total: int = 0) -> None:
        if method.needs_whole_front:
            raise ValueError(
                f"'method' must weigh each row on its own to be bound to one. Got '{method.name}' instead, which "
                "needs all rows of a front together: train it by fit."
            )
        total = check_not_negative("total", total)
        self.preferences = as_rows("preferences", preferences)
        if self.preferences.ndim != 2:
            raise ValueError(f"'preferences' must have shape [K, m]. Got {list(self.preferences.shape)} instead.")
        index = as_whole(index)
        if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < len(self.preferences):
            raise IndexError(
                f"'index' must be a row of the {len(self.preferences)} preferences. Got {quote(index)} instead."
            )
        self.method = method
        self.index = index
        self.tasks = self.preferences.shape[-1]
        self.total = total
        self.number = torch.zeros((), dtype=torch.long)
        self.state = slice_state(method.init(self.preferences), slice(index, index + 1))
        self.pending: Any = None
        """The sums of :func:`paretomtl.backward` since the last complete step; None drops them. Not stored."""

    @property
    def status(self) -> str:
        """The status of the model at its last step in one word, such as "feasible"."""
        return self.method.status(self.state)[0]

    @property
    def since(self) -> int | None:
        """The step since which it has had this status; None for methods without one."""
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
        """Advance to the state that :meth:`peek` returned, if ``usable`` (a scalar bool tensor) is true."""
        self.state = {name: torch.where(usable, state[name], tensor) for name, tensor in self.state.items()}
        self.number = self.number + usable.long()

    def state_dict(self) -> State:
        """Return all that is needed to resume from here, as tensors; the method is its description in bytes."""
        bound = {
            "method": _to_bytes(describe(self.method)),
            "preferences": self.preferences,
            "index": torch.tensor(self.index),
            "number": self.number,
        }
        return {name: tensor.clone() for name, tensor in (bound | self.state).items()}

    def load_state_dict(self, saved: State) -> None:
        """Resume from what :meth:`state_dict` returned for the same method, options, preferences and index.

        Anything else is refused; the error names the first difference. Drops the sums of :func:`paretomtl.backward`.
        """
        _check_saved(saved, self.state_dict())
        self.state = {name: saved[name].clone() for name in self.state}
        self.number = saved["number"].clone()
        self.pending = None


def _to_bytes(text: str) -> Tensor:
    """Encode a text as a tensor of bytes, so that a state has only tensors."""
    return torch.tensor(list(text.encode()), dtype=torch.uint8)


def _check_saved(saved: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> None:
    """Refuse a state of another configuration; the error names the first difference.

    Args:
        saved: the state to load.
        expected: the state that this weigher would save.
    """
    if not isinstance(saved, Mapping) or not all(isinstance(each, Tensor) for each in saved.values()):
        raise TypeError(f"'saved' must be what state_dict() returned: tensors by name. Got {type(saved).__name__}.")
    if "method" in saved:
        own, other = (_text(each["method"]) for each in (expected, saved))
        if own != other:
            raise ValueError(f"'saved' must be of the same method: {own}. Got {other} instead.")
    for name in ("preferences", "index"):
        _check_same(name, saved, expected)
    for name in expected:
        if name not in saved and name != "method":
            raise ValueError(f"'saved' must have {name!r}, as this weigher's state has. Got {sorted(saved)} instead.")
    for name in saved:
        if name not in expected:
            raise ValueError(f"'saved' must have only {sorted(expected)}. Got {quote(name)} too.")
    for name, tensor in expected.items():
        if name in _BOUND:
            continue
        own, other = (f"{list(each.shape)} of {each.dtype}" for each in (tensor, saved[name]))
        if own != other:
            raise ValueError(f"'saved' must have {name!r} of shape {own}. Got {other} instead.")
    if "method" not in saved:
        warnings.warn(
            "this state does not name its method, because an earlier version saved it. Its tensors fit, so it is taken "
            f"for one of {_text(expected['method'])}.",
            stacklevel=3,
        )


def _check_same(name: str, saved: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> None:
    if name not in saved:
        raise ValueError(f"'saved' must have {name!r}, as state_dict() returns it. Got {sorted(saved)} instead.")
    own, other = expected[name], saved[name].cpu()
    if own.shape != other.shape:
        shapes = f"{list(own.shape)}. Got {list(other.shape)}"
        raise ValueError(f"'saved' must have {name!r} of shape {shapes} instead.")
    if not torch.equal(own, other):
        if own.ndim:
            row = int((own != other).any(-1).nonzero()[0])
            raise ValueError(
                f"'saved' must be of the same {name}: {own[row].tolist()} in row {row}. Got {other[row].tolist()}."
            )
        raise ValueError(f"'saved' must be of the same {name}: {own.tolist()}. Got {quote(other.tolist())} instead.")


def _text(encoded: Tensor) -> str:
    return bytes(encoded.flatten().to(torch.uint8).tolist()).decode(errors="replace")
