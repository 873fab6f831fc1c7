"""Factories of optimizers and schedulers: checks of their signatures, and calls."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import torch

from paretomtl._support.signatures import check_takes

_TOTALS = ("T_max", "total_iters", "total_steps")  # names of the total in torch's schedulers


def check_factories(optimizer: Any, scheduler: Any) -> None:
    """Refuse anything that cannot make an optimizer or a scheduler; None is the default of each."""
    if optimizer is not None:
        _check_factory("optimizer", optimizer, torch.optim.Optimizer, "lambda p: torch.optim.Adam(p, lr=1e-3)")
        rule = "be a function of (parameters), such as a lambda that sets all else"
        check_takes("optimizer", optimizer, rule, "parameters")
    if scheduler is not None:
        kind = torch.optim.lr_scheduler.LRScheduler
        example = "lambda o, total: torch.optim.lr_scheduler.CosineAnnealingLR(o, total)"
        _check_factory("scheduler", scheduler, kind, example)
        rule = "be a function of (optimizer) or (optimizer, total), such as a lambda that sets all else"
        check_takes("scheduler", scheduler, rule, *["optimizer", "total"][: 1 + takes_total(scheduler)])


def _check_factory(name: str, factory: Any, kind: type, example: str) -> None:
    if not callable(factory) or isinstance(factory, kind):
        kind_name = type(factory).__name__
        raise TypeError(f"'{name}' must be a function that makes one. Got {kind_name} instead: write {example}.")


def takes_total(scheduler: Callable[..., Any]) -> bool:
    """Whether a factory of schedulers takes ``(optimizer, total)``, rather than ``(optimizer)``.

    A second parameter receives the total if its name is ``total``, or if it has no default. In a scheduler class it
    must be named like a total: the second parameter of ``ExponentialLR`` is a factor.
    """
    try:
        parameters = list(inspect.signature(scheduler).parameters.values())
    except (TypeError, ValueError):
        return False
    placed = [each for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    if len(placed) < 2:
        return False
    made = scheduler.func if isinstance(scheduler, functools.partial) else scheduler
    is_class = isinstance(made, type) and issubclass(made, torch.optim.lr_scheduler.LRScheduler)
    required = placed[1].default is inspect.Parameter.empty
    return placed[1].name == "total" or (required and (not is_class or placed[1].name in _TOTALS))


def make_scheduler(scheduler: Callable[..., Any], optimizer: torch.optim.Optimizer, total: int) -> Any:
    """Make a scheduler; the factory gets the planned number of steps if it takes it."""
    if not takes_total(scheduler):
        return scheduler(optimizer)
    if total == 0:
        raise ValueError(
            "'scheduler' must be a function of (optimizer) alone for data without a length: it is not known how many "
            "steps are planned. Got one of (optimizer, total)."
        )
    return scheduler(optimizer, total)
