"""How K models train: one after another, or as one stack; and which of the two, measured and checked."""

from __future__ import annotations

import copy
import inspect
import itertools
import math
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor, nn

from paretomtl._random import isolated_randomness, seed_everything
from paretomtl.methods import Method, State, slice_state
from paretomtl.problems import OptimizerFactory, Problem, SchedulerFactory
from paretomtl.training._batches import Batches
from paretomtl.training._gradients import task_gradients
from paretomtl.training._models import Models, NoDropout, Single, Stack
from paretomtl.training._runners import CAPTURABLE, make_capturable
from paretomtl.training._step import Group, train_step
from paretomtl.training._trials import first_line, fitting, why_not_graphed
from paretomtl.training._workers import Side, try_side_by_side

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

_COMPARED = 4  # how many models of a stack are compared with models trained alone
_TIMED = 3  # how many steps of each strategy are timed
_TOLERANCE = {(torch.float64, "cpu"): 1e-9, (torch.float64, "cuda"): 1e-9, (torch.float32, "cpu"): 2e-3}
_COARSE = 5e-2  # float32 on a GPU may mean ten bits of mantissa


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

    def sequential(self, modules: Sequence[nn.Module], state: State) -> list[Group]:
        """One group for each model."""
        return [
            self._group(Single(self.problem, module, self.compiler), slice_state(state, slice(k, k + 1)))
            for k, module in enumerate(modules)
        ]

    def batched(self, modules: Sequence[nn.Module], state: State, most: int | None = None) -> list[Group]:
        """One group for all models, or for each so many of them."""
        groups = []
        for part in _shards(len(modules), most):
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
                group.older = group.models.copy()
        return groups

    def graphed(self, modules: Sequence[nn.Module], state: State, most: int | None = None) -> list[Group]:
        """The same, for steps that are captured."""
        groups = self.batched(modules, state, most)
        for group in groups:
            group.state = {name: tensor.clone() for name, tensor in group.state.items()}  # replays write to it
            if type(group.optimizer) in CAPTURABLE:
                make_capturable(group.optimizer)
        return groups

    def _group(self, models: Models, state: State) -> Group:
        optimizer = (self.optimizer or torch.optim.Adam)(list(models.trained.items()))
        if not isinstance(optimizer, torch.optim.Optimizer):
            raise TypeError(
                f"'optimizer' must make an optimizer of torch.optim. Got {type(optimizer).__name__} instead."
            )
        if "closure" in [p.name for p in inspect.signature(optimizer.step).parameters.values() if p.default is p.empty]:
            raise ValueError(
                f"'optimizer' must step without a closure. Got {type(optimizer).__name__}, which needs one."
            )
        scheduler = None if self.scheduler is None else self.scheduler(optimizer)
        if isinstance(scheduler, torch.optim.lr_scheduler.ReduceLROnPlateau):
            raise ValueError(
                "'scheduler' must depend on the epoch alone. Got ReduceLROnPlateau, which asks for a loss."
            )
        return Group(models, self.method, optimizer, scheduler, state, self.clip_norm, self.autocast)


@dataclass(frozen=True)
class Choice:
    """What was taken.

    Attributes:
        strategy: its name.
        reason: why.
        most: how many models a stack has at most; None for all.
        workers: how many models step side by side.
    """

    strategy: str
    reason: str
    most: int | None = None
    workers: int = 1

    def groups(self, plan: Plan, modules: Sequence[nn.Module], state: State) -> list[Group]:
        """The models, in groups that step together."""
        if self.strategy == "sequential":
            return plan.sequential(modules, state)
        return (plan.graphed if self.strategy == "graphed" else plan.batched)(modules, state, self.most)


