"""Arguments and options that several commands share, and the parsers of their values.

Nothing here imports torch: names of problems, methods and optimizers come from tables that import an entry when it is
looked up.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from paretomtl._support.imports.lazy_imports import LazyTable
from paretomtl._support.text import suggest_name
from paretomtl.methods.registry import METHODS
from paretomtl.problems.registry import PROBLEMS
from paretomtl.training.options import RULES

if TYPE_CHECKING:
    from torch.optim import Optimizer

OPTIMIZERS: Mapping[str, type[Optimizer]] = LazyTable(
    {
        "sgd": "torch.optim:SGD",
        "adam": "torch.optim:Adam",
        "adamw": "torch.optim:AdamW",
        "rmsprop": "torch.optim:RMSprop",
    }
)


def complete_problem(start: str) -> list[str]:
    """Names of built-in problems for tab completion."""
    return [name for name in PROBLEMS if name.startswith(start)]


def complete_method(start: str) -> list[str]:
    """Names of built-in methods for tab completion."""
    return [name for name in METHODS if name.startswith(start)]


def _option(name: str, *flags: str, **more: Any) -> Any:
    """Declare a training option; its help text is the meaning in ``RULES``."""
    return typer.Option(*flags, help=RULES[name].meaning, **more)


METHOD_HELP = (
    "Name of a built-in method, torchjd:NAME, or your own as FILE.py:NAME or MODULE:NAME: a Method, its class, or a "
    "function that returns one."
)
_USUAL_COUNT = (
    "5 for two tasks, 15 for three, 25 for more; one per task for single-task; 5 for methods without preferences, such "
    "as mgda"
)

ProblemArgument = Annotated[
    str,
    typer.Argument(
        metavar="PROBLEM",
        help="Name of a built-in problem (see [bold]paretomtl list[/]), or your own as FILE.py:NAME or MODULE:NAME: a "
        "Problem, or a function that returns one.",
        autocompletion=complete_problem,
        show_default=False,
    ),
]
RunArgument = Annotated[
    Path, typer.Argument(metavar="RUN", help="Folder of a run or of a stored front.", show_default=False)
]
FrontArgument = Annotated[
    Path,
    typer.Argument(
        metavar="RUN",
        help="Folder of a run or of a stored front, or a .csv file of losses.",
        show_default=False,
    ),
]
ProblemSettings = Annotated[
    list[str] | None,
    typer.Option(
        "--with", metavar="NAME=VALUE", help="Argument of the problem, such as recipe=paper; may be repeated."
    ),
]
Preferences = Annotated[int | None, typer.Option(help=f"Number of models; default: {_USUAL_COUNT}.")]
PreferenceVectors = Annotated[
    str | None,
    typer.Option(
        help=f"Number of models, or their preference vectors, such as 1,0:0.7,0.7:0,1; default: {_USUAL_COUNT}."
    ),
]
MethodSettings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="Option of the methods that have it, such as scale=auto; may be repeated.",
    ),
]
Epochs = Annotated[int | None, _option("epochs")]
BatchSize = Annotated[int | None, _option("batch_size")]
OptimizerName = Annotated[
    str | None, typer.Option(help=f"Optimizer: {', '.join(OPTIMIZERS)}; default: the problem's recipe.")
]
LearningRate = Annotated[
    float | None,
    typer.Option("--lr", "--learning-rate", help="Learning rate; implies adam if --optimizer is not given."),
]
WeightDecay = Annotated[float | None, typer.Option(help="Weight decay; implies adam if --optimizer is not given.")]
Seed = Annotated[int, _option("seed")]
StrategyName = Annotated[str, _option("strategy")]
Device = Annotated[str | None, _option("device")]
Precision = Annotated[str, _option("precision")]
WorkerCount = Annotated[int | None, _option("workers")]
Accumulate = Annotated[int, _option("accumulate")]
WeighEvery = Annotated[int, _option("weigh_every", metavar="N")]
ClipNorm = Annotated[float | None, _option("clip_norm")]
Compile = Annotated[bool, _option("compile", "--compile")]
Keep = Annotated[str, _option("keep")]
Patience = Annotated[int | None, _option("patience")]
Minutes = Annotated[float | None, _option("minutes")]
Branch = Annotated[float | None, _option("branch", metavar="SHARE")]
Average = Annotated[float | None, _option("average", metavar="SHARE")]
Resume = Annotated[bool, _option("resume", "--resume")]
CheckpointSeconds = Annotated[float, _option("checkpoint_seconds")]
ProgressName = Annotated[str, _option("progress")]


def parse_numbers(option: str, text: str | None) -> list[float] | None:
    """Numbers separated by commas."""
    if text is None:
        return None
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"'{option}' must be numbers separated by commas. Got {text!r} instead.") from None


def parse_preferences(text: str | None) -> int | str | list[list[float]] | None:
    """The number of preferences, the vectors themselves, or "reachable" with a number or without."""
    if text is None or text.partition(":")[0] == "reachable":
        return text
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
            "'--preferences' must be a whole number, vectors with a part for each task, such as 1,0:0.7,0.7:0,1, or "
            "reachable:COUNT. "
            f"Got {text!r} instead."
        )
    return rows


def parse_settings(option: str, settings: Sequence[str], known: Sequence[str], owner: str) -> dict[str, Any]:
    """Parse settings such as ``epsilon=0.2``: Python literals where possible, else text.

    Args:
        option: what error messages call the option.
        settings: each NAME=VALUE.
        known: the names that may be set.
        owner: what has these settings, for error messages.
    """
    values = {}
    for setting in settings:
        key, separator, value = setting.partition("=")
        if not separator or key not in known:
            raise ValueError(
                f"'{option}' must be NAME=VALUE with NAME one of {list(known)} for '{owner}'. Got {setting!r} instead."
                f"{'' if key in known else suggest_name(key, known)}"
            )
        try:
            values[key] = ast.literal_eval(value)
        except (ValueError, SyntaxError, RecursionError, MemoryError):  # the last two for endless nesting
            values[key] = value
    return values
