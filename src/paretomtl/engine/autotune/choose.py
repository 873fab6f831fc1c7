"""The choice of a strategy, by trials on copies of the models."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from paretomtl._support.random_state import isolated_randomness
from paretomtl.engine.autotune.capture import CaptureTrial, try_capture
from paretomtl.engine.autotune.memory import count_fitting
from paretomtl.engine.autotune.stack_matches import COMPARED, find_difference
from paretomtl.engine.autotune.streams import has_wide_convolutions, try_streams
from paretomtl.engine.autotune.threads import ThreadTrial, try_threads
from paretomtl.engine.autotune.trial import first_line
from paretomtl.engine.batches.base import Batches
from paretomtl.engine.batches.partition import BatchPartition, first_part
from paretomtl.engine.group import Group
from paretomtl.engine.models.module_checks import has_hooks
from paretomtl.engine.models.modules import copy_modules
from paretomtl.engine.plan import ExecutionPlan, Plan
from paretomtl.engine.step import train_step
from paretomtl.methods import State, slice_state

_TIMED = 3  # how many steps of each strategy are timed


def choose(
    plan: Plan,
    wanted: tuple[str, int | None],
    modules: Sequence[nn.Module],
    state: State,
    train: Batches,
    batch: Any,
    total: int,
) -> ExecutionPlan:
    """How to train these models, by a strategy and a number of workers, or what is best for "auto" and None.

    A stack is taken only after one of its steps agreed with the models alone: what vmap gets wrong, it may get wrong
    silently. A captured step is taken only after its replays agreed with steps that were launched: of a stack, or of
    ordinary modules where those cannot be stacked or are faster. "auto" takes a captured step where there can be one,
    and else measures a few steps of a stack, of the models alone and of models side by side, on copies.

    Trials are of this process alone. Where several share the run, the first one's choice is everybody's.
    """
    ranks, plan, batch = plan.shares.ranks, replace(plan, shares=BatchPartition()), first_part(batch)
    if ranks.is_distributed:
        wanted = wanted[0], 1  # threads would come to what processes tell each other in any order
    mine = _choose(plan, wanted, modules, state, train, batch, total)
    return ExecutionPlan(**ranks.broadcast(lambda: vars(mine)))


def _choose(
    plan: Plan,
    wanted: tuple[str, int | None],
    modules: Sequence[nn.Module],
    state: State,
    train: Batches,
    batch: Any,
    total: int,
) -> ExecutionPlan:
    strategy, workers = wanted
    on_cpu = next(iter(state.values())).device.type == "cpu"
    if strategy == "auto" and len(modules) == 1 and on_cpu:
        return ExecutionPlan("sequential", "there is one model")
    with isolated_randomness():
        if strategy == "sequential":
            side = try_threads(plan, modules, state, batch, total, workers or 1, timed=False)
            return ExecutionPlan("sequential", f"asked for{_remark(side)}", workers=side.count)
        most, why, reason = _stackable(plan, modules, state, batch, total, on_cpu=on_cpu)
        limit = most if most < len(modules) else None
        told = ""
        if strategy != "batched":
            said = "asked for" if strategy == "graphed" else "the step can be captured"
            stack = ExecutionPlan("graphed", why or said, limit)
            taken, whys = _captured(plan, modules, state, train, batch, total, stack, reason)
            if taken is not None:
                if why and not taken.apart:
                    warnings.warn(why + ".", stacklevel=2)
                return taken
            if strategy == "graphed":
                raise ValueError(
                    f"'strategy' must be one that these models can be trained by: {'; '.join(whys)}. Got 'graphed' "
                    'instead: take "auto".'
                )
            told = "" if on_cpu else f"; not graphed: {'; '.join(text for text in whys if text != reason)}"
        if why:
            warnings.warn(why + ".", stacklevel=2)
        if strategy == "batched":
            if reason is not None:
                raise ValueError(
                    f"'strategy' must be \"sequential\" or \"auto\" for these models: {reason}. Got 'batched' instead."
                )
            return ExecutionPlan("batched", why or "asked for", limit)
        if len(modules) == 1:
            return ExecutionPlan("sequential", f"there is one model{told}")
        side = try_threads(plan, modules, state, batch, total, workers, timed=True) if on_cpu else ThreadTrial()
        alone = together = math.inf
        if reason is None:
            try:
                alone, together = _seconds(plan, modules[:most], _first(state, most), batch, total)
                reason = f"{_in_ms(together)} a step as a stack, {_in_ms(alone)} one after another"
            except Exception as error:  # what cannot be measured can still be trained one after another
                reason = first_line(error)
    reason += _remark(side) + told
    if side.beats(together):
        return ExecutionPlan("sequential", reason, workers=side.count)
    return ExecutionPlan("batched", reason, limit) if together < alone else ExecutionPlan("sequential", reason)


def _in_ms(seconds: float) -> str:
    return f"{1e3 * seconds:.3g} ms" if seconds < 1 else f"{1e3 * seconds:,.0f} ms"


def _captured(
    plan: Plan,
    modules: Sequence[nn.Module],
    state: State,
    train: Batches,
    batch: Any,
    total: int,
    stack: ExecutionPlan,
    unstackable: str | None,
) -> tuple[ExecutionPlan | None, list[str]]:
    """The faster of a captured stack and of captured ordinary modules; where there is neither, why not either.

    Modules are not tried where a stack surely is faster: with few channels, its convolutions have kernels of their own,
    and without convolutions it has fewer launches.
    """
    tried = CaptureTrial(unstackable)
    if unstackable is None:
        tried = try_capture(
            lambda: plan.graphed(copy_modules(modules), state, stack.most), train, total, schedule=plan.schedule
        )
        if tried.why is None and not has_wide_convolutions(modules[0]):
            return stack, []
    apart = try_streams(plan, modules, state, train, batch, total)
    if apart.why is not None:
        if tried.why is None:
            return stack, []
        return None, [tried.why] if apart.why == tried.why else [tried.why, f"as ordinary modules, {apart.why}"]
    if tried.why is not None:
        reason = f"{apart.words}; not as a stack: {tried.why}"
    else:
        (first, here), (second, there) = sorted([(apart.seconds, apart.words), (tried.seconds, "as a stack")])
        reason = f"{_in_ms(first)} a step {here}, {_in_ms(second)} {there}"
        if tried.seconds < apart.seconds:
            return replace(stack, reason=f"{stack.reason}; {reason}" if stack.most else reason), []
    return ExecutionPlan("graphed", reason, workers=apart.workers, apart=True, channels_last=apart.channels_last), []


def _stackable(
    plan: Plan, modules: Sequence[nn.Module], state: State, batch: Any, total: int, *, on_cpu: bool
) -> tuple[int, str, str | None]:
    """How many models fit into a stack, what to say if that is not all, and why they cannot be stacked at all."""

    def stack_of(count: int) -> Group:
        return plan.batched(copy_modules(modules[:count]), _first(state, count))[0]

    most, why = len(modules), ""
    if any(has_hooks(module) for module in modules):
        return most, why, "gradients go through hooks, which a stack would not run"
    try:
        if not on_cpu:
            most, why = count_fitting(stack_of, most, batch, total)
        reason = find_difference(plan, modules[:most], _first(state, most), batch)
        while most > 1 and reason is not None and reason.startswith("OutOfMemoryError"):
            most = -(-most // 2)
            why = why or f"{reason}: stacks of {most} one after another"
            reason = find_difference(plan, modules[:most], _first(state, most), batch)
    except Exception as error:
        reason = first_line(error)
    return most, why, reason


def _remark(side: ThreadTrial) -> str:
    """What to say of models side by side, if there is something."""
    if side.why:
        return f"; not side by side, for {side.why}"
    if side.count == 1:
        return ""
    if math.isinf(side.seconds):
        return f", {side.count} models side by side"
    return f", {_in_ms(side.seconds)} with {side.count} models side by side ({_in_ms(side.alone)} without)"


def _seconds(plan: Plan, modules: Sequence[nn.Module], state: State, batch: Any, total: int) -> tuple[float, float]:
    """Seconds of a step of all models, one after another (estimated by a few of them) and as a stack, on copies."""
    some = list(range(min(COMPARED, len(modules))))
    alone = plan.sequential(copy_modules([modules[k] for k in some]), slice_state(state, slice(0, len(some))))
    together = plan.batched(copy_modules(modules), state)
    times: dict[int, list[float]] = {0: [], 1: []}
    for _ in range(_TIMED + 1):
        for which, groups in enumerate((alone, together)):
            _wait()
            began = time.perf_counter()
            for group in groups:
                train_step(group, batch, number=0, total=total)
            _wait()
            times[which].append(time.perf_counter() - began)
    return min(times[0][1:]) * len(modules) / len(some), min(times[1][1:])


def _first(state: State, count: int) -> State:
    return slice_state(state, slice(0, count))


def _wait() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()
