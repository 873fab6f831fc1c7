"""The app: all commands together."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Annotated

import typer

from paretomtl._support.torchrun import is_torchrun
from paretomtl._support.version import __version__
from paretomtl.cli._errors import BAD_INPUT
from paretomtl.cli._help import HELP, HelpfulCommand, HelpfulGroup
from paretomtl.cli._ray import RayCommand
from paretomtl.cli._resume_command import RepeatableCommand
from paretomtl.cli.commands.compare import compare
from paretomtl.cli.commands.data import data
from paretomtl.cli.commands.diagnose import diagnose
from paretomtl.cli.commands.doctor import doctor
from paretomtl.cli.commands.list import list_names
from paretomtl.cli.commands.refine import refine
from paretomtl.cli.commands.report import report
from paretomtl.cli.commands.reproduce import reproduce
from paretomtl.cli.commands.run import run
from paretomtl.cli.commands.select import select
from paretomtl.cli.commands.show import show
from paretomtl.cli.commands.watch import watch

app = typer.Typer(
    name="paretomtl",
    cls=HelpfulGroup,
    help=HELP[""].summary,
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _add(panel: str, name: str, command: Callable[..., None], kind: type[HelpfulCommand] = HelpfulCommand) -> None:
    """Add a command. Its docstring is the help text; paragraphs are wrapped to the width of the terminal."""
    paragraphs = inspect.cleandoc(command.__doc__ or "").split("\n\n")
    text = "\n\n".join(" ".join(text.split()) for text in paragraphs)
    app.command(name, cls=kind, help=text, short_help=HELP[name].summary, rich_help_panel=panel)(command)


_TRAIN, _CHOOSE, _KEEP = "Train models", "Choose a model", "Data, folders and the paper"
_add(_TRAIN, "diagnose", diagnose, RepeatableCommand)
_add(_TRAIN, "run", run, RayCommand)
_add(_TRAIN, "compare", compare, RayCommand)
_add(_TRAIN, "refine", refine, RepeatableCommand)
_add(_CHOOSE, "show", show)
_add(_CHOOSE, "select", select)
_add(_CHOOSE, "report", report)
_add(_CHOOSE, "watch", watch)
_add(_KEEP, "list", list_names)
_add(_KEEP, "doctor", doctor)
_add(_KEEP, "reproduce", reproduce, RayCommand)
app.add_typer(data, name="data", help=HELP["data"].summary, rich_help_panel=_KEEP)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"paretomtl {__version__}")
        raise typer.Exit


_UNDER_TORCHRUN = ("run", "refine")  # commands that several processes may run together


@app.callback()
def options(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Options of the command itself."""
    if is_torchrun() and context.invoked_subcommand not in _UNDER_TORCHRUN:
        print(f"paretomtl: '{context.invoked_subcommand}' must be started without torchrun.", file=sys.stderr)
        raise typer.Exit(BAD_INPUT)
