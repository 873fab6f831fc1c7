"""Plans of a run: the strategies, and the groups of models that each one makes."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, get_args

import torch
from torch import nn
from torch.optim.optimizer import _global_optimizer_post_hooks, _global_optimizer_pre_hooks

from paretomtl.engine.batches.partition import BatchPartition
from paretomtl.engine.model_group import Group
from paretomtl.engine.models.base import Models
from paretomtl.engine.models.single import Single
from paretomtl.engine.models.stack import Stack
from paretomtl.engine.optimizers import CAPTURABLE, ELEMENTWISE, make_capturable
from paretomtl.engine.parameters import name_parameters
from paretomtl.methods import Method, State, slice_state
from paretomtl.problems import OptimizerFactory, Problem, SchedulerFactory

Strategy: TypeAlias = Literal["auto", "sequential", "batched", "graphed"]

_STORED_STREAMS = "apart"  # the key of ``ExecutionPlan.on_streams`` in the files of a run


@dataclass(frozen=True)
class Plan:
    """Settings that all groups of a run have in common; makes the groups of each strategy."""

    problem: Problem
    method: Method
    optimizer: OptimizerFactory | None = None
    scheduler: SchedulerFactory | None = None
    clip_norm: float | None = None
    autocast: torch.dtype | None = None
    compiler: Mapping[str, Any] | None = None
    schedule: str = "epoch"
    partition: BatchPartition = field(default_factory=BatchPartition)
    front_size: int | None = None
    average: float | None = None

    def rows_of_trial(self, count: int, of: int) -> int:
        """How many models a trial of ``count`` needs: these, or all if the method weighs them together."""
        return of if self.method.coupled else count

    def sequential(self, modules: Sequence[nn.Module], state: State) -> list[Group]:
        """One group for each model."""
        return [
            self._group(Single(self.problem, module, self.compiler), slice_state(state, slice(k, k + 1)))
            for k, module in enumerate(modules)
        ]

    def batched(self, modules: Sequence[nn.Module], state: State, most: int | None = None) -> list[Group]:
        """One group for all models, or groups of ``most`` models at most."""
        groups = []
        for part in equal_parts(len(modules), most):
            group = self._group(Stack(self.problem, modules[part], self.compiler), slice_state(state, part))
            if type(group.optimizer) not in ELEMENTWISE:
                names = ", ".join(kind.__name__ for kind in ELEMENTWISE)
                raise ValueError(
                    "'optimizer' must work elementwise to train stacked models: one of "
                    f"{names}. Got {type(group.optimizer).__name__} instead."
                )
            if _is_changed(group.optimizer):
                raise ValueError(
                    "'optimizer' must have no hooks and its own step to train stacked models: a hook would see the "
                    f"gradients of all models as one. Got {type(group.optimizer).__name__} with others. 'clip_norm' "
                    "clips each model alone."
                )
            groups.append(group)
        if len(groups) > 1 and self.problem.train is not None:
            for group in groups:
                group.compared = True
        return groups

    def graphed(self, modules: Sequence[nn.Module], state: State, most: int | None = None) -> list[Group]:
        """Groups like those of :meth:`batched`, for captured steps."""
        return _make_static(self.batched(modules, state, most))

    def on_streams(self, modules: Sequence[nn.Module], state: State, *, channels_last: bool = False) -> list[Group]:
        """One group for each model, for captured steps; convolutions may be channels-last."""
        groups = []
        for k, module in enumerate(modules):
            if channels_last:
                module.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
            models = Single(self.problem, module, self.compiler, blocked=True)
            groups.append(self._group(models, slice_state(state, slice(k, k + 1))))
        return _make_static(groups)

    def _group(self, models: Models, state: State) -> Group:
        try:
            optimizer = (self.optimizer or torch.optim.Adam)(name_parameters(models.trained))
        except Exception as error:
            if self.optimizer is None:
                raise
            error.add_note(
                "This came from 'optimizer', which gets named parameters: pairs of a name and a tensor, as "
                "model.named_parameters() yields them. For tensors alone, write [tensor for _, tensor in parameters]."
            )
            raise
        if not isinstance(optimizer, torch.optim.Optimizer):
            raise TypeError(
                f"'optimizer' must make an optimizer of torch.optim. Got {type(optimizer).__name__} instead."
            )
        own = {id(parameter) for parameter in models.trained.values()}
        given = [parameter for part in optimizer.param_groups for parameter in part["params"]]
        if any(id(parameter) not in own for parameter in given):
            raise ValueError(
                "'optimizer' must make an optimizer of the parameters that it is given, such as "
                "lambda parameters: torch.optim.SGD(parameters, lr=0.1). Got one of others, which would train nothing."
            )
        moving = {id(parameter) for parameter in given}  # the rest count as frozen: no task is weighed by them
        models.trained = {name: parameter for name, parameter in models.trained.items() if id(parameter) in moving}
        if not any(models.in_trunk):
            raise ValueError(
                "'optimizer' must train some of the shared parameters, by which tasks are weighed. Got one that leaves "
                "all of them out: give it more, or set requires_grad = False and leave out 'shared' and "
                "'representation' to weigh by the others."
            )
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
        group = Group(
            models,
            self.method,
            optimizer,
            scheduler,
            state,
            self.clip_norm,
            self.autocast,
            processes=self.partition.processes,
            front_size=self.front_size,
        )
        if self.average is not None:
            group.average_weights(self.average)
        return group


@dataclass(frozen=True)
class ExecutionPlan:
    """The strategy of a run, and its settings.

    Attributes:
        strategy: its name.
        reason: why it was chosen, for the user.
        most: how many models a stack has at most; None for all.
        workers: how many models step side by side: in threads, or on streams where they are captured.
        on_streams: whether captured models are ordinary modules, rather than a stack.
        channels_last: whether their convolutions are channels-last in memory.
        compiled: whether models are compiled if the user asks for it; False if compiled steps were wrong.
    """

    strategy: str
    reason: str
    most: int | None = None
    workers: int = 1
    on_streams: bool = False
    channels_last: bool = False
    compiled: bool = True

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> ExecutionPlan:
        """The plan that a run's configuration holds; a ValueError if it holds none."""
        plan = cls(**{"on_streams" if name == _STORED_STREAMS else name: value for name, value in stored.items()})
        counts = [plan.workers, 1 if plan.most is None else plan.most]
        if plan.strategy not in get_args(Strategy) or not all(isinstance(n, int) and n > 0 for n in counts):
            raise ValueError(f"{dict(stored)} is not a strategy with its settings")
        return plan

    def stored(self) -> dict[str, Any]:
        """The plan as a run's configuration and its log hold it."""
        return {_STORED_STREAMS if name == "on_streams" else name: value for name, value in vars(self).items()}

    def groups(self, plan: Plan, modules: Sequence[nn.Module], state: State) -> list[Group]:
        """The models, in groups that step together."""
        if self.strategy == "sequential":
            return plan.sequential(modules, state)
        if self.on_streams:
            return plan.on_streams(modules, state, channels_last=self.channels_last)
        return (plan.graphed if self.strategy == "graphed" else plan.batched)(modules, state, self.most)


