"""How K models train: one after another, or as one stack; and which of the two, measured and checked."""

from __future__ import annotations

import inspect
import itertools
import math
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias, get_args

import torch
from torch import nn

from paretomtl._support.random_state import isolated_randomness
from paretomtl.engine.autotune.stack_matches import COMPARED, copies, find_difference
from paretomtl.engine.autotune.streams import has_wide_convolutions, try_streams
from paretomtl.engine.autotune.trials import CaptureTrial, count_fitting, first_line, try_capture
from paretomtl.engine.data.batches import Batches, BatchPartition, first_part
from paretomtl.engine.models.models import Models, Single, Stack
from paretomtl.engine.models.module_checks import has_hooks
from paretomtl.engine.parameters import name_parameters
from paretomtl.engine.runners.runners import CAPTURABLE, make_capturable
from paretomtl.engine.runners.threads import ThreadTrial, try_threads
from paretomtl.engine.step import Group, train_step
from paretomtl.methods import Method, State, slice_state
from paretomtl.problems import OptimizerFactory, Problem, SchedulerFactory

Strategy: TypeAlias = Literal["auto", "sequential", "batched", "graphed"]
STRATEGIES = ("auto", "sequential", "batched", "graphed")

ELEMENTWISE = (
    torch.optim.SGD,
    torch.optim.Adam,
    torch.optim.AdamW,
    torch.optim.Adamax,
    torch.optim.NAdam,
    torch.optim.RAdam,
    torch.optim.RMSprop,
    torch.optim.Adagrad,
    torch.optim.Adadelta,
    torch.optim.Rprop,
)
"""Optimizers of torch.optim that treat each number on its own: a stack of models trains as the models would alone."""

_TIMED = 3  # how many steps of each strategy are timed


@dataclass(frozen=True)
class Plan:
    """What all groups of a run have in common."""

    problem: Problem
    method: Method
    optimizer: OptimizerFactory | None = None
    scheduler: SchedulerFactory | None = None
    clip_norm: float | None = None
    autocast: torch.dtype | None = None
    compiler: Mapping[str, Any] | None = None
    schedule: str = "epoch"
    shares: BatchPartition = field(default_factory=BatchPartition)

    def sequential(self, modules: Sequence[nn.Module], state: State) -> list[Group]:
        """One group for each model."""
        return [
            self._group(Single(self.problem, module, self.compiler), slice_state(state, slice(k, k + 1)))
            for k, module in enumerate(modules)
        ]

    def batched(self, modules: Sequence[nn.Module], state: State, most: int | None = None) -> list[Group]:
        """One group for all models, or for each so many of them."""
        groups = []
        for part in equal_parts(len(modules), most):
            group = self._group(Stack(self.problem, modules[part], self.compiler), slice_state(state, part))
            if type(group.optimizer) not in ELEMENTWISE:
                names = ", ".join(kind.__name__ for kind in ELEMENTWISE)
                raise ValueError(
                    "'optimizer' must treat each number on its own to train stacked models: one of "
                    f"{names}. Got {type(group.optimizer).__name__} instead."
                )
            groups.append(group)
        if len(groups) > 1 and self.problem.train is not None:
            for group in groups:  # their losses are compared after the step, as those of models alone are
                group.before_previous = group.models.copy()
        return groups

    def graphed(self, modules: Sequence[nn.Module], state: State, most: int | None = None) -> list[Group]:
        """The same, for steps that are captured."""
        return _fixed(self.batched(modules, state, most))

    def on_streams(self, modules: Sequence[nn.Module], state: State, *, channels_last: bool = False) -> list[Group]:
        """One group for each model, for steps that are captured; convolutions may have their channels last."""
        groups = []
        for k, module in enumerate(modules):
            if channels_last:
                module.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
            models = Single(self.problem, module, self.compiler, blocked=True)
            groups.append(self._group(models, slice_state(state, slice(k, k + 1))))
        return _fixed(groups)

    def _group(self, models: Models, state: State) -> Group:
        try:
            optimizer = (self.optimizer or torch.optim.Adam)(name_parameters(models.trained))
        except Exception as error:
            if self.optimizer is None:
                raise
            error.add_note(
                "This came from 'optimizer', which gets named parameters: pairs of a name and a tensor, as "
                "model.named_parameters() has them. For tensors alone, write [tensor for _, tensor in parameters]."
            )
            raise
        if not isinstance(optimizer, torch.optim.Optimizer):
            raise TypeError(
                f"'optimizer' must make an optimizer of torch.optim. Got {type(optimizer).__name__} instead."
            )
        own = {id(parameter) for parameter in models.trained.values()}
        held = [parameter for part in optimizer.param_groups for parameter in part["params"]]
        if any(id(parameter) not in own for parameter in held):
            raise ValueError(
                "'optimizer' must make an optimizer of the parameters that it is given, such as "
                "lambda parameters: torch.optim.SGD(parameters, lr=0.1). Got one of others, which would train nothing."
            )
        moving = {id(parameter) for parameter in held}  # others are as good as frozen: no task is weighed by them
        models.trained = {name: parameter for name, parameter in models.trained.items() if id(parameter) in moving}
        if "closure" in [p.name for p in inspect.signature(optimizer.step).parameters.values() if p.default is p.empty]:
            raise ValueError(
                f"'optimizer' must step without a closure. Got {type(optimizer).__name__}, which needs one: take "
                "another, such as torch.optim.Adam."
            )
        scheduler = None if self.scheduler is None else self.scheduler(optimizer)
        if isinstance(scheduler, torch.optim.lr_scheduler.ReduceLROnPlateau):
            raise ValueError(
                "'scheduler' must depend on the epoch alone. Got ReduceLROnPlateau, which asks for a loss: take "
                "another, such as lambda optimizer, total: CosineAnnealingLR(optimizer, total); 'patience' ends early."
            )
        return Group(
            models,
            self.method,
            optimizer,
            scheduler,
            state,
            self.clip_norm,
            self.autocast,
            ranks=self.shares.ranks,
        )


