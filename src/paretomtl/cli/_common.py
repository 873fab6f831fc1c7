"""What several commands share: names of problems and methods, errors, tables."""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, ParamSpec

import torch
import typer
from rich.text import Text

from paretomtl._support.import_path import FORMS, absolute_name, is_file, is_of_library
from paretomtl._support.paths import is_in_package
from paretomtl._support.signals import sigterm_interrupts, stopped_by
from paretomtl._support.terminal import escaped, json_text, shown_warnings, text_console
from paretomtl._support.text import suggest_name
from paretomtl.cli._again import offering_to_go_on
from paretomtl.methods import METHODS, Method, resolve_method
from paretomtl.methods.lookup import option_names, set_options
from paretomtl.problems import PROBLEMS, NamedProblem, OptimizerFactory, Problem

P = ParamSpec("P")

BAD_INPUT, NOTHING_FITS, LOST, NOT_STORED, SOME_FAILED, INTERRUPTED, TERMINATED = 2, 3, 4, 5, 6, 130, 143
"""Exit codes besides 0, and 1 for everything unexpected."""

REPAIRABLE = 1
"""The exit code of ``doctor`` for something that it can repair, as of programs that look for differences."""

OPTIMIZERS = {
    "sgd": torch.optim.SGD,
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
    "rmsprop": torch.optim.RMSprop,
}

PROBLEM_HELP = (
    "A built-in name (see [bold]paretomtl list[/]), or your own as FILE.py:NAME or MODULE:NAME, a Problem or a "
    "function that makes one."
)
METHOD_HELP = (
    "A built-in name, torchjd:NAME, or your own as FILE.py:NAME or MODULE:NAME, a Method, its class, or a function "
    "that makes one."
)


def complete_problem(start: str) -> list[str]:
    """For tab completion."""
    return [name for name in PROBLEMS if name.startswith(start)]


def complete_method(start: str) -> list[str]:
    """For tab completion."""
    return [name for name in METHODS if name.startswith(start)]


# Options that several commands share.
ProblemArgument = Annotated[
    str,
    typer.Argument(metavar="PROBLEM", help=PROBLEM_HELP, autocompletion=complete_problem, show_default=False),
]
RunArgument = Annotated[
    Path, typer.Argument(metavar="RUN", help="A run's folder, or that of a stored front.", show_default=False)
]
FrontArgument = Annotated[
    Path,
    typer.Argument(
        metavar="RUN", help="A run's folder, that of a stored front, or a .csv file of losses.", show_default=False
    ),
]
ProblemSettings = Annotated[
    list[str] | None,
    typer.Option(
        "--with", metavar="NAME=VALUE", help="An argument of the problem, such as recipe=paper; may be repeated."
    ),
]
USUAL_COUNT = "5 for two tasks, 15 for three, 25 for more; one per task for single-task, 5 for mgda and other starts"
Preferences = Annotated[int | None, typer.Option(help=f"How many models; if left out, {USUAL_COUNT}.")]
PreferenceVectors = Annotated[
    str | None,
    typer.Option(help=f"How many models, or which: vectors such as 1,0:0.7,0.7:0,1. If left out, {USUAL_COUNT}."),
]
MethodSettings = Annotated[
    list[str] | None,
    typer.Option("--set", help="An option of the methods that have it, such as scale=auto; may be repeated."),
]
Epochs = Annotated[int | None, typer.Option(help="How long; the problem's recipe if left out.")]
BatchSize = Annotated[int | None, typer.Option(help="The problem's recipe if left out.")]
OptimizerName = Annotated[str | None, typer.Option(help=f"{', '.join(OPTIMIZERS)}; the problem's recipe if left out.")]
LearningRate = Annotated[
    float | None,
    typer.Option("--lr", "--learning-rate", help="Learning rate; implies adam if --optimizer is not given."),
]
OptimizerNumber = Annotated[float | None, typer.Option(help="Of --optimizer; implies adam if that is not given.")]
StrategyName = Annotated[str, typer.Option(help="auto, sequential, batched or graphed.")]
Device = Annotated[str | None, typer.Option(help="cpu or cuda; the GPU if there is one.")]
Precision = Annotated[str, typer.Option(help="float32, tf32, bfloat16 or float64.")]
WorkerCount = Annotated[int | None, typer.Option(help="Models side by side on a CPU; measured if left out, with auto.")]
Accumulate = Annotated[int, typer.Option(help="Micro-batches that a batch is cut into, to need less memory.")]
WeighEvery = Annotated[int, typer.Option(help="Weigh the tasks anew every so many steps; more than 1 approximates.")]
ClipNorm = Annotated[float | None, typer.Option(help="The longest update of each model.")]
ProgressName = Annotated[str, typer.Option(help="auto, rich, plain or quiet.")]
Keep = Annotated[str, typer.Option(help="Which epoch to keep: last, or best on validation.")]
Patience = Annotated[
    int | None,
    typer.Option(help="End when no model improved on validation in this many epochs; goes well with --keep best."),
]