def _is_changed(optimizer: torch.optim.Optimizer) -> bool:
    """Whether an optimizer has hooks around its step, or a step that is not that of its class."""
    step = optimizer.step
    own = getattr(step, "__wrapped__" if hasattr(step, "_wrapped_by_lr_sched") else "__func__", None)  # by a scheduler
    hooks = (
        *(optimizer._optimizer_step_pre_hooks, optimizer._optimizer_step_post_hooks),
        *(_global_optimizer_pre_hooks, _global_optimizer_post_hooks),
    )
    return own is not type(optimizer).step or any(hooks)


def _make_static(groups: list[Group]) -> list[Group]:
    """Make steps write in place only, optimizers included, so that they can be captured."""
    for group in groups:
        group.static_memory = True
        group.previous = group.models.copy()
        group.before_previous = group.models.copy() if group.compared else None
        group.state = {name: tensor.clone() for name, tensor in group.state.items()}  # replays write to it
        if type(group.optimizer) in CAPTURABLE:
            make_capturable(group.optimizer)
    return groups


def equal_parts(count: int, most: int | None) -> list[slice]:
    """Slices of at most ``most``, as equal as possible."""
    parts = 1 if most is None else -(-count // most)
    bounds = [round(i * count / parts) for i in range(parts + 1)]
    return [slice(begin, end) for begin, end in itertools.pairwise(bounds)]
