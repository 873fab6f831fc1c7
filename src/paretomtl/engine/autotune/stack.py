"""Stack: whether models can be trained as one, how many at a time, and how long a step takes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from paretomtl.engine.autotune.memory import try_memory
from paretomtl.engine.autotune.stack_matches import COMPARED, find_difference
from paretomtl.engine.autotune.trial import Trial, describe_error
from paretomtl.engine.device import free_memory
from paretomtl.engine.model_group import Group
from paretomtl.engine.models.module_checks import has_hooks
from paretomtl.engine.models.modules import copy_modules, own_tensors
from paretomtl.engine.step import StepInput, train_step
from paretomtl.engine.strategy import Plan
from paretomtl.methods import State, slice_state

_TIMED = 3  # how many steps are timed
_SIZES = (
    12  # of a model, in a trial: copies, the stack, its optimizer, values in float64; gradients are two for each task
)


def try_stack(plan: Plan, modules: Sequence[nn.Module], state: State, batch: Any, total: int, *, on_cpu: bool) -> Trial:
    """Whether models can be stacked, and how many of them fit into one stack; a note says why not all do."""

    def stacks_of(count: int) -> list[Group]:
        some = plan.rows_of_trial(count, len(modules))
        return plan.batched(copy_modules(modules[:some]), _first(state, some), count)

    if any(has_hooks(module) for module in modules):
        return Trial("gradients go through hooks, which a stack would not run")
    device, tasks = next(iter(state.values())).device, len(plan.problem.tasks)
    need = (_SIZES + 2 * tasks) * len(modules) * sum(tensor.nbytes for tensor in own_tensors(modules[0]).values())
    if on_cpu and need > free_memory(device):
        room = f"{free_memory(device) / 1e9:.1f} GB are free"
        return Trial(f"a trial of {len(modules)} stacked models would take about {need / 1e9:.1f} GB, and {room}")
    most, note = len(modules), ""
    try:
        if not on_cpu:
            memory = try_memory(stacks_of, most, batch, total)
            most, note = memory.most or most, memory.note
        why_not = find_difference(plan, modules[:most], _first(state, most), batch)
        while most > 1 and why_not is not None and why_not.startswith("OutOfMemoryError"):
            most = -(-most // 2)
            note = note or f"{why_not}: stacks of {most} one after another"
            why_not = find_difference(plan, modules[:most], _first(state, most), batch)
    except Exception as error:
        why_not = describe_error(error)
    return Trial(why_not, most=most if most < len(modules) else None, note=note)


def time_stack(
    plan: Plan, modules: Sequence[nn.Module], state: State, batch: Any, total: int, most: int | None
) -> Trial:
    """Time a step of models as a stack, and one after another (estimated from a few of them), on copies.

    Of stacks of ``most`` models only the first is timed; all of them if they are weighed together.
    """
    count = plan.rows_of_trial(most or len(modules), len(modules))
    few = plan.rows_of_trial(min(COMPARED, count), count)
    given = StepInput(batch, 0, total)
    times: tuple[list[float], list[float]] = ([], [])
    try:
        alone = plan.sequential(copy_modules(modules[:few]), _first(state, few))
        together = plan.batched(copy_modules(modules[:count]), _first(state, count), most)
        for _ in range(_TIMED + 1):
            for groups, seconds in zip((alone, together), times, strict=True):
                _wait()
                began = time.perf_counter()
                train_step(groups, given)
                _wait()
                seconds.append(time.perf_counter() - began)
    except Exception as error:  # models that cannot be timed can still be trained one after another
        return Trial(describe_error(error))
    return Trial(seconds=min(times[1][1:]), baseline=min(times[0][1:]) * count / few)


def _first(state: State, count: int) -> State:
    return slice_state(state, slice(0, count))


def _wait() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()