def clean_errors(command: Callable[P, None]) -> Callable[P, None]:
    """Errors that this library raises about its input are one line; all others keep their traceback."""

    @functools.wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            with sigterm_interrupts(), shown_warnings(), offering_to_go_on():
                command(*args, **kwargs)
        except KeyboardInterrupt as error:
            for line in ("Stopped.", *getattr(error, "__notes__", [])):
                text_console(stderr=True).print(line, highlight=False, soft_wrap=True)
            raise typer.Exit(code_of_stop()) from None
        except (ValueError, TypeError, IndexError, OSError, ModuleNotFoundError) as error:
            if not _is_about_input(error):
                raise
            told = [escaped(text, lines=False) for text in (str(error), *getattr(error, "__notes__", []))]
            said = Text.assemble(("Error:", "red"), " " + "\n".join(told))
            text_console(stderr=True).print(said, highlight=False, soft_wrap=True)
            raise typer.Exit(BAD_INPUT) from None

    return wrapped


def code_of_stop() -> int:
    """The exit code of a command that was stopped: by SIGTERM, as schedulers send it, or by Ctrl-C."""
    return TERMINATED if stopped_by() is signal.SIGTERM else INTERRUPTED


def _hint(name: str) -> str:
    """What may have been meant by a name that is none."""
    file = Path(name.rpartition(":")[0] if ":" in name else name)
    if file.suffix == ".py" or file.with_suffix(".py").is_file():
        return f" In a file, the problem has a name, too: {file.with_suffix('.py')}:problem, if it is called so there."
    return suggest_name(name, PROBLEMS)


def find_problem(name: str, settings: Sequence[str] = ()) -> Problem:
    """A built-in problem by name, or one of the user's own.

    Settings such as ``recipe=paper`` are arguments of the function that makes it.
    """
    named = named_problem(name, settings)
    return PROBLEMS[name](**_arguments(name, PROBLEMS[name], settings)) if named is None else named.make()


def named_problem(name: str, settings: Sequence[str] = ()) -> NamedProblem | None:
    """A problem of the user's own, to be found by its name elsewhere; None for a built-in one."""
    if name in PROBLEMS:
        return None
    try:
        named = NamedProblem(name)
    except ValueError:
        raise ValueError(
            f"'PROBLEM' must be one of {', '.join(PROBLEMS)}, {FORMS}. Got {name!r} instead.{_hint(name)}"
        ) from None
    found = named.resolve()
    if settings and (isinstance(found, Problem) or not callable(found)):
        raise ValueError(f"'--with' must go with a function that makes a problem. '{name}' is none.")
    return NamedProblem(absolute_name(name), _arguments(name, found, settings))


def problem_in_python(name: str, settings: Sequence[str] = ()) -> str:
    """Lines of Python that make a problem of this name, and ``model``, one of its models."""
    module, _, attribute = name.rpartition(":")
    if is_file(module):
        given = _arguments(name, NamedProblem(name).resolve(), settings)
        said = f", {given!r}" if given else ""
        brought = "from paretomtl.problems import NamedProblem"
        return f"{brought}\n\nmodel = NamedProblem({absolute_name(name)!r}{said}).make().model()"
    if name in PROBLEMS:
        brought, made = "from paretomtl.problems import PROBLEMS", f'PROBLEMS["{name}"]'
        ready, make = False, PROBLEMS[name]
    else:
        make = getattr(importlib.import_module(module), attribute)
        brought, made, ready = f"from {module} import {attribute}", attribute, isinstance(make, Problem)
    if not ready:
        known = list(inspect.signature(make).parameters) if settings else []
        given = _parsed("--with", settings, known, name)
        made += f"({', '.join(f'{key}={value!r}' for key, value in given.items())})"
    return f"{brought}\n\nmodel = {made}.model()"


