"""Comparison of a stack with the models alone, by one step of both, and of compiled models with those that are not.

A stack is used only after one of its steps agreed with up to four of its models alone, without dropout: losses,
gradients of every task, buffers, the options under which the optimizer trains each parameter, and the parameters after
its step on the same gradients. Before that, every model that differs from the first in attributes is compared with the
first that has its weights, with dropout. Tied weights pass, and are stacked; buffers that are replaced in a forward
pass do not.

The comparison runs without a compiler, in the precision of the parameters. If only gradients differ,
and by little, float64 decides: rounding at the kinks of ReLU and max pooling is 5e-3 in float32 and 4e-15 in float64.
Models that do not run in float64 are compared at other parameters, because a wrong stack is wrong everywhere.
"""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from paretomtl._support.module_tensors import load_tensors
from paretomtl._support.random_state import host_random_state, isolated_randomness, random_state, seed_everything
from paretomtl.engine.autotune.no_dropout import NoDropout
from paretomtl.engine.autotune.trial import describe_error
from paretomtl.engine.batches.structure import map_tensors
from paretomtl.engine.gradients import task_gradients
from paretomtl.engine.model_group import Group
from paretomtl.engine.models.attributes import differing_from_first
from paretomtl.engine.models.modules import FrozenParameter, copy_modules, own_tensors
from paretomtl.engine.models.single import Single
from paretomtl.engine.models.stack import Stack
from paretomtl.engine.step import StepInput, train_step
from paretomtl.engine.strategy import Plan
from paretomtl.methods import State, slice_state

COMPARED = 4
"""How many models of a stack are compared with models trained alone."""

_TOLERANCE = {(torch.float64, "cpu"): 1e-9, (torch.float64, "cuda"): 1e-9, (torch.float32, "cpu"): 2e-3}
_COARSE = 5e-2  # float32 on a GPU may mean ten bits of mantissa
_ARBITER = 1e-5  # in float64: far above its rounding, far below that of float32
_ELSEWHERE = 4  # other parameters at which a difference must reappear if float64 cannot decide
_JITTER = 1e-2
_NOTHING = 1e-12  # counts as zero, whatever the norm
_STEPS = 3  # of compiled models, and of the same without a compiler


@dataclass(frozen=True)
class _Difference:
    """A quantity in which a stacked model differs from the model alone.

    Attributes:
        what: its name.
        size: the distance, relative to the norm of the quantity.
    """

    what: str
    size: float

    @property
    def may_be_rounding(self) -> bool:
        """Whether rounding may explain it: gradients jump at the kinks of ReLU and max pooling."""
        return self.what.startswith("gradients") and self.size <= _COARSE

    def __str__(self) -> str:
        return f"{self.what} of a stacked model differ from those of the model alone"


def find_difference(plan: Plan, modules: Sequence[nn.Module], state: State, batch: Any) -> str | None:
    """Why a stack cannot stand in for the models alone; None if one step of both agrees, dropout aside.

    The step is taken in the precision of the parameters. If only gradients differ, and by little, float64 decides
    whether that is rounding. A model that does not run in float64 is compared at other parameters: rounding at a kink
    shows at some of them, a wrong stack at all.
    """
    plan = replace(plan, compiler=None)
    try:
        if not _are_alike(plan, modules, batch):
            return "models differ in what a stack has once, such as dropout rates, modes or frozen parameters"
        difference = _compare(plan, modules, state, batch)
        small = isinstance(difference, _Difference) and difference.may_be_rounding
        if small and not _is_systematic(plan, modules, state, batch):
            return None
    except Exception as error:
        return describe_error(error)
    return None if difference is None else str(difference)


