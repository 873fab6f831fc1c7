"""Paths that users give."""

from __future__ import annotations

import os
from pathlib import Path


def as_path(name: str, path: str | os.PathLike[str]) -> Path:
    """A path, checked: an empty one would be the current folder."""
    if not isinstance(path, (str, os.PathLike)) or not os.fspath(path):
        raise TypeError(f"'{name}' must be a path that is not empty. Got {path!r} instead.")
    if "\0" in os.fsdecode(path):
        raise ValueError(f"'{name}' must be a path, which has no zero bytes. Got {path!r} instead.")
    return Path(path)