def _arguments(name: str, make: Callable[..., Any], settings: Sequence[str]) -> dict[str, Any]:
    """The arguments of a function from the command line."""
    return _parsed("--with", settings, list(inspect.signature(make).parameters), name) if settings else {}


def _parsed(option: str, settings: Sequence[str], known: Sequence[str], owner: str) -> dict[str, Any]:
    """Settings such as ``epsilon=0.2``: numbers, tuples, True, False and None as in Python, text for all else."""
    found = {}
    for setting in settings:
        key, separator, value = setting.partition("=")
        if not separator or key not in known:
            raise ValueError(
                f"'{option}' must be NAME=VALUE with a name of {list(known)} for '{owner}'. Got {setting!r} instead."
                f"{'' if key in known else suggest_name(key, known)}"
            )
        try:
            found[key] = ast.literal_eval(value)
        except (ValueError, SyntaxError, RecursionError, MemoryError):  # the last two for brackets without end
            found[key] = value
    return found


def find_method(name: str, settings: Sequence[str], problem: Problem) -> Method:
    """A method by name, as the problem's recipe configures it, with settings such as ``epsilon=0.2``."""
    method = problem.recipe.methods.get(name, name)
    if not settings:
        return resolve_method(method)
    changes = _parsed("--set", settings, option_names(method), name)
    try:
        return set_options(method, changes)
    except TypeError as error:
        raise ValueError(f"'--set' must fit the options of '{name}'. Got {', '.join(settings)}: {error}") from None


def method_settings(settings: Sequence[str], methods: Sequence[str], problem: Problem) -> dict[str, Any]:
    """Settings such as ``scale=auto`` for all of these methods that have such an option; an error where none has."""
    known = {name: option_names(problem.recipe.methods.get(name) or resolve_method(name)) for name in methods}
    every = list(dict.fromkeys(option for options in known.values() for option in options))
    found = _parsed("--set", settings, every, ", ".join(methods))
    for option in found:
        without = [name for name in methods if option not in known[name]]
        if without:
            text = f"{option} is no option of {', '.join(without)}, trained without it."
            text_console(stderr=True).print(text, style="dim", highlight=False, soft_wrap=True)
    return found


def find_optimizer(
    name: str | None, learning_rate: float | None, weight_decay: float | None
) -> OptimizerFactory | None:
    """A factory from the command line's options; None leaves it to the recipe."""
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


def numbers_of(option: str, text: str | None) -> list[float] | None:
    """Numbers separated by commas."""
    if text is None:
        return None
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"'{option}' must be numbers separated by commas. Got {text!r} instead.") from None


def preferences_of(text: str | None) -> int | list[list[float]] | None:
    """How many preferences, or which."""
    if text is None:
        return None
    try:
        return int(text)
    except ValueError:
        pass
    try:
        rows = [[float(part) for part in row.split(",")] for row in text.split(":")]
    except ValueError:
        rows = []
    if len({len(row) for row in rows}) != 1:
        raise ValueError(
            "'--preferences' must be a whole number, or vectors with a part for each task, such as 1,0:0.7,0.7:0,1. "
            f"Got {text!r} instead."
        )
    return rows


def print_above(text: str) -> None:
    """A line on standard error, above a bar that is drawn there: another console would write into the bar."""
    print(escaped(text), file=sys.stderr, flush=True)


def print_json(content: Any) -> None:
    """JSON on standard output, and nothing else."""
    print(json_text(content))


def _is_about_input(error: Exception) -> bool:
    """Whether this library raised an error, or met one of the system, rather than code of the user's."""
    files = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    if isinstance(error, OSError):  # files are opened by the standard library, for the one or the other
        files = [file for file in files if is_in_package(file) or not is_of_library(file)]
    return is_in_package(files[-1])
