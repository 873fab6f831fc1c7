"""The command that goes on after one that was stopped."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import typer
from typer.core import TyperCommand

from paretomtl.engine.processes import is_torchrun
from paretomtl.training.stop_notes import Way, way_on

_asked: list[str] = []
_MORE: dict[Way, tuple[str, ...]] = {"resume": ("--resume",), "again": (), "with folder": ("--out", "FOLDER")}
_WORDS: dict[Way, str] = {
    "resume": "Go on with",
    "again": "Go on with",
    "with folder": "To keep runs next time",
}


class RepeatableCommand(TyperCommand):
    """A command that remembers its arguments, to print them for another go."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        _asked[:] = [ctx.info_name or "", *(arg.removesuffix("=here") if arg == "--ray=here" else arg for arg in args)]
        return super().parse_args(ctx, args)


def repeated(more: Sequence[str] = ()) -> str:
    """The command as it was given, quoted for a shell, with further words unless it has them."""
    words = [word for word in more if word not in _asked] if more[:1] == ("--resume",) else list(more)
    return f"{_program()} {shlex.join([*_asked, *words])}"


def resuming() -> str:
    """The command that resumes the run of this one."""
    return repeated(_MORE["resume"])


@contextmanager
def offering_to_go_on() -> Iterator[None]:
    """Add to what ends a command the one that goes on, where the library says that there is something left."""
    try:
        yield
    except BaseException as error:
        way = way_on(error)
        if way in _MORE and _asked:
            error.add_note(f"{_WORDS[way]}: {repeated(_MORE[way])}")
        raise


def _program() -> str:
    if not is_torchrun():
        return "paretomtl"
    local, world = os.environ.get("LOCAL_WORLD_SIZE"), os.environ.get("WORLD_SIZE")
    options = f"--nproc-per-node {local}" if local is not None and local == world else "..."
    return f"torchrun {options} -m paretomtl"
