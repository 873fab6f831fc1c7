"""Signatures of users' functions, checked before training rather than when they are called."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any


def check_takes(name: str, function: Callable[..., Any], rule: str, *arguments: str, **named: Any) -> None:
    """Refuse a function that cannot be called with these arguments; accept one whose signature is unknown.

    Args:
        name: the name of the function in error messages.
        function: the function to be called.
        rule: what it must do, after "must".
        arguments: stand-ins for the positional arguments.
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


def _shown(parameters: Mapping[str, inspect.Parameter]) -> str:
    """The names of parameters as in a call, without defaults and annotations, which may be long."""
    return (
        f"({', '.join(str(each.replace(annotation=each.empty, default=each.empty)) for each in parameters.values())})"
    )
