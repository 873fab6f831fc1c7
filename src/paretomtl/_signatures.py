"""Whether a function can be called as it is going to be: asked before training, rather than found out in its midst."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import torch


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


def check_factories(optimizer: Any, scheduler: Any, *scheduled: str) -> None:
    """Refuse what does not make an optimizer, or a scheduler of what is ``scheduled``; None is the default of each."""
    for name, factory, arguments in (("optimizer", optimizer, ("parameters",)), ("scheduler", scheduler, scheduled)):
        if factory is None:
            continue
        if not callable(factory) or isinstance(factory, torch.optim.Optimizer):
            raise TypeError(f"'{name}' must be a function that makes one. Got {type(factory).__name__} instead.")
        given = ", ".join(arguments)
        check_takes(name, factory, f"be a function of ({given}), such as a lambda that sets all else", *arguments)


def _shown(parameters: Mapping[str, inspect.Parameter]) -> str:
    """The names of parameters as in a call: defaults and annotations of users may be long."""
    return (
        f"({', '.join(str(each.replace(annotation=each.empty, default=each.empty)) for each in parameters.values())})"
    )
