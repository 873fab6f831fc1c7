"""Ends of a run: planned ends, fronts that survive the error of a listener, and a note on what is stored."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from paretomtl._support.error_notes import note_kept
from paretomtl.front import Front
from paretomtl.training.progress.callbacks import Callback, close
from paretomtl.training.progress.study_listeners import is_part_of_study
from paretomtl.training.settings.settings import Settings

CALLBACK, INTERRUPTED = "callback", "interrupted"
FAILED, INVALID, UNSTORED = "error in a callback", "error on validation", "error in a checkpoint"
"""Why a run stopped before its end."""


def planned_end(settings: Settings, epoch: int, improved: int) -> str | None:
    """Why a run reached a planned end, in words; None while it goes on.

    Args:
        settings: of the run.
        epoch: how many epochs are done.
        improved: the last epoch in which a model improved on validation, or from which patience is counted.
    """
    if epoch >= settings.epochs:
        return f"after {_epochs(epoch)}"
    if settings.patience is not None and epoch - improved >= settings.patience:
        done = f"{epoch} of {_epochs(settings.epochs)}"
        return f"patience: no model improved on validation in {_epochs(settings.patience)}, after {done}"
    return None


def out_of_time(settings: Settings, epoch: int) -> str:
    """Why a run with a time budget ends before its last epoch, in words."""
    assert settings.budget is not None
    return f"time: {settings.budget.minutes} used up, after {epoch} of {_epochs(settings.epochs)}"


def early_stop(why: str, settings: Settings, epoch: int) -> str:
    """Why a run stopped before its end, and when, in words."""
    return f"{why}, after {epoch} of {_epochs(settings.epochs)}"


def attach_fronts(error: BaseException, fronts: Sequence[Front], folder: Path | None) -> None:
    """Attach fronts to the error that stops the run, with a note on where they are.

    Args:
        error: the error.
        fronts: of each seed; empty if they could not be made.
        folder: where they are stored; None if they are not.
    """
    if not fronts:
        return
    name, value = ("front", fronts[0]) if len(fronts) == 1 else ("fronts", list(fronts))
    with suppress(Exception):  # an exception may refuse attributes
        setattr(error, name, value)
        stored = "" if folder is None else f"; stored in '{folder}', too"
        error.add_note(f"Nothing that was trained is lost: this error has it as its attribute '{name}'{stored}.")


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


def close_all(
    listeners: Sequence[Callback],
    error: BaseException | None,
    fronts: Sequence[Front] = (),
    folder: Path | None = None,
) -> None:
    """Close listeners at the end of a run; if one fails, neither a pending error nor a front is lost.

    Args:
        listeners: what to close.
        error: that ends the run; None for a run without errors.
        fronts: of a run without errors.
        folder: of the run.
    """
    try:
        close(listeners)
    except BaseException as failure:
        if error is not None and isinstance(failure, Exception):
            error.add_note(f"Closing a callback failed, too: {failure!r}.")
            return
        failure.add_note("This came from closing a callback at the end of the run.")
        attach_fronts(failure, fronts, folder)
        raise


def _epochs(count: int) -> str:
    return "1 epoch" if count == 1 else f"{count} epochs"
