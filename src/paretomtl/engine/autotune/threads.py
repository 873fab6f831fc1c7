"""Threads: whether models can step side by side on a CPU, and whether that pays."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import _get_current_function_mode_stack
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

from paretomtl._support.random_state import random_state
from paretomtl.engine.plan import Plan
from paretomtl.engine.runners.threads import ThreadPool, share_of
from paretomtl.engine.step import train_step
from paretomtl.methods import State, slice_state

_GAIN = 0.95  # side by side is taken where it needs less than this share of the time

_SHORT = 5e-3  # seconds; a model's step under this is mostly Python, of which one thread runs at a time

_TIMED = 3  # how many steps of each way are timed


@dataclass(frozen=True)
class ThreadTrial:
    """What is known of some models side by side.

    Attributes:
        count: how many at a time; 1 where they cannot.
        why: why they cannot.
        alone: seconds of a step of all models, one after another; not known where they cannot.
        seconds: the same, side by side.
    """

    count: int = 1
    why: str = ""
    alone: float = math.inf
    seconds: float = math.inf

    @property
    def pays(self) -> bool:
        """Whether it is faster than one after another."""
        return self.seconds < _GAIN * self.alone

    def beats(self, seconds: float) -> bool:
        """Whether it is faster than one after another, and than another way that needs so long."""
        return self.pays and self.seconds < _GAIN * seconds


def try_threads(
    plan: Plan, modules: Sequence[nn.Module], state: State, batch: Any, total: int, most: int | None, *, timed: bool
) -> ThreadTrial:
    """Whether models can step side by side, by one step of copies; and how long that takes.

    Args:
        plan: what they have in common.
        modules: the models; fresh, for hooks on them would be copied.
        state: what the method remembers of them.
        batch: to step on.
        total: steps planned.
        most: how many at a time; None for one per thread of torch.
        timed: whether to measure; short steps are then not tried.
    """
    count = min(len(modules), most or torch.get_num_threads())
    if count == 1:
        return ThreadTrial()
    why = _obstacle(plan, modules)
    if why:
        return ThreadTrial(why=why)
    workers = ThreadPool(count)
    part, factor = slice_state(state, slice(0, count)), len(modules) / count
    try:
        found = _trial(plan, workers, modules[:count], part, batch, total, timed)
        return replace(found, alone=factor * found.alone, seconds=factor * found.seconds)
    except Exception as error:  # what cannot be tried can still be trained one after another
        return ThreadTrial(why=f"{type(error).__name__} in a trial")
    finally:
        workers.close()


def _trial(
    plan: Plan, workers: ThreadPool, modules: Sequence[nn.Module], state: State, batch: Any, total: int, timed: bool
) -> ThreadTrial:
    """One wave of models, which are as many as there are workers."""
    alone, side = (plan.sequential([copy.deepcopy(m) for m in modules], state) for _ in range(2))
    threads, before = torch.get_num_threads(), random_state()
    try:
        torch.set_num_threads(share_of(threads, workers.count))
        began = time.perf_counter()
        expected = [train_step(group, batch, number=0, total=total) for group in alone]
        short = (time.perf_counter() - began) / len(alone) < _SHORT
    finally:
        torch.set_num_threads(threads)
    if timed and short:
        return ThreadTrial()
    if not _equal(before, random_state()):
        return ThreadTrial(why="their steps draw random numbers, which must come in order")
    found = workers.step(side, batch, number=0, total=total)
    if not _equal([vars(taken) for taken in expected], [vars(taken) for taken in found]) or not _equal(
        [group.models.tensors() for group in alone], [group.models.tensors() for group in side]
    ):
        return ThreadTrial(why="their steps side by side differ from those one after another")
    if not timed:
        return ThreadTrial(workers.count)
    one = ThreadPool()
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(_TIMED + 1):
        for way, groups, taken in ((one, alone, times[0]), (workers, side, times[1])):
            began = time.perf_counter()
            way.step(groups, batch, number=0, total=total)
            taken.append(time.perf_counter() - began)
    return ThreadTrial(workers.count, "", min(times[0][1:]), min(times[1][1:]))


def _obstacle(plan: Plan, modules: Sequence[nn.Module]) -> str:
    """Why models cannot step side by side, as far as that is known without a step."""
    storages: list[int] = []
    for module in modules:
        tensors = [tensor for tensor in (*module.parameters(), *module.buffers()) if tensor.numel()]
        if any(tensor.device.type != "cpu" for tensor in tensors):
            return "that is for a CPU"
        storages += {tensor.untyped_storage().data_ptr() for tensor in tensors}
    if plan.compiler is not None:
        return "compiled models are not made for several threads"
    functions = _get_current_function_mode_stack()  # type: ignore[no-untyped-call]
    if functions or _get_current_dispatch_mode_stack() or torch.is_autocast_enabled("cpu"):
        return "a mode of torch is on, which holds for one thread"
    if len(set(storages)) < len(storages):
        return "the models share tensors"
    return ""


def _equal(one: Any, other: Any) -> bool:
    """Whether two structures hold the same, bit by bit; NaN equals NaN."""
    if isinstance(one, Tensor):
        return one.shape == other.shape and bool(((one == other) | ((one != one) & (other != other))).all())
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_equal(value, other[name]) for name, value in one.items())
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(_equal(a, b) for a, b in zip(one, other, strict=True))
    return bool(one == other)
