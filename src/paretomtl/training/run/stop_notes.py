"""The note on an error that ended a run, about what is stored of the run."""

from __future__ import annotations

from pathlib import Path

from paretomtl._support.error_notes import note_kept
from paretomtl.training.progress.study_listeners import is_part_of_study
from paretomtl.training.settings.settings import Settings


def note_run_kept(error: BaseException, settings: Settings, done: int, stored: int, folder: Path | None) -> None:
    """Add a note on what is left of a run to the error that ended it.

    Args:
        error: the error.
        settings: of the run.
        done: how many epochs were done.
        stored: the epochs in the last checkpoint.
        folder: its place; None if there is none.
    """
    epochs = f"of {settings.epochs} epochs"
    if folder is not None:
        where = f"The last checkpoint, after {stored} {epochs}, is in '{folder}'"
        note_kept(error, f"{where}: the same call with resume=True goes on from it.", "resume")
    elif done and len(settings.seeds) == 1 and not is_part_of_study():
        lost = f"Nothing is stored of the {done} {epochs} that were done"
        note_kept(error, f"{lost}: 'out' keeps checkpoints, from which resume=True goes on.", "none")
