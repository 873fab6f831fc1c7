"""Errors and exit codes of commands."""

from __future__ import annotations

import functools
import signal
import traceback
from collections.abc import Callable
from typing import ParamSpec

import typer

from paretomtl._support.files.paths import is_in_package
from paretomtl._support.imports.import_path import is_of_library
from paretomtl._support.signals import sigterm_interrupts, stopped_by
from paretomtl._support.terminal import escaped, print_command, print_text, shown_warnings, text_console
from paretomtl.cli._resume_command import noting_resume_command

P = ParamSpec("P")

BAD_INPUT, NOTHING_FITS, LOST, NOT_STORED, SOME_FAILED, INTERRUPTED, TERMINATED = 2, 3, 4, 5, 6, 130, 143
"""Exit codes besides 0, and 1 for everything unexpected."""

REPAIRABLE = 1
"""The exit code of ``doctor`` if it found something to repair, as diff and grep use 1 for "differs"."""


def clean_errors(command: Callable[P, None]) -> Callable[P, None]:
    """Print errors that this library raises about its input in one line; all others keep their traceback."""

    @functools.wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            with sigterm_interrupts(), shown_warnings(), noting_resume_command():
                command(*args, **kwargs)
        except KeyboardInterrupt as error:
            for line in ("Stopped.", *getattr(error, "__notes__", [])):
                print_command(text_console(stderr=True), line)
            raise typer.Exit(stop_exit_code()) from None
        except (ValueError, TypeError, IndexError, OSError, ModuleNotFoundError) as error:
            if not _is_about_input(error):
                raise
            from rich.text import Text

            console = text_console(stderr=True)
            print_text(console, Text.assemble(("Error:", "red"), " " + escaped(str(error), lines=False)))
            for note in getattr(error, "__notes__", []):  # these may end with a command
                print_command(console, escaped(note, lines=False))
            raise typer.Exit(BAD_INPUT) from None

    return wrapped


def stop_exit_code() -> int:
    """The exit code of a command that was stopped by SIGTERM, which schedulers send, or by Ctrl-C."""
    return TERMINATED if stopped_by() is signal.SIGTERM else INTERRUPTED


def _is_about_input(error: Exception) -> bool:
    """Whether this library or the system raised an error, rather than the user's own code."""
    files = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    if isinstance(error, OSError):  # the standard library opens files, for this library or for the user's code
        files = [file for file in files if is_in_package(file) or not is_of_library(file)]
    return is_in_package(files[-1])
