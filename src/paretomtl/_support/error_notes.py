"""Notes on an error that ended some work: what is stored, and how to continue.

They are notes on the exception (``add_note``), so that Python and the command line show them for any exception. The
command line adds its own arguments, quoted.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

Way: TypeAlias = Literal["resume", "again", "with folder", "none"]
"""How to continue: by ``resume``, by the same call, by the same call with a folder for results, or not at all."""

_NAME = "_paretomtl_way"


def note_kept(error: BaseException, text: str, way: Way) -> None:
    """Add a note on what is stored to an error; the command line adds the command to continue by ``way``."""
    if way_on(error) is None:  # the note of the innermost caller is the most exact
        error.add_note(text)
        setattr(error, _NAME, way)


def way_on(error: BaseException) -> Way | None:
    """How to continue after an error; None if the error has no note about it."""
    way: Way | None = getattr(error, _NAME, None)
    return way
