"""Random states: isolated from the caller's, and stored so that a resumed run draws the same numbers."""

from __future__ import annotations

import os
import random
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

_GOLDEN = 0x9E3779B97F4A7C15  # 2**64 over the golden ratio: its multiples stay far from each other
_ORDERS = 1 << 60  # seeds of data orders, far from those of models


_turn = threading.RLock()
"""Held while randomness is isolated: threads share the global random states, so they take turns."""


def _renew_turn() -> None:
    """Renew the lock in a child process: it has none of the threads that might hold it."""
    global _turn
    _turn = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_turn)


@contextmanager
def isolated_randomness(seed: int | None = None) -> Iterator[None]:
    """Restore the global random states of torch, NumPy and Python at the end of the block; seed them at its start.

    Threads take turns. A thread that has to wait raises a warning, since it may wait as long as a training run.
    """
    turn = _turn
    if not turn.acquire(blocking=False):
        warnings.warn(
            "another thread of this process trains or makes models, so this one waits: both would draw from the same "
            "random state. Use processes to train in parallel.",
            stacklevel=3,
        )
        turn.acquire()
    try:
        python, legacy = random.getstate(), np.random.get_state()
        try:
            with torch.random.fork_rng(devices=list(range(torch.cuda.device_count()))):
                if seed is not None:
                    seed_everything(seed)
                yield
        finally:
            random.setstate(python)
            np.random.set_state(legacy)
    finally:
        turn.release()


def seed_everything(seed: int) -> None:
    """Seed torch, NumPy's global generator and Python's."""
    if torch.accelerator.is_available():
        torch.manual_seed(seed)
    else:  # manual_seed would format the call stack for each accelerator, which takes longer than a step
        torch.default_generator.manual_seed(seed)
    np.random.seed([seed % 2**32, seed // 2**32])
    random.seed(seed)


def host_random_state() -> tuple[bytes, ...]:
    """The states of the host generators of torch, NumPy and Python, for comparison."""
    _, keys, position, *_ = np.random.get_state(legacy=True)
    numbers = np.asarray(keys).tobytes() + str(position).encode()
    return torch.get_rng_state().numpy().tobytes(), numbers, repr(random.getstate()).encode()


def model_seed(seed: int, k: int) -> int:
    """The seed from which model k of a run's seed is made."""
    return seed * 2**20 + k


def rank_seed(seed: int, rank: int) -> int:
    """The seed from which one of several processes of a run draws dropout; the run's own for the first."""
    return (seed + rank * _GOLDEN) % 2**63


def order_seed(seed: int, epoch: int) -> int:
    """The seed from which the order of the samples in an epoch is drawn."""
    return _ORDERS + seed * 2**20 + epoch


def random_state() -> dict[str, Any]:
    """The global random states as tensors and numbers."""
    name, keys, position, has_gauss, cached = np.random.get_state(legacy=True)
    version, words, gauss = random.getstate()
    return {
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
        "numpy": [
            name,
            torch.from_numpy(np.asarray(keys, dtype=np.int64)),
            int(position),
            int(has_gauss),
            float(cached),
        ],
        "python": [version, torch.tensor(words), gauss],
    }


def set_random_state(state: dict[str, Any]) -> None:
    """Restore what :func:`random_state` returned."""
    torch.set_rng_state(state["torch"])
    for device, stored in enumerate(state["cuda"][: torch.cuda.device_count()]):
        torch.cuda.set_rng_state(stored, device)
    name, keys, position, has_gauss, cached = state["numpy"]
    np.random.set_state((name, keys.numpy().astype(np.uint32), position, has_gauss, cached))
    version, words, gauss = state["python"]
    random.setstate((version, tuple(words.tolist()), gauss))
