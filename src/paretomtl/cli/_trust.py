"""Trust in a run's folder: code that its files name is imported and called only with ``--trust``."""

from __future__ import annotations

import inspect
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

from paretomtl._support.imports.import_path import is_file
from paretomtl.methods.registry import is_known
from paretomtl.problems.registry import PROBLEMS

Trust = Annotated[
    bool,
    typer.Option("--trust", help="Import and run, as code, the problem and method that the run's asked.json names."),
]


def needs_trust(name: str, settings: Sequence[str]) -> bool:
    """Whether a problem that a file names needs trust: it is custom code, or reads a folder that the file names."""
    if name not in PROBLEMS:
        return True
    parameters = inspect.signature(PROBLEMS[name]).parameters
    given = [setting.partition("=")[0] for setting in settings]
    return any(key in parameters and "Path" in str(parameters[key].annotation) for key in given)


def method_needs_trust(name: str) -> bool:
    """Whether a method that a file names is custom code."""
    return not is_known(name)


def refusal(
    path: Path,
    name: str,
    settings: Sequence[str],
    command: Sequence[str],
    what: Literal["problem", "method"] = "problem",
) -> ValueError:
    """Return the error for a problem or method that needs trust.

    Args:
        path: the file that names it.
        name: of the problem or method.
        settings: its arguments.
        command: the words of the same command, used if none was typed.
        what: which of the two.
    """
    if sys.argv and Path(sys.argv[0]).name == "paretomtl":
        command = ["paretomtl", *sys.argv[1:]]
    module, _, attribute = name.rpartition(":")
    arguments = f" with {', '.join(settings)}" if settings else ""
    where = "" if is_file(module) else ", from the current folder first,"
    use = f"take '{name}'" if name in PROBLEMS else f"import '{module}'{where} and use its '{attribute}'"
    other = " Or name the problem yourself: --problem NAME." if what == "problem" else ""
    return ValueError(
        f"'--trust' must be given for a {what} that '{path}' names: it runs as code. It would {use}{arguments}. "
        f"If you trust that, type: {shlex.join([*command, '--trust'])}.{other}"
    )