def find_compiled_fault(
    plan: Plan, modules: Sequence[nn.Module], state: State, batch: Any, total: int, *, stacked: bool
) -> str | None:
    """Why compiled models, alone or stacked, cannot stand in for those that are not; None if they do, or none are.

    A few of them evaluate, and take steps of the run, with dropout and autocast. Where steps draw random numbers,
    compiled ones draw others: their losses must be finite.
    """
    if plan.compiler is None:
        return None
    few = plan.rows_of_trial(min(COMPARED if stacked else 1, len(modules)), len(modules))

    def make(plan: Plan) -> list[Group]:
        groups = plan.batched if stacked else plan.sequential
        return groups(copy_modules(modules[:few]), slice_state(state, slice(0, few)))

    try:
        evaluated, losses, draws = _few_steps(make(replace(plan, compiler=None)), batch, total)
    except Exception:  # there is nothing to compare with: the run shows what is wrong
        return None
    if draws and stacked and losses.device.type == "cpu" and plan.compiler.get("backend", "inductor") == "inductor":
        return "on a CPU, torch.compile may read the dropout masks of a stack before it draws them"
    groups = make(plan)  # an unknown backend is refused
    try:
        evaluated_compiled, compiled, _ = _few_steps(groups, batch, total)
    except Exception as error:
        return describe_error(error)
    if bool((losses.isfinite() & ~compiled.isfinite()).any()):
        return "losses or gradients of compiled models are not finite, those without torch.compile are"
    pairs = [(evaluated, evaluated_compiled), *([] if draws else [(losses, compiled)])]
    tolerance = _ARBITER if losses.dtype == torch.float64 else _COARSE
    if not all(torch.allclose(a, b, rtol=tolerance, atol=_NOTHING, equal_nan=True) for a, b in pairs):
        return "losses of compiled models differ from those without torch.compile"
    return None


def _few_steps(groups: Sequence[Group], batch: Any, total: int) -> tuple[Tensor, Tensor, bool]:
    """Losses in evaluation and of a few steps, infinite where a model broke; and whether these drew random numbers."""

    def drawn() -> tuple[Any, ...]:
        return host_random_state(), [state.tolist() for state in random_state()["cuda"]]

    with warnings.catch_warnings(), isolated_randomness(0):
        warnings.simplefilter("ignore")
        before = drawn()
        evaluated = []
        for group in groups:
            with torch.no_grad(), group.models.evaluating(), group.precision():
                evaluated += [group.models.forward(batch)[0].flatten()]
        steps = [train_step(groups, StepInput(batch, number, total)) for number in range(_STEPS)]
        draws = drawn() != before
    active = torch.cat([group.active for group in groups])[:, None]
    losses = torch.stack([torch.cat([record.losses for record in records]) for records in steps])
    return torch.cat(evaluated), torch.where(active, losses, torch.inf), draws


def _are_alike(plan: Plan, modules: Sequence[nn.Module], batch: Any) -> bool:
    """Whether the first module with the weights of any other is that one: with its losses, drawing the same numbers."""
    first = _modes(modules[0])
    if any(_modes(module) != first for module in modules):
        return False
    for k in differing_from_first(modules):
        own, other = copy_modules([modules[0], modules[k]])
        load_tensors(own, own_tensors(other))
        if not torch.allclose(_losses(plan, own, batch), _losses(plan, other, batch), rtol=1e-4, equal_nan=True):
            return False
    return True


def _losses(plan: Plan, module: nn.Module, batch: Any) -> Tensor:
    """The losses of a module in training, with dropout, and in evaluation."""
    seed_everything(0)
    models = Single(plan.problem, module)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trained = models.losses(batch)
        with models.evaluating():
            return torch.cat([trained, models.losses(batch)])


def _modes(module: nn.Module) -> tuple[list[bool], list[bool]]:
    """Which parameters a module trains, and which of its parts are in training mode."""
    return [p.requires_grad for p in module.parameters()], [part.training for part in module.modules()]


def _is_systematic(plan: Plan, modules: Sequence[nn.Module], state: State, batch: Any) -> bool:
    """Whether a small difference of gradients is more than rounding."""
    if all(parameter.dtype == torch.float64 for parameter in modules[0].parameters()):
        return True
    frozen: dict[int, Any] = {
        id(p): FrozenParameter(_widened(p.detach()), False)
        for p in modules[0].parameters()
        if isinstance(p, FrozenParameter)
    }
    wide = [copy.deepcopy(module, dict(frozen)).double() for module in modules]
    try:
        return _compare(plan, wide, state, map_tensors(_widened, batch), _ARBITER) is not None
    except Exception:  # such as a layer that casts its inputs to float32
        others = (_jittered(modules, draw) for draw in range(_ELSEWHERE))
        return all(_compare(plan, other, state, batch) is not None for other in others)


def _widened(tensor: Tensor) -> Tensor:
    return tensor.double() if tensor.is_floating_point() else tensor


def _jittered(modules: Sequence[nn.Module], draw: int) -> list[nn.Module]:
    """Copies of the models, each parameter a little larger or smaller."""
    jittered = copy_modules(modules)
    seed_everything(draw)
    with torch.no_grad():
        for parameter in (p for module in jittered for p in module.parameters() if p.requires_grad):
            parameter.mul_(1 + _JITTER * torch.randn_like(parameter))
    return jittered


