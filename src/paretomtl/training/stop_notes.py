"""Notes on an error that ended a run: what is stored, and how to go on.

They are notes on the exception (``add_note``), so that Python and the command line show them, whatever the exception
is. The command line adds its own arguments, quoted.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal, TypeAlias

from paretomtl.training.progress.study_listeners import is_part_of_study
from paretomtl.training.settings import Settings

Way: TypeAlias = Literal["resume", "again", "with folder", "none"]
"""How to go on: by ``resume``, by the same call, by the same call with a folder to keep results in, or not at all."""

_NAME = "_paretomtl_way"


def note_kept(error: BaseException, text: str, way: Way) -> None:
    """Add to an error what is stored; the command line adds the command that goes on, as ``way`` says."""
    if way_on(error) is None:  # what the innermost caller knows is most exact
        error.add_note(text)
        setattr(error, _NAME, way)


def way_on(error: BaseException) -> Way | None:
    """How to go on after an error; None where the error has no note about it."""
    way: Way | None = getattr(error, _NAME, None)
    return way


def note_run_kept(error: BaseException, settings: Settings, done: int, stored: int, folder: Path | None) -> None:
    """Add to the error that ended a run what is left of it.

    Args:
        error: what ended it.
        settings: what was asked for.
        done: how many epochs were done.
        stored: of how many epochs the last checkpoint is.
        folder: where it is; None for nowhere.
    """
    epochs = f"of {settings.epochs} epochs"
    if folder is not None:
        where = f"The last checkpoint, after {stored} {epochs}, is in '{folder}'"
        note_kept(error, f"{where}: the same call with resume=True goes on from it.", "resume")
    elif done and len(settings.seeds) == 1 and not is_part_of_study():
        lost = f"Nothing is stored of the {done} {epochs} that were done"
        note_kept(error, f"{lost}: 'out' keeps checkpoints, from which resume=True goes on.", "none")
