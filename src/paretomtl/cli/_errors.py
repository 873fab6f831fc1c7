"""Errors and exit codes of commands."""

from __future__ import annotations

import functools
import signal
import traceback
from collections.abc import Callable
from types import TracebackType
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
    """Print errors that this library raises about its input in one line; others show where the user's code failed."""

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
                error.__traceback__ = _own_frames(error)
                raise
            from rich.text import Text

            console = text_console(stderr=True)
            print_text(console, Text.assemble(("Error:", "red"), " " + escaped(str(error), lines=False)))
            for note in getattr(error, "__notes__", []):  # these may end with a command
                print_command(console, escaped(note, lines=False))
            raise typer.Exit(BAD_INPUT) from None
        except Exception as error:
            error.__traceback__ = _own_frames(error)
            raise

    return wrapped


def _own_frames(error: Exception) -> TracebackType | None:
    """The traceback of an error without frames of this library and of others: the user's code is what matters.

    All frames, if none is the user's. A syntax error names its line itself.
    """
    frames = []
    at = error.__traceback__
    while at is not None:
        file = at.tb_frame.f_code.co_filename
        if not is_in_package(file) and not is_of_library(file):
            frames.append(at)
        at = at.tb_next
    own: TracebackType | None = None
    for each in reversed(frames):
        own = TracebackType(own, each.tb_frame, each.tb_lasti, each.tb_lineno)
    return own or (None if isinstance(error, SyntaxError) else error.__traceback__)


def stop_exit_code() -> int:
    """The exit code of a command that was stopped by SIGTERM, which schedulers send, or by Ctrl-C."""
    return TERMINATED if stopped_by() is signal.SIGTERM else INTERRUPTED


def _is_about_input(error: Exception) -> bool:
    """Whether this library or the system raised an error, rather than the user's own code."""
    files = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    if isinstance(error, OSError):  # the standard library opens files, for this library or for the user's code
        files = [file for file in files if is_in_package(file) or not is_of_library(file)]
    return is_in_package(files[-1])
