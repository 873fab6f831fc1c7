"""Rollback of a failed forward pass of stacks, so that the same work can be retried in another way."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from paretomtl._support.random_state import host_random_state, random_state, set_random_state
from paretomtl.engine.model_group import Group
from paretomtl.engine.models.stack import Stack


@contextlib.contextmanager
def rollback_on_failure(groups: Sequence[Group], *, isolated: bool = False) -> Iterator[None]:
    """Undo the changes of a pass that an error ends: buffers of stacks, the state of the method, random states.

    If randomness is ``isolated`` from that of training, the caller restores the random states.

    A failed stack holds its error (:attr:`Group.failed`). Single models are not guarded: their errors are errors of
    the user's code.
    """
    stacks = [group for group in groups if isinstance(group.models, Stack)]
    if not stacks or _is_capturing(stacks[0].active):
        yield
        return
    before = [([tensor.clone() for tensor in group.models.live_buffers()], group.state) for group in stacks]
    draws = None if isolated else _RandomStates(stacks[0])
    try:
        yield
    except Exception as error:
        if draws is not None:
            draws.undo()
        for group, (buffers, state) in zip(stacks, before, strict=True):
            with torch.no_grad():
                for now, then in zip(group.models.live_buffers(), buffers, strict=True):
                    now.copy_(then)
            group.state = state
            group.failed = error
        raise
    if draws is not None:
        draws.learn()


class _RandomStates:
    """The random states before a pass.

    Reading those of NumPy and Python takes too long for a small step. They are read before every pass of models that
    draw from them, and before the first pass of all models, which shows whether they do.
    """

    def __init__(self, group: Group) -> None:
        self._group = group
        device = group.active.device
        self._host = torch.get_rng_state()
        self._device = (device, torch.cuda.get_rng_state(device)) if device.type == "cuda" else None
        self._others: Any = None
        self._seen: Any = None
        if group.draws_on_host is not False:
            self._others = random_state()
        if group.draws_on_host is None:
            self._seen = host_random_state()[1:]

    def learn(self) -> None:
        """Note, after a successful pass, whether it drew on the host."""
        if self._seen is not None:
            self._group.draws_on_host = host_random_state()[1:] != self._seen

    def undo(self) -> None:
        """Restore the random states after a failed pass."""
        if self._others is not None:
            set_random_state(self._others)
            return
        torch.set_rng_state(self._host)
        if self._device is not None:
            torch.cuda.set_rng_state(self._device[1], self._device[0])


def _is_capturing(tensor: Tensor) -> bool:
    """Whether operations are captured in a graph rather than run: there is nothing to undo, and no state to read."""
    return tensor.device.type == "cuda" and torch.cuda.is_current_stream_capturing()
