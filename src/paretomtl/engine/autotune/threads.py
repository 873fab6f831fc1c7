"""Threads: whether models can step side by side on a CPU, and whether that pays.

These are threads rather than processes. Torch releases the interpreter lock while it computes, so processes are hardly
faster, and threads share data, models and checkpoints. A trial on copies comes first. Steps must draw no random
numbers, and must match those of one model after another bit by bit, with the same number of torch threads. All models
of a wave get the same share of the threads, so that runs are repeatable.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import _get_current_function_mode_stack
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

from paretomtl._support.random_state import random_state
from paretomtl.engine.autotune.trial import Trial
from paretomtl.engine.model_group import Group
from paretomtl.engine.runners.threads import ThreadPool, share_of
from paretomtl.engine.step import Run, StepInput, run_in_order, train_step
from paretomtl.engine.strategy import Plan
from paretomtl.methods import State, slice_state

_GAIN = 0.95  # threads are used if they need less than this share of the time
_SHORT = 5e-3  # seconds; a shorter step is mostly Python, which runs in one thread at a time
_TIMED = 3  # how many steps of each way are timed


def threads_pay(trial: Trial, stack_seconds: float) -> bool:
    """Whether models side by side are faster than one after another, and than a stack, by more than noise."""
    return trial.seconds < _GAIN * min(trial.baseline, stack_seconds)


def try_threads(
    plan: Plan, modules: Sequence[nn.Module], state: State, batch: Any, total: int, most: int | None, *, timed: bool
) -> Trial:
    """Try one step of copies side by side, and time it.

    Args:
        plan: what they have in common.
        modules: the models, fresh: hooks on them would be copied.
        state: of the method, for these models.
        batch: to step on.
        total: how many steps are planned.
        most: how many at a time; None for one per thread of torch.
        timed: whether to measure; short steps are then not tried.
    """
    count = min(len(modules), most or torch.get_num_threads())
    if count == 1:
        return Trial()
    why = _find_obstacle(plan, modules)
    if why is not None:
        return Trial(why)
    pool = ThreadPool(count)
    some = plan.rows_of_trial(count, len(modules))
    part, factor = slice_state(state, slice(0, some)), len(modules) / some
    try:
        trial = _try_steps(plan, pool, modules[:some], part, StepInput(batch, 0, total), timed)
        return replace(trial, baseline=factor * trial.baseline, seconds=factor * trial.seconds)
    except Exception as error:  # such models can still be trained one after another
        return Trial(f"{type(error).__name__} in a trial")
    finally:
        pool.close()


def _try_steps(
    plan: Plan, pool: ThreadPool, modules: Sequence[nn.Module], state: State, given: StepInput, timed: bool
) -> Trial:
    """A trial of some models: as many as the pool has threads, or all where they are weighed together."""
    alone, side = (plan.sequential([copy.deepcopy(m) for m in modules], state) for _ in range(2))
    threads, before = torch.get_num_threads(), random_state()
    try:
        torch.set_num_threads(share_of(threads, pool.count))
        began = time.perf_counter()
        expected = train_step(alone, given)
        short = (time.perf_counter() - began) / len(alone) < _SHORT
    finally:
        torch.set_num_threads(threads)
    if timed and short:
        return Trial()
    if not _equal(before, random_state()):
        return Trial("their steps draw random numbers, which must come in order")
    records = train_step(side, given, pool.map)
    if not _equal([vars(record) for record in expected], [vars(record) for record in records]) or not _equal(
        [group.models.tensors() for group in alone], [group.models.tensors() for group in side]
    ):
        return Trial("their steps side by side differ from those one after another")
    if not timed:
        return Trial(workers=pool.count)
    ways: tuple[tuple[Run, list[Group]], ...] = ((run_in_order, alone), (pool.map, side))
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(_TIMED + 1):
        for (run, groups), seconds in zip(ways, times, strict=True):
            began = time.perf_counter()
            train_step(groups, given, run)
            seconds.append(time.perf_counter() - began)
    return Trial(seconds=min(times[1][1:]), baseline=min(times[0][1:]), workers=pool.count)


def _find_obstacle(plan: Plan, modules: Sequence[nn.Module]) -> str | None:
    """Why models cannot step side by side, as far as that is known without a step."""
    for module in modules:
        tensors = [tensor for tensor in (*module.parameters(), *module.buffers()) if tensor.numel()]
        if any(tensor.device.type != "cpu" for tensor in tensors):
            return "that is for a CPU"
    if plan.compiler is not None:
        return "compiled models are not made for several threads"
    functions = _get_current_function_mode_stack()  # type: ignore[no-untyped-call]
    if functions or _get_current_dispatch_mode_stack() or torch.is_autocast_enabled("cpu"):
        return "a mode of torch is on, which holds for one thread"
    return None


def _equal(one: Any, other: Any) -> bool:
    """Whether two structures hold the same, bit by bit; NaN equals NaN."""
    if isinstance(one, Tensor):
        return one.shape == other.shape and bool(((one == other) | ((one != one) & (other != other))).all())
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_equal(value, other[name]) for name, value in one.items())
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(_equal(a, b) for a, b in zip(one, other, strict=True))
    return bool(one == other)