def _compare(
    plan: Plan, modules: Sequence[nn.Module], state: State, batch: Any, tolerance: float | None = None
) -> _Difference | str | None:
    """The first difference between a step of the stack and those of some of its models alone; None without one."""
    evenly = {round(i * (len(modules) - 1) / (COMPARED - 1)) for i in range(COMPARED)}
    rows = sorted(evenly | set(differing_from_first(modules)[:COMPARED]))
    (stacked,) = plan.batched(copy_modules(modules), state)
    stack = stacked.models
    assert isinstance(stack, Stack)
    stack.randomness = "same"
    together = _step_quantities(stacked, batch)
    stack.randomness = "different"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        stack.losses(batch)  # some random functions support only one of the two
    small: _Difference | None = None
    for k in rows:
        (alone,) = plan.sequential(copy_modules([modules[k]]), slice_state(state, slice(k, k + 1)))
        if _options_by_parameter(alone) != _options_by_parameter(stacked):
            return "the optimizer's factory treats stacked parameters differently: it must not go by their shapes"
        expected = _step_quantities(alone, batch, follow=(together, k))
        sample = next(iter(alone.models.trained.values()))
        usual = tolerance or _TOLERANCE.get((sample.dtype, sample.device.type), _COARSE)
        for what, value in expected.items():
            if what == "scale":
                continue
            allowed = 1e-3 * usual if what.startswith("parameters") else usual
            least = 1e-3 * float(expected["scale"]) if what.startswith("gradients") else 0.0
            stacked_value = together[what][k] if what in together else torch.zeros_like(value)
            difference = _Difference(what, _distance(value, stacked_value, least))
            if difference.size > allowed and not difference.may_be_rounding:
                return difference
            if difference.size > allowed:
                small = small or difference
    return small


def _step_quantities(
    group: Group, batch: Any, follow: tuple[dict[str, Tensor], int] | None = None
) -> dict[str, Tensor]:
    """Losses, gradients and buffers of one step, and the parameters after the optimizer's step.

    The step has no dropout, and the precision of the parameters: errors of vmap do not depend on either.

    Args:
        group: the models; they are left where the step took them.
        batch: the batch.
        follow: the quantities of a stack, and a row of it: the optimizer gets the stack's gradients in place of those
            computed here, so that rounding does not hide what the optimizer does.
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
    quantities: dict[str, Tensor] = {"losses": losses.detach(), "losses in eval mode": evaluated}
    rows = task_gradients(losses, list(models.trained.values()))
    shape = (models.count,) if stacked else ()
    squares = losses.new_zeros(shape, dtype=torch.float64)
    for name, parts in zip(models.trained, zip(*rows, strict=True), strict=True):
        total = torch.zeros_like(models.trained[name])
        for i, part in enumerate(parts):
            if part is not None:
                quantities[f"gradients of task {i} for {name}"] = part
                squares = squares + part.double().reshape(*shape, -1).square().sum(-1)
                total = total + torch.where(part.isfinite(), part, 0.0)
        models.trained[name].grad = total if follow is None else follow[0][f"update of {name}"][follow[1]]
        quantities[f"update of {name}"] = models.trained[name].grad  # type: ignore[assignment]
    quantities["scale"] = squares.sqrt()
    group.optimizer.step()
    for name, tensor in models.tensors().items():
        kind = "parameters" if name in before else "buffers"
        quantities[f"{kind} {name}"] = (tensor if stacked else tensor[0]).to(torch.float64, copy=True)
    return quantities


def _options_by_parameter(group: Group) -> dict[str, Any]:
    """The options under which the optimizer trains each parameter, by name."""
    names = {id(tensor): name for name, tensor in group.models.trained.items()}
    return {
        names.get(id(tensor), "?"): {key: value for key, value in part.items() if key not in ("params", "param_names")}
        for part in group.optimizer.param_groups
        for tensor in part["params"]
    }


def _distance(expected: Tensor, actual: Tensor, least: float) -> float:
    """The distance of two tensors, relative to their norm, or to ``least`` if that is larger; NaN equals NaN."""
    expected, actual = expected.double(), actual.double()
    finite = expected.isfinite()
    if not torch.equal(finite, actual.isfinite()):
        return math.inf
    distance = float(torch.where(finite, expected - actual, 0.0).norm())
    norm = max(float(torch.where(finite, expected, 0.0).norm()), least)
    return max(0.0, distance - _NOTHING) / norm if norm else (math.inf if distance > _NOTHING else 0.0)
