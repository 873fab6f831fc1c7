"""Random states: isolated from the caller's, and stored so that a resumed run draws the same numbers."""

from __future__ import annotations

import functools
import os
import random
import threading
import types
import warnings
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
import torch

_GOLDEN = 0x9E3779B97F4A7C15  # 2**64 over the golden ratio: its multiples stay far from each other
_ORDERS = 1 << 60  # seeds of data orders, far from those of models


_GENERATORS = (torch.Generator, np.random.Generator, np.random.RandomState, random.Random)
_GLOBAL = (torch.default_generator, np.random.mtrand._rand, random.random.__self__)  # type: ignore[attr-defined]
_WITHOUT = (
    str,
    bytes,
    int,
    float,
    complex,
    type(None),
    types.ModuleType,
    torch.Tensor,
    np.ndarray,
    random.SystemRandom,
)
_LIBRARIES = ("torch", "numpy", "builtins", "paretomtl")  # whose classes have no generators of the user
_MEMBERS: dict[Any, tuple[str, ...]] = {
    types.MethodType: ("__self__", "__func__"),
    types.FunctionType: ("__defaults__", "__kwdefaults__"),
    functools.partial: ("func", "args", "keywords"),
    (staticmethod, classmethod): ("__func__",),
    property: ("fget",),
}
_DEEPEST, _LONGEST, _MOST = 8, 1_000, 10_000  # how far generators are looked for

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


def own_states(source: Any) -> dict[str, Any]:
    """The states of the generators that user code below an object holds, by path, as tensors and numbers."""
    return {path: _state_of(generator) for path, generator in _generators_in(source).items()}


def set_own_states(source: Any, states: Mapping[str, Any]) -> None:
    """Restore what :func:`own_states` returned; a KeyError names a generator that is gone."""
    found = _generators_in(source) if states else {}
    for path, state in states.items():
        generator = found[path]
        if isinstance(generator, np.random.Generator):
            generator.bit_generator.state = state
        elif isinstance(generator, random.Random):
            generator.setstate(state)
        else:
            generator.set_state(state)


@contextmanager
def own_states_kept(source: Any) -> Iterator[None]:
    """Restore the generators in user code at the end of the block."""
    states = own_states(source)
    try:
        yield
    finally:
        set_own_states(source, states)


def _state_of(generator: Any) -> Any:
    if isinstance(generator, np.random.Generator):
        return generator.bit_generator.state
    if isinstance(generator, np.random.RandomState):
        return generator.get_state(legacy=False)
    return generator.getstate() if isinstance(generator, random.Random) else generator.get_state()


def _generators_in(source: Any) -> dict[str, Any]:
    """Generators by path, nearest first: in attributes, containers, closures, and globals that functions read."""
    found: dict[str, Any] = {}
    seen = {id(generator): generator for generator in _GLOBAL}
    rest = deque([("", source, 0)])
    while rest and len(seen) < _MOST:
        path, value, depth = rest.popleft()
        if id(value) in seen or isinstance(value, _WITHOUT):
            continue
        seen[id(value)] = value  # the reference keeps the id from being used again
        if isinstance(value, _GENERATORS):
            found[path] = value
        elif depth < _DEEPEST:
            rest.extend((f"{path}.{name}", part, depth + 1) for name, part in _parts_of(value))
    return found


def _parts_of(value: Any) -> Iterator[tuple[Any, Any]]:
    """What an object refers to, by name; not what libraries are made of, and not many samples."""
    kind = value if isinstance(value, type) else type(value)
    if kind.__module__.partition(".")[0] in _LIBRARIES and isinstance(value, type):
        return
    if isinstance(value, (list, tuple, dict)) and len(value) <= _LONGEST:
        yield from dict.items(value) if isinstance(value, dict) else enumerate(value)
    if isinstance(value, types.FunctionType):
        code = value.__code__
        for name, cell in zip(code.co_freevars, value.__closure__ or (), strict=True):
            with suppress(ValueError):  # an empty cell
                yield name, cell.cell_contents
        yield from ((name, value.__globals__[name]) for name in code.co_names if name in value.__globals__)
    slots = [name for base in kind.__mro__ for name in getattr(base, "__slots__", ())] if kind is not value else []
    for name in (*slots, *next((names for each, names in _MEMBERS.items() if isinstance(value, each)), ())):
        with suppress(AttributeError):  # a slot that was never set
            yield name, getattr(value, name)
    # A loader makes its iterator anew in each epoch.
    yield from ((name, part) for name, part in getattr(value, "__dict__", {}).items() if name != "_iterator")
    yield from (("class", base) for base in (kind.__bases__ if kind is value else (kind,)))