def choose(
    plan: Plan,
    wanted: tuple[str, int | None],
    modules: Sequence[nn.Module],
    state: State,
    train: Batches,
    batch: Any,
    total: int,
) -> Choice:
    """How to train these models, by a strategy and a number of workers, or what is best for "auto" and None.

    A stack is taken only after one of its steps agreed with the models alone: what vmap gets wrong, it may get wrong
    silently. A captured step is taken only after its replays agreed with steps that were launched. "auto" takes a
    captured step where there can be one, and else measures a few steps of a stack, of the models alone and of models
    side by side, on copies.
    """
    strategy, workers = wanted
    on_cpu = next(iter(state.values())).device.type == "cpu"
    if strategy == "auto" and len(modules) == 1 and on_cpu:
        return Choice("sequential", "there is one model")
    with isolated_randomness():
        if strategy == "sequential":
            side = try_side_by_side(plan, modules, state, batch, total, workers or 1, timed=False)
            return Choice("sequential", f"asked for{_remark(side)}", workers=side.count)
        most, why, reason = _stackable(plan, modules, state, batch, total, on_cpu=on_cpu)
        if why:
            warnings.warn(why + ".", stacklevel=2)
        limit = most if most < len(modules) else None
        if strategy == "batched":
            if reason is not None:
                raise ValueError(f'\'strategy\' must be "sequential" or "auto" for these models: {reason}.')
            return Choice("batched", why or "asked for", limit)
        ungraphed = reason or why_not_graphed(
            lambda: plan.graphed(_copies(modules), state, limit), train, total, schedule=plan.schedule
        )
        if ungraphed is None:
            said = "asked for" if strategy == "graphed" else "the step can be captured"
            return Choice("graphed", why or said, limit)
        if strategy == "graphed":
            raise ValueError(f"'strategy' must be one that these models can be trained by: {ungraphed}.")
        told = "" if on_cpu or reason is not None else f"; not graphed: {ungraphed}"
        if len(modules) == 1:
            return Choice("sequential", f"there is one model{told}")
        side = try_side_by_side(plan, modules, state, batch, total, workers, timed=True) if on_cpu else Side()
        alone = together = math.inf
        if reason is None:
            try:
                alone, together = _seconds(plan, modules[:most], _first(state, most), batch, total)
                reason = f"{1e3 * together:.3g} ms a step as a stack, {1e3 * alone:.3g} ms one after another"
            except Exception as error:  # what cannot be measured can still be trained one after another
                reason = first_line(error)
    reason += _remark(side) + told
    if side.beats(together):
        return Choice("sequential", reason, workers=side.count)
    return Choice("batched", reason, limit) if together < alone else Choice("sequential", reason)


