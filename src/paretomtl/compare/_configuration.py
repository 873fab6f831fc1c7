"""The configuration of a comparison: methods and options, in the form that stored rows are matched by."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from paretomtl._support.argument_checks import quote
from paretomtl.methods import Method, resolve_method
from paretomtl.methods.description import describe_definition, without_addresses
from paretomtl.methods.lookup import name_in_tables, option_names, set_options
from paretomtl.problems import Problem
from paretomtl.training.options import DEFAULTS


def choose_methods(
    methods: Sequence[str | Method],
    problem: Problem,
    settings: Mapping[str, Any] | None = None,
    log: Callable[[str], None] = lambda text: None,
) -> dict[str, Method]:
    """The methods as the problem's recipe configures them, by the names in their rows.

    Args:
        methods: names of methods, or methods.
        problem: the problem that they train.
        settings: options by name, for every method that has them; an option that no method has is an error.
        log: called with a line for each method that does not have an option.
    """
    chosen: dict[str, Method] = {}
    unused = dict(settings or {})
    for each in methods:
        method = problem.recipe.methods.get(each) if isinstance(each, str) else None
        method = method or resolve_method(each)
        name = name_in_tables(each, method)
        known = option_names(method)
        own = {option: value for option, value in (settings or {}).items() if option in known}
        for option in settings or {}:
            if option in known:
                unused.pop(option, None)
            else:
                log(f"{name} has no option {option!r}, and is trained without")
        method = set_options(method, own) if own else method
        if name in chosen and describe_definition(chosen[name]) != describe_definition(method):
            raise ValueError(f"'methods' must have distinct names. Got two that are called {quote(name)}.")
        chosen[name] = method
    if unused:
        every = sorted({option for method in chosen.values() for option in option_names(method)})
        first = next(iter(unused))
        raise ValueError(
            f"'method_settings' must be options of some of the methods: {every}. Got {quote(first)} instead."
        )
    return chosen


def other_than_default(options: Mapping[str, str]) -> dict[str, str]:
    """The options that differ from their defaults, so that rows from before an option was added still match."""
    relevant = {name: value for name, value in options.items() if name != "progress"}  # older rows store it, too
    return {name: value for name, value in relevant.items() if value != option_text(DEFAULTS.get(name))}


def option_text(value: Any) -> str:
    """An option as text that is the same in every process."""
    return without_addresses(str(value))
