"""The verdict on a loader and an input: an object that works, a documented error, or a failure."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from _helpers.fuzzing.format import Files, Format
from paretomtl._support.files.atomic_files import NewerFormatError
from paretomtl.problems._data.images import BrokenPictureError

DOCUMENTED = (ValueError, FileNotFoundError, NewerFormatError, BrokenPictureError)
"""The only errors that a loader may raise for the content of its files; each names the file."""


@dataclass(frozen=True)
class Verdict:
    """The outcome of an input.

    Attributes:
        outcome: "accepted", "refused" or "failed".
        error: the type of the error that was raised; empty for none.
        why: what is wrong; empty if nothing is.
    """

    outcome: str
    error: str = ""
    why: str = ""


def judge(form: Format, folder: Path, files: Files) -> Verdict:
    """Let a loader read a valid input with some files changed."""
    with _placed(form, folder, files), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of decoders, about input that they then refuse or repair
        try:
            form.load(folder)
        except Exception as error:
            return _of(error, folder)
    return Verdict("accepted")


def _of(error: Exception, folder: Path) -> Verdict:
    name = type(error).__name__
    where = "".join(traceback.format_tb(error.__traceback__)[-2:])
    if type(error) not in DOCUMENTED:
        return Verdict("failed", name, f"{name}: {str(error)[:300]}\n{where}")
    if str(folder) not in str(error):
        return Verdict("failed", name, f"does not name the file: {str(error)[:300]}\n{where}")
    if any(isinstance(cause, MemoryError) for cause in _causes(error)):
        return Verdict("failed", name, f"out of memory: {str(error)[:300]}\n{where}")
    return Verdict("refused", name)


def _causes(error: BaseException) -> Iterator[BaseException]:
    found: BaseException | None = error
    while found is not None:
        yield found
        found = found.__context__


def install(form: Format, folder: Path) -> None:
    """Write the valid input."""
    for path, data in form.files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)


@contextmanager
def _placed(form: Format, folder: Path, files: Files) -> Iterator[None]:
    for path, data in files.items():
        (folder / path).write_bytes(data)
    try:
        yield
    finally:
        for path in files:
            (folder / path).unlink(missing_ok=True)
            if path in form.files:
                (folder / path).write_bytes(form.files[path])
