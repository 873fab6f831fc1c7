"""Paths: those that users give, and the folder of this package."""

from __future__ import annotations

import os
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2]


def as_path(name: str, path: str | os.PathLike[str]) -> Path:
    """Check and return a path: an empty one would be the current folder."""
    if not isinstance(path, (str, os.PathLike)) or not os.fspath(path):
        raise TypeError(f"'{name}' must be a non-empty path. Got {path!r} instead.")
    if "\0" in os.fsdecode(path):
        raise ValueError(f"'{name}' must be a path without null bytes. Got {path!r} instead.")
    return Path(path)


def is_in_package(file: str) -> bool:
    """Whether a source file belongs to this package."""
    return Path(file).resolve().is_relative_to(PACKAGE)
