"""The models that a run begins with: one for each preference, or one for all of them until they branch."""

from __future__ import annotations

import warnings
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Self

from torch import nn

from paretomtl.engine.device import free_memory
from paretomtl.engine.models.modules import make_modules, named_tensors
from paretomtl.engine.strategy import Plan
from paretomtl.methods import Linear, State
from paretomtl.methods.base import uniform
from paretomtl.training.preflight.loss_units import FirstLosses, initial_state
from paretomtl.training.settings.settings import Settings

_SIZES = 4  # of a model while it trains: parameters, those of one step ago, and two that Adam keeps


def make_models(settings: Settings, changing: Collection[str] = ()) -> list[nn.Module]:
    """The models of all seeds, with the weights of a warm start if there is one; the same in all processes.

    Names in ``changing`` are those of frozen parameters that passes change.
    """
    start, count = settings.start, len(settings.subproblems)

    def check(module: nn.Module) -> None:
        _warn_of_memory(module, len(settings.model_seeds), settings)

    load = None if start is None else lambda module, i: start.load(module, settings.subproblems[i % count])
    modules = make_modules(
        settings.problem,
        settings.model_seeds,
        settings.device,
        settings.dtype,
        load=load,
        changing=changing,
        check=check,
    )
    tensors = {id(tensor): tensor.detach() for module in modules for tensor in named_tensors(module).values()}
    settings.shares.processes.broadcast_tensors(list(tensors.values()))
    return modules


def _warn_of_memory(module: nn.Module, count: int, settings: Settings) -> None:
    """Warn before the other models are made if all of them need more memory than is free."""
    trained = sum(p.nbytes for p in module.parameters() if p.requires_grad)
    gradients = len(settings.problem.tasks) if settings.method.needs_gramian else 1
    need, free = (_SIZES * count - 1 + gradients) * trained, free_memory(settings.device)  # the first model is there
    if need > free:
        warnings.warn(
            f"{count} models of {trained / 1e9:.2f} GB to train need about {need / 1e9:.1f} GB with Adam, one after "
            f"another, and {free / 1e9:.1f} GB are free. Train some at a time (only=[0, 1], and Front.joined), freeze "
            "what need not be trained (requires_grad_(False)), or take fewer models.",
            stacklevel=6,
        )


@dataclass(frozen=True)
class SharedStart:
    """The first part of a run that branches: one model for each seed, by linear scalarization with equal weights.

    Attributes:
        plan: of the shared models.
        state: of their method, with a row for each seed.
        state_after: of the run's method when they branch, with a row for each model.
    """

    plan: Plan
    state: State
    state_after: State

    @classmethod
    def of(cls, settings: Settings, plan: Plan, state: State, first_losses: FirstLosses) -> Self | None:
        """The shared start of a run; None if its models start on their own.

        Args:
            settings: of the run.
            plan: of its models.
            state: of its method before the first step, of all models.
            first_losses: of untrained models, from which a scale may follow.
        """
        if settings.branch is None:
            return None
        method = Linear(scale=getattr(settings.method, "scale", None))  # weights are equal in the method's units
        row = uniform(1, len(settings.problem.tasks))
        alone = replace(settings, method=method, vectors=[row] * len(settings.seeds), subproblems=[0])
        return cls(replace(plan, method=method, front_size=1), initial_state(alone, first_losses), state)