def _stackable(
    plan: Plan, modules: Sequence[nn.Module], state: State, batch: Any, total: int, *, on_cpu: bool
) -> tuple[int, str, str | None]:
    """How many models fit into a stack, what to say if that is not all, and why they cannot be stacked at all."""

    def stack_of(count: int) -> Group:
        return plan.batched(_copies(modules[:count]), _first(state, count))[0]

    most, why = len(modules), ""
    try:
        if not on_cpu:
            most, why = fitting(stack_of, most, batch, total)
        reason = _disagreement(plan, modules[:most], _first(state, most), batch)
        while most > 1 and reason is not None and reason.startswith("OutOfMemoryError"):
            most = -(-most // 2)
            why = why or f"{reason}: stacks of {most} one after another"
            reason = _disagreement(plan, modules[:most], _first(state, most), batch)
    except Exception as error:
        reason = first_line(error)
    return most, why, reason


def _remark(side: Side) -> str:
    """What to say of models side by side, if there is something."""
    if side.why:
        return f"; not side by side, for {side.why}"
    if side.count == 1:
        return ""
    if math.isinf(side.seconds):
        return f", {side.count} models side by side"
    return f", {1e3 * side.seconds:.3g} ms with {side.count} models side by side ({1e3 * side.alone:.3g} ms without)"


def _disagreement(plan: Plan, modules: Sequence[nn.Module], state: State, batch: Any) -> str | None:
    """Why a stack cannot stand in for the models alone; None if one step of both agrees, dropout aside."""
    rows = sorted({round(i * (len(modules) - 1) / (_COMPARED - 1)) for i in range(_COMPARED)})
    try:
        (stacked,) = plan.batched(_copies(modules), state)
        stack = stacked.models
        assert isinstance(stack, Stack)
        stack.randomness = "same"
        together = _one_step(stacked, batch)
        stack.randomness = "different"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            stack.losses(batch)  # some random functions know only one of the two
    except Exception as error:
        return first_line(error)
    for k in rows:
        (alone,) = plan.sequential(_copies([modules[k]]), slice_state(state, slice(k, k + 1)))
        if _groups_of(alone) != _groups_of(stacked):
            return "the optimizer's factory treats stacked parameters differently: it must not go by their shapes"
        found = _one_step(alone, batch, follow=(together, k))
        sample = next(iter(alone.models.trained.values()))
        usual = _TOLERANCE.get((sample.dtype, sample.device.type), _COARSE)
        for what, mine in found.items():
            tolerance = 1e-3 * usual if what.startswith("parameters") else usual
            least = 1e-3 * float(found["scale"]) if what.startswith("gradients") else 0.0
            theirs = together[what][k] if what in together else torch.zeros_like(mine)
            if not _agree(mine, theirs, tolerance, least):
                return f"{what} of a stacked model differ from those of the model alone"
    return None


def _one_step(group: Group, batch: Any, follow: tuple[dict[str, Tensor], int] | None = None) -> dict[str, Tensor]:
    """Losses, gradients and buffers of one step, and the parameters that the optimizer makes of it.

    Without dropout, and in the precision of the parameters: what vmap gets wrong does not depend on either.

    Args:
        group: the models; they are left where the step took them.
        batch: the batch.
        follow: what a stack found, and a row of it: its gradients go to the optimizer in place of those found here, so
            that rounding does not hide what the optimizer does.
    """
    seed_everything(0)
    models = group.models
    stacked = isinstance(models, Stack)
    before = set(dict(models.module.named_parameters()))
    with warnings.catch_warnings(), NoDropout():
        warnings.simplefilter("ignore")
        losses = models.losses(batch)
        with torch.no_grad(), models.evaluating():
            evaluated = models.forward(batch)[0]
    found: dict[str, Tensor] = {"losses": losses.detach(), "losses in eval mode": evaluated}
    rows = task_gradients(losses, list(models.trained.values()))
    shape = (models.count,) if stacked else ()
    squares = losses.new_zeros(shape, dtype=torch.float64)
    for name, parts in zip(models.trained, zip(*rows, strict=True), strict=True):
        total = torch.zeros_like(models.trained[name])
        for i, part in enumerate(parts):
            if part is not None:
                found[f"gradients of task {i} for {name}"] = part
                squares = squares + part.double().reshape(*shape, -1).square().sum(-1)
                total = total + torch.where(part.isfinite(), part, 0.0)
        models.trained[name].grad = total if follow is None else follow[0][f"update of {name}"][follow[1]]
        found[f"update of {name}"] = models.trained[name].grad  # type: ignore[assignment]
    found["scale"] = squares.sqrt()
    group.optimizer.step()
    for name, tensor in models.tensors().items():
        kind = "parameters" if name in before else "buffers"
        found[f"{kind} {name}"] = (tensor if stacked else tensor[0]).to(torch.float64, copy=True)
    return found


def _seconds(plan: Plan, modules: Sequence[nn.Module], state: State, batch: Any, total: int) -> tuple[float, float]:
    """Seconds of a step of all models, one after another (estimated by a few of them) and as a stack, on copies."""
    some = list(range(min(_COMPARED, len(modules))))
    alone = plan.sequential(_copies([modules[k] for k in some]), slice_state(state, slice(0, len(some))))
    together = plan.batched(_copies(modules), state)
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


def _shards(count: int, most: int | None) -> list[slice]:
    """So many at most, as equal as can be."""
    parts = 1 if most is None else -(-count // most)
    bounds = [round(i * count / parts) for i in range(parts + 1)]
    return [slice(begin, end) for begin, end in itertools.pairwise(bounds)]


def _wait() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def _copies(modules: Sequence[nn.Module]) -> list[nn.Module]:
    return [copy.deepcopy(module) for module in modules]


def _groups_of(group: Group) -> dict[str, Any]:
    """The options under which the optimizer trains each parameter, by name."""
    names = {id(tensor): name for name, tensor in group.models.trained.items()}
    return {
        names.get(id(tensor), "?"): {key: value for key, value in part.items() if key not in ("params", "param_names")}
        for part in group.optimizer.param_groups
        for tensor in part["params"]
    }


def _agree(mine: Tensor, theirs: Tensor, tolerance: float, least: float) -> bool:
    """Whether two tensors differ by a small part of their norm, or of ``least`` if that is more; NaN equals NaN."""
    mine, theirs = mine.double(), theirs.double()
    finite = mine.isfinite()
    if not torch.equal(finite, theirs.isfinite()):
        return False
    distance = torch.where(finite, mine - theirs, 0.0).norm()
    return float(distance) <= tolerance * max(float(torch.where(finite, mine, 0.0).norm()), least) + 1e-12
