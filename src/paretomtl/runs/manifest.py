"""The manifest of a run's folder: which files the run consists of, how long they are, and their checksums.

Every file of a run carries its format and its own checksum: a manifest alone would be wrong after a crash between
a file and the manifest. The manifest has checksums that other programs can verify, and decides nothing.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from paretomtl._support.files.atomic_files import read_record, write_record
from paretomtl._support.files.safe_open import SMALL_RECORD, TENSORS, exists, kind_of, names_in, open_file

FORMAT = 1
"""The version of the manifest."""

NAME = "manifest.json"
LOG = "log.jsonl"
SHARDS = "shards"
_NAME = re.compile(r"(config|asked|front/front)\.json|(checkpoint|front/models|front/numbers)(-\w+)?\.safetensors")


class Manifest:
    """The writer of a folder's manifest; files that did not change since the last write are not read again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[tuple[int, ...], str] = {}

    def is_current(self) -> bool:
        """Whether the manifest lists all files with their sizes and is newer than they are; no other file is read."""
        try:
            listed, stats = read_manifest(self._folder), {path: path.lstat() for path in members(self._folder)}
            written = (self._folder / NAME).lstat().st_mtime_ns
        except (OSError, ValueError):
            return False
        sizes = {path.relative_to(self._folder).as_posix(): stat.st_size for path, stat in stats.items()}
        known = {name: entry.get("size") for name, entry in (listed or {}).items() if name != LOG}
        return known == sizes and all(stat.st_mtime_ns <= written for stat in stats.values())

    def write(self) -> None:
        """Write the manifest of the files that exist now."""
        files: dict[str, Any] = {}
        known: dict[tuple[int, ...], str] = {}
        for path in members(self._folder):
            stat = path.lstat()
            key = (stat.st_ino, stat.st_size, stat.st_mtime_ns)
            known[key] = self._known.get(key) or sha256_of(path)
            files[path.relative_to(self._folder).as_posix()] = {"size": stat.st_size, "sha256": known[key]}
        if exists(self._folder / LOG):
            files[LOG] = {"size": (self._folder / LOG).lstat().st_size}  # a lower bound: the log grows
        self._known = known
        write_record(self._folder / NAME, {"files": files}, format=FORMAT)


def is_member(name: str) -> bool:
    """Whether a path in a run's folder names a file whose checksum is in the manifest."""
    return _NAME.fullmatch(name) is not None


def members(folder: Path) -> list[Path]:
    """Return the files of a run whose checksums are in the manifest."""
    inside = names_in(folder / "front", follow=False) if kind_of(folder / "front") == "a folder" else []
    names = [*names_in(folder), *(f"front/{name}" for name in inside)]
    return sorted(folder / name for name in names if is_member(name))


def read_manifest(folder: Path) -> Mapping[str, Any] | None:
    """Read the entries of the manifest, by file; None for a run of a version without manifests."""
    path = folder / NAME
    if not exists(path):
        return None
    files = read_record(path, [FORMAT], limit=SMALL_RECORD).get("files")
    if not isinstance(files, dict) or not all(isinstance(entry, dict) for entry in files.values()):
        raise ValueError(f"'{path}' must have an object for each file. Got something else.")
    for name in files:
        if name != LOG and not is_member(name):
            raise ValueError(f"'{path}' must only name files of a run. Got {name!r}.")
    if LOG in files and not isinstance(files[LOG].get("size", 0), int):
        raise ValueError(f"'{path}' must have a whole number for the size of '{LOG}'. Got {files[LOG]!r:.80} instead.")
    return files


def sha256_of(path: Path) -> str:
    """The checksum of a file, as ``sha256sum`` prints it."""
    with open_file(path, limit=TENSORS) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
