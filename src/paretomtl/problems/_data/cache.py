"""What is made once and kept in a file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from paretomtl._support.files import check_writable, sweep
from paretomtl.problems._data.download import ABANDONED

Made = TypeVar("Made")


def load_or_make(
    path: Path, load: Callable[[], Made], make: Callable[[], Made], log: Callable[[str], None], remark: str = ""
) -> Made:
    """What a file holds already, or what is made now and written to it.

    Args:
        path: the file.
        load: reads it; a ValueError says that it has to be made again.
        make: makes and writes it.
        log: is told what happens.
        remark: what to say of a file that is there.
    """
    if path.exists():
        try:
            found = load()
        except ValueError as error:
            log(f"Making it again: {error}")
        else:
            log(f"There already{remark}: {path}")
            return found
    check_writable("cache", path.parent)
    sweep(path.parent, seconds=ABANDONED)
    return make()
