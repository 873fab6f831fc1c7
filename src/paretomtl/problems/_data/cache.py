"""The cache of prepared data: its folder, and files that are made once and then read."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from paretomtl._support.files.atomic_files import check_writable, sweep
from paretomtl.problems._data.download import ABANDONED

Made = TypeVar("Made")


def data_folder(cache: str | Path | None = None) -> Path:
    """The folder of prepared data: ``cache``, else ``$PARETOMTL_DATA``, else the user's cache folder.

    The last is ``paretomtl`` in ``$XDG_CACHE_HOME`` or in ``~/.cache``.
    """
    chosen = os.environ.get("PARETOMTL_DATA") or None if cache is None else cache
    if chosen is not None:
        return Path(chosen).expanduser()
    caches = os.environ.get("XDG_CACHE_HOME")
    return (Path(caches) if caches else Path.home() / ".cache") / "paretomtl"


def load_or_make(
    path: Path, load: Callable[[], Made], make: Callable[[], Made], log: Callable[[str], None], remark: str = ""
) -> Made:
    """Load a file if it exists, or make it.

    Args:
        path: the file.
        load: reads the file; a ValueError means that it must be made again.
        make: makes and writes the file.
        log: called with a line about each step.
        remark: added to the line that says that the file exists already.
    """
    if path.exists():
        try:
            loaded = load()
        except ValueError as error:
            log(f"Making it again: {error}")
        else:
            log(f"There already{remark}: {path}")
            return loaded
    check_writable("cache", path.parent)
    sweep(path.parent, seconds=ABANDONED)
    return make()
