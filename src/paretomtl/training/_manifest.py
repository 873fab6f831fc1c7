"""The manifest of a run's folder: which files the run consists of, how long they are, and their checksums."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from paretomtl._files import read_record, write_record

FORMAT = 1
"""The version of the manifest."""

NAME = "manifest.json"
LOG = "log.jsonl"
PATTERNS = ("config.json", "asked.json", "checkpoint*.safetensors", "front/front.json", "front/models-*.safetensors")
"""The files of a run, besides its log, which grows between two manifests."""

_NAME = re.compile(r"(config|asked|front/front)\.json|(checkpoint|front/models)(-\w+)?\.safetensors")


class Manifest:
    """Writes the manifest of a folder; files that did not change since the last time are not read again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[tuple[int, ...], str] = {}

    def write(self) -> None:
        """Write down what is there now."""
        found: dict[str, Any] = {}
        known: dict[tuple[int, ...], str] = {}
        for path in members(self._folder):
            there = path.stat()
            key = (there.st_ino, there.st_size, there.st_mtime_ns)
            known[key] = self._known.get(key) or sha256_of(path)
            found[path.relative_to(self._folder).as_posix()] = {"size": there.st_size, "sha256": known[key]}
        if (self._folder / LOG).exists():
            found[LOG] = {"size": (self._folder / LOG).stat().st_size}  # at least
        self._known = known
        write_record(self._folder / NAME, {"files": found}, format=FORMAT)


def members(folder: Path) -> list[Path]:
    """The files of a run that have a checksum in its manifest."""
    return sorted(path for pattern in PATTERNS for path in folder.glob(pattern))


def read_manifest(folder: Path) -> Mapping[str, Any] | None:
    """What the manifest says of each file; None for a run of a version that wrote none."""
    path = folder / NAME
    if not path.exists():
        return None
    files = read_record(path, [FORMAT]).get("files")
    if not isinstance(files, dict) or not all(isinstance(said, dict) for said in files.values()):
        raise ValueError(f"'{path}' must have an object for each file. Got something else.")
    for name in files:
        if name != LOG and not _NAME.fullmatch(name):
            raise ValueError(f"'{path}' must only name files of a run. Got {name!r}.")
    return files


def sha256_of(path: Path) -> str:
    """The checksum of a file, as ``sha256sum`` has it."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