@dataclass(frozen=True)
class ExecutionPlan:
    """What was taken.

    Attributes:
        strategy: its name.
        reason: why.
        most: how many models a stack has at most; None for all.
        workers: how many models step side by side: in threads, or on streams where they are captured.
        apart: whether the models that are captured are ordinary modules, rather than a stack.
        channels_last: how their convolutions lie in memory.
    """

    strategy: str
    reason: str
    most: int | None = None
    workers: int = 1
    apart: bool = False
    channels_last: bool = False

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> ExecutionPlan:
        """What a run's configuration says; an error for what is no choice."""
        choice = cls(**stored)
        counts = [choice.workers, 1 if choice.most is None else choice.most]
        if choice.strategy not in get_args(Strategy) or not all(isinstance(n, int) and n > 0 for n in counts):
            raise ValueError(f"{dict(stored)} is no choice of a strategy")
        return choice

    def groups(self, plan: Plan, modules: Sequence[nn.Module], state: State) -> list[Group]:
        """The models, in groups that step together."""
        if self.strategy == "sequential":
            return plan.sequential(modules, state)
        if self.apart:
            return plan.on_streams(modules, state, channels_last=self.channels_last)
        return (plan.graphed if self.strategy == "graphed" else plan.batched)(modules, state, self.most)


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
            lambda: plan.graphed(copies(modules), state, stack.most), train, total, schedule=plan.schedule
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
        return plan.batched(copies(modules[:count]), _first(state, count))[0]

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
    alone = plan.sequential(copies([modules[k] for k in some]), slice_state(state, slice(0, len(some))))
    together = plan.batched(copies(modules), state)
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


def _fixed(groups: list[Group]) -> list[Group]:
    """For steps that are captured: all that they write stays where it is, optimizers included."""
    for group in groups:
        group.static_memory = True
        group.state = {name: tensor.clone() for name, tensor in group.state.items()}  # replays write to it
        if type(group.optimizer) in CAPTURABLE:
            make_capturable(group.optimizer)
    return groups


def _first(state: State, count: int) -> State:
    return slice_state(state, slice(0, count))


def equal_parts(count: int, most: int | None) -> list[slice]:
    """Parts of so many at most, as equal as can be."""
    parts = 1 if most is None else -(-count // most)
    bounds = [round(i * count / parts) for i in range(parts + 1)]
    return [slice(begin, end) for begin, end in itertools.pairwise(bounds)]


def _wait() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()
