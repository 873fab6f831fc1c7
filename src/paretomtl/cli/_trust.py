"""What a file may have imported and called: nothing, unless somebody says so."""

from __future__ import annotations

import inspect
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from paretomtl.problems import PROBLEMS

Trust = Annotated[
    bool, typer.Option("--trust", help="Import and call the problem that the run's asked.json names: it runs as code.")
]


def needs_trust(name: str, settings: Sequence[str]) -> bool:
    """Whether a problem, named by a file, does more than compute: code of others, or a folder of the file's choice."""
    if name not in PROBLEMS:
        return True
    parameters = inspect.signature(PROBLEMS[name]).parameters
    given = [setting.partition("=")[0] for setting in settings]
    return any(key in parameters and "Path" in str(parameters[key].annotation) for key in given)


def refusal(path: Path, name: str, settings: Sequence[str], command: Sequence[str]) -> ValueError:
    """What to say where a problem that needs trust would be made.

    Args:
        path: the file that names it.
        name: of the problem.
        settings: its arguments.
        command: words of a command that does the same, for where it was not typed.
    """
    if sys.argv and Path(sys.argv[0]).name == "paretomtl":
        command = ["paretomtl", *sys.argv[1:]]
    module, _, attribute = name.partition(":")
    said = f" with {', '.join(settings)}" if settings else ""
    what = (
        f"take '{name}'"
        if name in PROBLEMS
        else f"import '{module}', from the current folder first, and use its '{attribute}'"
    )
    return ValueError(
        f"'--trust' must be given for a problem that '{path}' names, for it runs as code. It would {what}{said}. "
        f"If you trust that, type: {shlex.join([*command, '--trust'])}. Or name the problem yourself: --problem NAME."
    )
