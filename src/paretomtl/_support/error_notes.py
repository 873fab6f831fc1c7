"""Notes on an error that ended some work: what is stored, and how to go on.

They are notes on the exception (``add_note``), so that Python and the command line show them, whatever the exception
is. The command line adds its own arguments, quoted.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

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
