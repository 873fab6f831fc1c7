"""A file format, as the fuzzer sees it."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, TypeAlias

from _helpers.fuzzing.mutations import json_bytes, mutate_json
from paretomtl._support.files.atomic_files import _checksum_of_json

Files: TypeAlias = dict[str, bytes]
Change: TypeAlias = Callable[[bytes, Random], bytes]


@dataclass(frozen=True)
class Format:
    """A file format.

    Attributes:
        name: of the format.
        files: a valid input, by path in its folder.
        load: reads the folder, and uses what it read.
        changes: mutations of the bytes of a file, by path; a path may occur several times.
        share: how many of a thousand inputs are of this format.
        once: inputs that are always tried, once each.
    """

    name: str
    files: Mapping[str, bytes]
    load: Callable[[Path], Any]
    changes: tuple[tuple[str, Change], ...]
    share: int
    once: tuple[Callable[[], Files], ...] = ()

    def draw(self, random: Random) -> Files:
        """The files to write over the valid input."""
        path, change = random.choice(self.changes)
        return {path: change(self.files[path], random)}


def made(write: Callable[[Path], Any]) -> Files:
    """The files that a function writes into a folder, by path."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder)
        return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def as_json(data: bytes, random: Random) -> bytes:
    """JSON with a meaningful change; most records get a valid checksum."""
    content = json.loads(data)
    changed = mutate_json(content, random)
    if isinstance(changed, dict) and "sha256" in content and random.random() < 0.8:
        changed.pop("sha256", None)
        with suppress(ValueError):  # more digits than Python writes
            changed["sha256"] = _checksum_of_json(changed)
    return json_bytes(changed, random)
