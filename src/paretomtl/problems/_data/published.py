"""Sets of files that somebody publishes: where they are, and the checksums that tell them from others."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_BLOCK = 1 << 20  # bytes that are unpacked at a time
LARGEST_TEXT = 1 << 32
"""Bytes that a packed text may unpack to: forty times the largest that is published."""


@dataclass(frozen=True)
class Published:
    """A published set of files.

    Attributes:
        name: what people call it.
        folder: where its files lie under a folder that holds several sets, unless they lie in it directly.
        md5: the published checksum of each file.
        mirrors: addresses that have the files, most reliable first.
    """

    name: str
    folder: str
    md5: Mapping[str, str]
    mirrors: tuple[str, ...]

    def folder_in(self, folder: Path) -> Path:
        """Where under a folder the files of this set lie."""
        return folder / self.folder if (folder / self.folder).is_dir() else folder

    def digest(self) -> Any:
        """What the bytes of a file go through to become its checksum: an md5, by which these sets were published."""
        return hashlib.md5(usedforsecurity=False)

    def md5_of(self, path: Path) -> str:
        """The checksum of a file."""
        with path.open("rb") as file:
            return hashlib.file_digest(file, self.digest).hexdigest()


@dataclass(frozen=True)
class PublishedGzip(Published):
    """Gzipped files whose checksums are those of what they hold: whoever packs them anew has other bytes."""

    def digest(self) -> Any:
        """The md5 of what is unpacked from the bytes of a gzip file."""
        return _UnpackedMd5()


class _UnpackedMd5:
    """Takes the bytes of a gzip file as they come, and has the md5 of what they unpack to."""

    def __init__(self) -> None:
        self._md5 = hashlib.md5(usedforsecurity=False)
        self._gzip = _gunzip()
        self._whole = self._damaged = False
        self._size = 0

    def update(self, block: bytes | memoryview) -> None:
        rest, more = bytes(block), not self._damaged
        while more:
            try:
                unpacked = self._gzip.decompress(rest, _BLOCK)  # a little may become very much
            except zlib.error:
                unpacked, self._damaged = b"", True
            self._md5.update(unpacked)
            self._size += len(unpacked)
            self._damaged |= self._size > LARGEST_TEXT
            if self._damaged:
                return
            self._whole = self._gzip.eof
            rest = self._gzip.unused_data if self._whole else self._gzip.unconsumed_tail
            more = bool(rest) or (not self._whole and len(unpacked) == _BLOCK)
            if self._whole:  # another member may follow
                self._gzip = _gunzip()

    def hexdigest(self) -> str:
        return self._md5.hexdigest() if self._whole and not self._damaged else "no whole gzip"


def _gunzip() -> Any:
    return zlib.decompressobj(wbits=31)
