"""Failed runs of a comparison or study, and the note on what is stored when all of it stops."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from paretomtl._support.error_notes import note_kept
from paretomtl.training.shards.ray.worker import Failure


@dataclass(frozen=True)
class FailedRun:
    """A run of a comparison that raised an error.

    Attributes:
        method: its method.
        seed: its seed.
        error: the error, or the report of it from a worker.
        left_out: how many further seeds of the method are skipped, because it has not succeeded with any.
    """

    method: str
    seed: int
    error: Exception | Failure
    left_out: int = 0

    def raise_(self) -> None:
        """Raise the error here."""
        if isinstance(self.error, Failure):
            self.error.raise_(f"{self.method}, seed {self.seed}")
        else:
            raise self.error

    @property
    def reason(self) -> str:
        """Kind and text of the error in one line, and the line of code that raised it."""
        if isinstance(self.error, Failure):
            return f"{self.error.kind}: {_one_line(self.error.text)}"
        frames = traceback.extract_tb(self.error.__traceback__)
        place = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
        return f"{type(self.error).__name__}: {_one_line(str(self.error))}{place}"

    def __str__(self) -> str:
        others = f" Further seeds are left out: {self.left_out}." if self.left_out else ""
        return f"{self.method}, seed {self.seed} failed: {self.reason}.{others}"


def warn_of_failure(run: FailedRun) -> None:
    """Warn of a run that failed."""
    warnings.warn(str(run), stacklevel=3)


def without_frames(error: Exception) -> Exception:
    """Clear the frames of an error, so that it does not keep the models and data of its run alive."""
    traceback.clear_frames(error.__traceback__)
    return error


@contextmanager
def noting_kept(done: Callable[[], int], total: int, noun: str, path: Path | None) -> Iterator[None]:
    """Add a note to an exception that ends this: how much is stored, and how to go on.

    Args:
        done: returns how many runs are done.
        total: the number of runs.
        noun: the word for a run.
        path: the file that they are stored in; None if they are not stored.
    """
    try:
        yield
    except BaseException as error:
        count = done()
        if not count and isinstance(error, Exception):  # bad input, most likely
            raise
        verb = "is" if count == 1 else "are"
        if path is None:
            text = f"{count} of {total} {noun}s {'was' if count == 1 else 'were'} done, and nothing is stored: 'folder'"
            note_kept(error, f"{text} (--out) keeps each {noun} as it ends.", "with folder")
        elif count:
            text = f"{count} of {total} {noun}s {verb} stored in '{path}'."
            note_kept(error, f"{text} Run the same again to train the others.", "again")
        else:
            text = f"None of {total} {noun}s was done, so nothing is stored yet"
            note_kept(error, f"{text}: each goes to '{path}' as it ends.", "again")
        raise


def _one_line(text: str) -> str:
    return " ".join(text.split()).rstrip(".")
