"""The choice of a strategy, by trials on copies of the models."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from torch import nn

from paretomtl._support.random_state import isolated_randomness
from paretomtl.engine.autotune.capture import try_capture
from paretomtl.engine.autotune.stack import time_stack, try_stack
from paretomtl.engine.autotune.stack_matches import find_compiled_fault
from paretomtl.engine.autotune.streams import has_wide_convolutions, try_streams
from paretomtl.engine.autotune.threads import threads_pay, try_threads
from paretomtl.engine.autotune.trial import Trial
from paretomtl.engine.batches.base import Batches
from paretomtl.engine.batches.partition import BatchPartition, first_part
from paretomtl.engine.models.modules import copy_modules, own_tensors
from paretomtl.engine.strategy import ExecutionPlan, Plan
from paretomtl.methods import State

_LARGE = 1 << 25  # bytes; stacks of models from 4 MB on took twice as long on a CPU, and trials would take memory


def choose(
    plan: Plan,
    wanted: tuple[str, int | None],
    modules: Sequence[nn.Module],
    state: State,
    train: Batches,
    batch: Any,
    total: int,
) -> ExecutionPlan:
    """Choose how to train these models, given the strategy and the number of workers that the user wants.

    "auto" and None leave the choice to trials.

    A stack is used only after one of its steps agreed with the models alone, because vmap may go wrong silently. A
    captured step is used only after its replays agreed with launched steps: of a stack, or of ordinary modules if these
    cannot be stacked or are faster. "auto" uses a captured step if there can be one. Otherwise it times a few steps of
    a stack, of the models alone and of models side by side, on copies.

    Compiled models are used only after a few of their steps, as the run takes them, were like those without a compiler.
    If compiled single models fail, or a stack that is asked for, nothing is compiled; if only a stack does, "auto" does
    not take it.

    Trials run in each process by itself. If several processes share the run, all take the choice of the first.
    """
    processes, plan, batch = plan.partition.processes, replace(plan, partition=BatchPartition()), first_part(batch)
    if processes.is_distributed:
        wanted = wanted[0], 1  # threads would reach the collective calls in any order
    fault = find_compiled_fault(plan, modules, state, batch, total, stacked=wanted[0] in ("batched", "graphed"))
    plan = plan if fault is None else replace(plan, compiler=None)
    own = _choose(plan, wanted, modules, state, train, batch, total)
    if fault is not None:
        warnings.warn(f"'compile' has no effect: {fault}. Models train without it.", stacklevel=2)
        own = replace(own, reason=f"{own.reason}; not compiled: {fault}", compiled=False)
    return ExecutionPlan(**processes.broadcast(lambda: vars(own)))


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
    size = sum(tensor.nbytes for tensor in own_tensors(modules[0]).values())
    if strategy == "auto" and on_cpu and workers is None and size > _LARGE:
        return ExecutionPlan("sequential", f"models of {size / 1e6:,.0f} MB are slower as a stack on a CPU")
    with isolated_randomness():
        if strategy == "sequential":
            threads = try_threads(plan, modules, state, batch, total, workers or 1, timed=False)
            return ExecutionPlan("sequential", f"asked for{_describe_threads(threads)}", workers=threads.workers)
        stack = try_stack(plan, modules, state, batch, total, on_cpu=on_cpu)
        if strategy == "auto" and stack.why_not is None:
            fault = find_compiled_fault(plan, modules, state, batch, total, stacked=True)
            if fault is not None:
                stack = Trial(f"not stacked, as models are compiled: {fault}")
                warnings.warn(f"'compile' keeps models from being stacked: {fault}.", stacklevel=2)
        not_captured = ""
        if strategy != "batched":
            reason = "asked for" if strategy == "graphed" else "the step can be captured"
            as_stack = ExecutionPlan("graphed", stack.note or reason, stack.most)
            captured, reasons = _captured(plan, modules, state, train, batch, total, as_stack, stack.why_not)
            if captured is not None:
                if stack.note and not captured.on_streams:
                    warnings.warn(stack.note + ".", stacklevel=2)
                return captured
            if strategy == "graphed":
                raise ValueError(
                    f"'strategy' must be one that these models can be trained by: {'; '.join(reasons)}. Got 'graphed' "
                    'instead: take "auto".'
                )
            others = [reason for reason in reasons if reason != stack.why_not]
            not_captured = "" if on_cpu else f"; not graphed: {'; '.join(others)}"
        if stack.note:
            warnings.warn(stack.note + ".", stacklevel=2)
        if strategy == "batched":
            if stack.why_not is not None:
                raise ValueError(
                    f"'strategy' must be \"sequential\" or \"auto\" for these models: {stack.why_not}. Got 'batched' "
                    "instead."
                )
            return ExecutionPlan("batched", stack.note or "asked for", stack.most)
        if len(modules) == 1:
            return ExecutionPlan("sequential", f"there is one model{not_captured}")
        threads = try_threads(plan, modules, state, batch, total, workers, timed=True) if on_cpu else Trial()
        timed = stack
        if stack.why_not is None:
            timed = time_stack(plan, modules, state, batch, total, stack.most)
    reason = timed.why_not or (f"{_in_ms(timed.seconds)} a step as a stack, {_in_ms(timed.baseline)} one after another")
    reason += _describe_threads(threads) + not_captured
    if threads_pay(threads, timed.seconds):
        return ExecutionPlan("sequential", reason, workers=threads.workers)
    if timed.seconds < timed.baseline:
        return ExecutionPlan("batched", reason, stack.most)
    return ExecutionPlan("sequential", reason)


def _captured(
    plan: Plan,
    modules: Sequence[nn.Module],
    state: State,
    train: Batches,
    batch: Any,
    total: int,
    as_stack: ExecutionPlan,
    unstackable: str | None,
) -> tuple[ExecutionPlan | None, list[str]]:
    """The faster of a captured stack and captured ordinary modules; if neither works, the reasons.

    Modules are not tried if a stack is surely faster: with few channels, its convolutions have their own kernels, and
    without convolutions it has fewer launches.
    """
    stack = Trial(unstackable)
    if unstackable is None:
        stack = try_capture(
            lambda: plan.graphed(copy_modules(modules), state, as_stack.most), train, total, schedule=plan.schedule
        )
        if stack.why_not is None and not has_wide_convolutions(modules[0]):
            return as_stack, []
    streams = try_streams(plan, modules, state, train, batch, total)
    if streams.why_not is not None:
        if stack.why_not is None:
            return as_stack, []
        reasons = [stack.why_not, f"as ordinary modules, {streams.why_not}"]
        return None, reasons[:1] if streams.why_not == stack.why_not else reasons
    way = _describe_streams(streams, len(modules))
    if stack.why_not is not None:
        reason = f"{way}; not as a stack: {stack.why_not}"
    else:
        (first, here), (second, there) = sorted([(streams.seconds, way), (stack.seconds, "as a stack")])
        reason = f"{_in_ms(first)} a step {here}, {_in_ms(second)} {there}"
        if stack.seconds < streams.seconds:
            return replace(as_stack, reason=f"{as_stack.reason}; {reason}" if as_stack.most else reason), []
    on_streams = ExecutionPlan(
        "graphed", reason, workers=streams.workers, on_streams=True, channels_last=streams.channels_last
    )
    return on_streams, []


def _describe_streams(trial: Trial, count: int) -> str:
    if count == 1:
        return "as an ordinary module"
    return f"as ordinary modules {'side by side' if trial.workers > 1 else 'one after another'}"


def _describe_threads(trial: Trial) -> str:
    """A remark on models side by side; empty where there is nothing to say."""
    if trial.why_not is not None:
        return f"; not side by side: {trial.why_not}"
    if trial.workers == 1:
        return ""
    if math.isinf(trial.seconds):
        return f", {trial.workers} models side by side"
    return f", {_in_ms(trial.seconds)} with {trial.workers} models side by side ({_in_ms(trial.baseline)} without)"


def _in_ms(seconds: float) -> str:
    return f"{1e3 * seconds:.3g} ms" if seconds < 1 else f"{1e3 * seconds:,.0f} ms"
