"""The commands put together."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from paretomtl._support.version import __version__
from paretomtl.cli._again import RepeatableCommand
from paretomtl.cli._common import BAD_INPUT
from paretomtl.cli._compare import compare
from paretomtl.cli._data import data
from paretomtl.cli._diagnose import diagnose
from paretomtl.cli._doctor import doctor
from paretomtl.cli._list import list_names
from paretomtl.cli._ray import RayCommand
from paretomtl.cli._refine import refine
from paretomtl.cli._report import report
from paretomtl.cli._reproduce import reproduce
from paretomtl.cli._run import run
from paretomtl.cli._select import select
from paretomtl.cli._show import show
from paretomtl.cli._watch import watch
from paretomtl.engine.processes import is_torchrun

app = typer.Typer(
    name="paretomtl",
    help="Train a set of models, one per trade-off, spread over the Pareto front.",
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("diagnose", cls=RepeatableCommand)(diagnose)
app.command("run", cls=RayCommand)(run)
app.command("compare", cls=RayCommand)(compare)
app.command("show")(show)
app.command("select")(select)
app.command("report")(report)
app.command("watch")(watch)
app.command("refine", cls=RepeatableCommand)(refine)
app.command("doctor")(doctor)
app.command("reproduce", cls=RayCommand)(reproduce)
app.command("list")(list_names)
app.add_typer(data, name="data")


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"paretomtl {__version__}")
        raise typer.Exit


_SHARED = ("run", "refine")  # what several processes may do together


@app.callback()
def options(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and leave.")
    ] = False,
) -> None:
    """Options of the command itself."""
    if is_torchrun() and context.invoked_subcommand not in _SHARED:
        print(f"paretomtl: '{context.invoked_subcommand}' must be started without torchrun.", file=sys.stderr)
        raise typer.Exit(BAD_INPUT)
