"""Methods and options of a comparison, as they are told apart in stored rows."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from paretomtl.methods import Method, resolve_method
from paretomtl.methods._definition import describe_definition
from paretomtl.methods._method import without_addresses
from paretomtl.methods._registry import name_in_tables
from paretomtl.problems import Problem
from paretomtl.training import fit

FIT_OPTIONS = {name: parameter.default for name, parameter in inspect.signature(fit).parameters.items()}
"""The arguments of fit with their defaults."""


def choose_methods(methods: Sequence[str | Method], problem: Problem) -> dict[str, Method]:
    """The methods as the problem's recipe configures them, by the names that their rows have."""
    chosen: dict[str, Method] = {}
    for each in methods:
        method = problem.recipe.methods.get(each) if isinstance(each, str) else None
        method = method or resolve_method(each)
        name = name_in_tables(each, method)
        if name in chosen and describe_definition(chosen[name]) != describe_definition(method):
            raise ValueError(f"'methods' must have distinct names. Got two that are called {name!r}.")
        chosen[name] = method
    return chosen


def other_than_default(options: Mapping[str, str]) -> dict[str, str]:
    """The options that decide something, so that rows from before an option was added are still known."""
    decide = {name: value for name, value in options.items() if name != "progress"}  # once stored with them
    return {name: value for name, value in decide.items() if value != option_text(FIT_OPTIONS.get(name))}


def option_text(value: Any) -> str:
    """An option as text that does not change from one process to the next."""
    return without_addresses(str(value))
