"""The command to type after one that was stopped: it resumes the run or repeats the work."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import typer

from paretomtl._support.error_notes import Way, way_on
from paretomtl._support.torchrun import is_torchrun
from paretomtl.cli._help import HelpfulCommand

_arguments: list[str] = []  # of the running command, its name first
_OPTIONS: dict[Way, tuple[str, ...]] = {"resume": ("--resume",), "again": (), "with folder": ("--out", "FOLDER")}
_LABELS: dict[Way, str] = {
    "resume": "Go on with",
    "again": "Go on with",
    "with folder": "To keep runs next time",
}


class RepeatableCommand(HelpfulCommand):
    """A command that records its arguments, so that an error can print the command to type next."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        given = [arg.removesuffix("=here") if arg == "--ray=here" else arg for arg in args]
        _arguments[:] = [ctx.info_name or "", *given]
        return super().parse_args(ctx, args)


def repeat_command(more: Sequence[str] = ()) -> str:
    """Return the command as it was typed, quoted for a shell, with further options unless it has them."""
    missing = [word for word in more if word not in _arguments] if more[:1] == ("--resume",) else list(more)
    return f"{_program()} {shlex.join([*_arguments, *missing])}"


def resume_command() -> str:
    """Return the command that resumes the run of this command."""
    return repeat_command(_OPTIONS["resume"])


@contextmanager
def noting_resume_command() -> Iterator[None]:
    """Add a note with the command to type next to errors that the library marked as resumable."""
    try:
        yield
    except BaseException as error:
        way = way_on(error)
        if way in _OPTIONS and _arguments:
            error.add_note(f"{_LABELS[way]}: {repeat_command(_OPTIONS[way])}")
        raise


def _program() -> str:
    if not is_torchrun():
        return "paretomtl"
    local, world = os.environ.get("LOCAL_WORLD_SIZE"), os.environ.get("WORLD_SIZE")
    options = f"--nproc-per-node {local}" if local is not None and local == world else "..."
    return f"torchrun {options} -m paretomtl"
