"""Lookup of problems, methods and optimizers by their names on the command line."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from paretomtl._support.files.atomic_files import file_name
from paretomtl._support.imports.import_path import FORMS, absolute_name, is_file, relative_name, short_name
from paretomtl._support.terminal import print_text, text_console
from paretomtl._support.text import suggest_name
from paretomtl.cli._options import OPTIMIZERS, parse_settings
from paretomtl.methods import Method, resolve_method
from paretomtl.methods.lookup import option_names, set_options
from paretomtl.problems import PROBLEMS, NamedProblem, OptimizerFactory, Problem

_UNNAMED = str(inspect.signature(Problem).parameters["name"].default)


def _suggestion(name: str) -> str:
    """Suggest a name that may have been meant instead of an unknown one."""
    file = Path(name.rpartition(":")[0] if ":" in name else name)
    if file.suffix == ".py" or file.with_suffix(".py").is_file():
        return f" A problem in a file needs its name in that file, such as {file.with_suffix('.py')}:problem."
    return suggest_name(name, PROBLEMS)


def find_problem(name: str, settings: Sequence[str] = ()) -> Problem:
    """Return a built-in problem by name, or the user's own.

    Settings such as ``recipe=paper`` are arguments of the function that makes it.
    """
    named = named_problem(name, settings)
    return PROBLEMS[name](**_arguments(name, PROBLEMS[name], settings)) if named is None else named.make()


def named_problem(name: str, settings: Sequence[str] = ()) -> NamedProblem | None:
    """Return a reference to the user's own problem, which other processes can resolve; None for a built-in one."""
    if name in PROBLEMS:
        return None
    try:
        named = NamedProblem(name)
    except ValueError:
        raise ValueError(
            f"'PROBLEM' must be one of {', '.join(PROBLEMS)}, {FORMS}. Got {name!r} instead.{_suggestion(name)}"
        ) from None
    make = named.resolve()
    if settings and (isinstance(make, Problem) or not callable(make)):
        raise ValueError(f"'--with' must go with a function that makes a problem. '{name}' is not one.")
    return NamedProblem(absolute_name(name), _arguments(name, make, settings))


def problem_in_python(name: str, settings: Sequence[str] = ()) -> str:
    """Return Python code that makes ``model``, a model of the problem with this name."""
    module, _, attribute = name.rpartition(":")
    if is_file(module):
        arguments = _arguments(name, NamedProblem(name).resolve(), settings)
        more = f", {arguments!r}" if arguments else ""
        import_line = "from paretomtl.problems import NamedProblem"
        return f"{import_line}\n\nmodel = NamedProblem({relative_name(absolute_name(name))!r}{more}).make().model()"
    if name in PROBLEMS:
        import_line, code = "from paretomtl.problems import PROBLEMS", f'PROBLEMS["{name}"]'
        is_made, make = False, PROBLEMS[name]
    else:
        make = getattr(importlib.import_module(module), attribute)
        import_line, code, is_made = f"from {module} import {attribute}", attribute, isinstance(make, Problem)
    if not is_made:
        known = list(inspect.signature(make).parameters) if settings else []
        arguments = parse_settings("--with", settings, known, name)
        code += f"({', '.join(f'{key}={value!r}' for key, value in arguments.items())})"
    return f"{import_line}\n\nmodel = {code}.model()"


def name_on_disk(argument: str, problem: Problem) -> str:
    """The name of a problem in paths; an unnamed problem is called after its file or attribute."""
    unnamed = argument not in PROBLEMS and problem.name == _UNNAMED
    return file_name(short_name(argument) if unnamed else problem.name)


def ranking_remedy(name: str) -> str:
    """How a problem gets a validation split: the data sets of this library have an argument for it."""
    known = inspect.signature(PROBLEMS[name]).parameters if name in PROBLEMS else ()
    return "add --with validation=True" if "validation" in known else "give `val`"


def _arguments(name: str, make: Callable[..., Any], settings: Sequence[str]) -> dict[str, Any]:
    """The arguments of a function from the command line."""
    return parse_settings("--with", settings, list(inspect.signature(make).parameters), name) if settings else {}


def find_method(name: str, settings: Sequence[str], problem: Problem) -> Method:
    """A method by name, as the problem's recipe configures it, with settings such as ``epsilon=0.2``."""
    method = problem.recipe.methods.get(name, name)
    if not settings:
        return resolve_method(method)
    changes = parse_settings("--set", settings, option_names(method), name)
    try:
        return set_options(method, changes)
    except TypeError as error:
        raise ValueError(f"'--set' must fit the options of '{name}'. Got {', '.join(settings)}: {error}") from None


def method_settings(settings: Sequence[str], methods: Sequence[str], problem: Problem) -> dict[str, Any]:
    """Return settings such as ``scale=auto`` for those methods that have the option; an error if none has it."""
    known = {name: option_names(problem.recipe.methods.get(name) or resolve_method(name)) for name in methods}
    every = list(dict.fromkeys(option for options in known.values() for option in options))
    values = parse_settings("--set", settings, every, ", ".join(methods))
    for option in values:
        without = [name for name in methods if option not in known[name]]
        if without:
            text = f"{option} is not an option of {', '.join(without)}; trained without it."
            print_text(text_console(stderr=True), text, style="dim")
    return values


def settings_of(method: str, settings: Sequence[str], problem: Problem) -> list[str]:
    """The settings such as ``scale=auto`` whose option a method has."""
    known = option_names(problem.recipe.methods.get(method) or resolve_method(method))
    return [setting for setting in settings if setting.partition("=")[0].strip() in known]


def find_optimizer(
    name: str | None, learning_rate: float | None, weight_decay: float | None
) -> OptimizerFactory | None:
    """Return an optimizer factory for the command line's options; None leaves the choice to the recipe."""
    if name is None and learning_rate is None and weight_decay is None:
        return None
    if name is not None and name not in OPTIMIZERS:
        raise ValueError(f"'--optimizer' must be one of {', '.join(OPTIMIZERS)}. Got {name!r} instead.")
    for option, value in (("--learning-rate", learning_rate), ("--weight-decay", weight_decay)):
        if value is not None and not value >= 0:
            raise ValueError(f"'{option}' must not be negative. Got {value} instead.")
    options = {"lr": learning_rate, "weight_decay": weight_decay}
    given = {key: value for key, value in options.items() if value is not None}
    kind: Any = OPTIMIZERS[name or "adam"]
    return lambda parameters: kind(parameters, **given)
