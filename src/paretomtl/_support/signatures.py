"""Whether a function can be called as it is going to be: asked before training, rather than found out in its midst."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import torch

_TOTALS = ("T_max", "total_iters", "total_steps")  # how schedulers of torch call it


def check_takes(name: str, function: Callable[..., Any], rule: str, *arguments: str, **named: Any) -> None:
    """Refuse a function that cannot be called with these arguments; let pass what does not show its parameters.

    Args:
        name: what error messages call it.
        function: what is going to be called.
        rule: what it must be, after "must".
        arguments: what it is going to be called with, in words.
        named: arguments by name.
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*arguments, **named)
    except TypeError as error:
        shown = getattr(function, "__name__", type(function).__name__)
        raise TypeError(f"'{name}' must {rule}. Got {shown}{_shown(signature.parameters)} instead: {error}.") from None


def check_factories(optimizer: Any, scheduler: Any) -> None:
    """Refuse what does not make an optimizer or a scheduler; None is the default of each."""
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
        found = type(factory).__name__
        raise TypeError(f"'{name}' must be a function that makes one. Got {found} instead: write {example}.")


def takes_total(scheduler: Callable[..., Any]) -> bool:
    """Whether a factory of schedulers takes ``(optimizer, total)``, rather than ``(optimizer)``.

    A second parameter asks for the total if it is called ``total``, or has no default. Of a scheduler's own class it
    must have a name that means it: ``ExponentialLR`` asks for a factor there.
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
    """The scheduler of a factory, which is told how many times it is going to step if it asks."""
    if not takes_total(scheduler):
        return scheduler(optimizer)
    if total == 0:
        raise ValueError(
            "'scheduler' must be a function of (optimizer) alone for data without a length: it is not known how many "
            "steps are planned. Got one of (optimizer, total)."
        )
    return scheduler(optimizer, total)


def _shown(parameters: Mapping[str, inspect.Parameter]) -> str:
    """The names of parameters as in a call: defaults and annotations of users may be long."""
    return (
        f"({', '.join(str(each.replace(annotation=each.empty, default=each.empty)) for each in parameters.values())})"
    )
