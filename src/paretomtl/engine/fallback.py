"""Fallback of stacks that fail in the middle of a run: single models go on from the same state, one after another."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from paretomtl.engine.autotune.trial import describe_error
from paretomtl.engine.model_group import Group
from paretomtl.engine.strategy import ExecutionPlan, Plan
from paretomtl.methods import slice_state

_FOR_CAPTURE = ("fused", "foreach", "capturable")


@dataclass(frozen=True)
class Fallback:
    """Record of the step at which a run left its stacks, and why.

    Attributes:
        step: how many steps were taken as stacks.
        before: their strategy.
        reason: what went wrong.
    """

    step: int
    before: str
    reason: str

    @classmethod
    def of(cls, stored: Mapping[str, Any] | None) -> Fallback | None:
        """Read the record from a checkpoint; None if the run still has its stacks."""
        if stored is None:
            return None
        fallback = cls(**stored)
        if (
            not isinstance(fallback.step, int)
            or not isinstance(fallback.before, str)
            or not isinstance(fallback.reason, str)
        ):
            raise ValueError(f"{dict(stored)} does not say where stacks were left")
        return fallback

    @classmethod
    def after(cls, step: int, plan: ExecutionPlan, error: Exception) -> Fallback:
        """The record of stacks that failed with an error after ``step`` steps."""
        return cls(step, plan.strategy, describe_error(error))

    @property
    def plan(self) -> ExecutionPlan:
        """The plan by which the models train since then."""
        return ExecutionPlan("sequential", self.reason)

    def __str__(self) -> str:
        return f"{self.before} until step {self.step}, then sequential: {self.reason}"

    def warn(self, what: str) -> None:
        """Warn about it, once the work is done.

        Args:
            what: the work that the stack could not do, such as "step 3".
        """
        warnings.warn(
            f"{what} failed with the models as a stack, but succeeded one after another. Training goes on one after "
            f'another (strategy="sequential"), which may take longer; nothing is lost. {self.reason}.',
            stacklevel=2,
        )


def is_failed_stack(error: Exception, groups: Sequence[Group]) -> bool:
    """Whether an error is that of a stack that was rolled back, so that its models can do the same work alone."""
    alone = not groups[0].processes.is_distributed  # others may not fail, and would wait for this process
    return alone and any(group.failed is error for group in groups)


def unstack(plan: Plan, groups: Sequence[Group]) -> list[Group]:
    """One group for each model of some groups, in its exact state: parameters, optimizer, scheduler, method.

    Args:
        plan: what all groups have in common.
        groups: stacks; they must not be used afterwards.
    """
    singles: list[Group] = []
    for group in groups:
        stored = group.stored()
        if group.models.hook is not None:  # copies would carry it, and with it the whole stack
            group.models.hook.remove()
        with torch.no_grad():
            modules = [group.models.extract(k) for k in range(group.models.count)]
        shapes = [parameter.shape for part in group.optimizer.param_groups for parameter in part["params"]]
        for k, single in enumerate(plan.sequential(modules, group.state)):
            rows = slice(k, k + 1)
            single.load(
                {
                    "tensors": _rows(stored["tensors"], rows),
                    "previous": _rows(stored["previous"], rows),
                    "alive": stored["alive"][rows].clone(),
                    "weights": None if stored["weights"] is None else stored["weights"][rows].clone(),
                    "state": _rows(stored["state"], rows),
                    "optimizer": _optimizer_of(stored["optimizer"], shapes, k, single, captured=group.static_memory),
                    "scheduler": copy.deepcopy(stored["scheduler"]),
                    "average": _average_of(stored, rows),
                }
            )
            singles.append(single)
    return singles


def _average_of(stored: Mapping[str, Any], rows: slice) -> dict[str, Any] | None:
    if "average" not in stored:
        return None
    average = stored["average"]
    return {"values": _rows(average["values"], rows), "steps": average["steps"]}


def _rows(tensors: Mapping[str, Tensor], rows: slice) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in slice_state(dict(tensors), rows).items()}


def _optimizer_of(
    stored: Mapping[str, Any], shapes: Sequence[torch.Size], k: int, single: Group, *, captured: bool
) -> dict[str, Any]:
    """The state of a stack's optimizer for model k, as the optimizer of that model stores it.

    Tensors shaped like a parameter have a row for each model. The rest, such as the step count, is common to all.
    """
    parts = copy.deepcopy(stored["param_groups"])
    if captured:  # eager steps do not need the options of a capture
        for part, own in zip(parts, single.optimizer.param_groups, strict=True):
            part.update({name: own[name] for name in _FOR_CAPTURE if name in own})

    def value_of(name: str, value: Any, shape: torch.Size) -> Any:
        if not isinstance(value, Tensor):
            return copy.deepcopy(value)
        if value.shape == shape:
            return value[k].clone()
        return value.to("cpu", copy=True) if captured and name == "step" else value.clone()

    state = {
        index: {name: value_of(name, value, shapes[index]) for name, value in values.items()}
        for index, values in stored["state"].items()
    }
    return {"state": state, "param_groups": parts}
