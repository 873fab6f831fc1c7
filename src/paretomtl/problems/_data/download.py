"""Published files: where they are, the checksums that identify them, and how they are downloaded.

A download is verified, written atomically, and limited in size; the mirrors are tried in turn. ``pooch`` does not fit:
it has one address and one checksum of the compressed bytes for each file, has no size limit, and needs ``requests``.
"""

from __future__ import annotations

import hashlib
import http.client
import time
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paretomtl._support.files.atomic_files import sweep, whole_file
from paretomtl._support.imports.optional_packages import version_of

_TRIES = 3  # at each mirror
_PAUSE = 1.0  # seconds before the second try, twice that before the third
_TIMEOUT = 30.0  # seconds without a byte
_BLOCK = 1 << 18  # bytes that are read at a time
_UNPACKED = 1 << 20  # bytes that are unpacked at a time
LARGEST = 1 << 30
"""The most bytes of a download: forty times the largest published file."""

LARGEST_TEXT = 1 << 32
"""The most bytes of an unpacked text: forty times the largest published one."""

ABANDONED = 3600.0
"""Seconds after which an unfinished file counts as abandoned."""


@dataclass(frozen=True)
class Published:
    """A published set of files.

    Attributes:
        name: its usual name.
        folder: its subfolder in a folder that holds several sets; the files may also lie in that folder directly.
        md5: the published checksum of each file.
        mirrors: addresses that have the files, most reliable first.
    """

    name: str
    folder: str
    md5: Mapping[str, str]
    mirrors: tuple[str, ...]

    def folder_in(self, folder: Path) -> Path:
        """The folder that holds the files of this set: the subfolder of its name if there is one."""
        return folder / self.folder if (folder / self.folder).is_dir() else folder

    def digest(self) -> Any:
        """A new hash for the bytes of a file. It is an md5, because these sets are published with one."""
        return hashlib.md5(usedforsecurity=False)

    def md5_of(self, path: Path) -> str:
        """The checksum of a file."""
        with path.open("rb") as file:
            return hashlib.file_digest(file, self.digest).hexdigest()


@dataclass(frozen=True)
class PublishedGzip(Published):
    """Gzipped files with the checksums of their unpacked content, because compressing again changes the bytes."""

    def digest(self) -> Any:
        """A new hash of the unpacked content of a gzip file."""
        return _UnpackedMd5()


class _UnpackedMd5:
    """The md5 of the unpacked content of a gzip file, updated with its compressed bytes block by block."""

    def __init__(self) -> None:
        self._md5 = hashlib.md5(usedforsecurity=False)
        self._gzip = _gunzip()
        self._whole = self._damaged = False
        self._size = 0

    def update(self, block: bytes | memoryview) -> None:
        rest, more = bytes(block), not self._damaged
        while more:
            try:
                unpacked = self._gzip.decompress(rest, _UNPACKED)  # a few bytes may unpack to gigabytes
            except zlib.error:
                unpacked, self._damaged = b"", True
            self._md5.update(unpacked)
            self._size += len(unpacked)
            self._damaged |= self._size > LARGEST_TEXT
            if self._damaged:
                return
            self._whole = self._gzip.eof
            rest = self._gzip.unused_data if self._whole else self._gzip.unconsumed_tail
            more = bool(rest) or (not self._whole and len(unpacked) == _UNPACKED)
            if self._whole:  # another member may follow
                self._gzip = _gunzip()

    def hexdigest(self) -> str:
        return self._md5.hexdigest() if self._whole and not self._damaged else "no whole gzip"


def _gunzip() -> Any:
    return zlib.decompressobj(wbits=31)


class _BrokenError(Exception):
    """The download broke off; a retry may succeed."""


class _UselessError(Exception):
    """The address does not have the file; a retry there is useless."""


def download(source: Published, folder: Path, *, log: Callable[[str], None] = lambda text: None) -> None:
    """Download the files of a set into a folder, except those that are there with the published checksum."""
    folder.mkdir(parents=True, exist_ok=True)
    sweep(folder, seconds=ABANDONED)
    for file, md5 in source.md5.items():
        path = folder / file
        if not path.is_file() or source.md5_of(path) != md5:
            _from_any_mirror(source, path, md5, log)


def _from_any_mirror(source: Published, path: Path, md5: str, log: Callable[[str], None]) -> None:
    reasons = []
    for mirror in source.mirrors:
        address = mirror + path.name
        log(f"Downloading {address}")
        reason = _from_mirror(address, path, md5, source)
        if reason is None:
            return
        log(f"That failed: {reason}")
        reasons.append(f"{address}: {reason}")
    raise OSError(
        f"'{path.name}' of {source.name} could not be downloaded from any address. {'; '.join(reasons)}. If you have "
        f"the files ({', '.join(source.md5)}), pass their folder: --from FOLDER"
    )


def _from_mirror(address: str, path: Path, md5: str, source: Published) -> str | None:
    """Download from one address, with retries; return the reason of a failure, or None."""
    reason = ""
    for attempt in range(_TRIES):
        time.sleep(_PAUSE * attempt)
        try:
            with whole_file(path) as file:
                digest, received = source.digest(), 0
                for block in _blocks(address):
                    file.write(block)
                    digest.update(block)
                    received += len(block)
                if digest.hexdigest() != md5:
                    actual = f"{digest.hexdigest()} found in {received:,} bytes"
                    raise _UselessError(f"altered: md5 {md5} expected, {actual}")
        except _UselessError as error:
            return str(error)
        except _BrokenError as error:
            reason = str(error)
        else:
            return None
    return f"{reason} ({_TRIES} tries)"


def _blocks(address: str) -> Iterator[bytes]:
    """Yield the content of an address; raise if it is shorter than its Content-Length."""
    request = urllib.request.Request(address, headers={"User-Agent": f"paretomtl/{version_of('paretomtl')}"})
    received = 0
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT) as response:
            length = int(response.headers.get("Content-Length", 0))
            while block := response.read(_BLOCK):
                received += len(block)
                if received > LARGEST:
                    raise _UselessError(f"it has more than {LARGEST:,} bytes, which no published file has")
                yield block
    except urllib.error.HTTPError as error:
        error.close()
        kind = _UselessError if error.code < 500 else _BrokenError
        raise kind(f"HTTP {error.code} {error.reason}") from None
    except urllib.error.URLError as error:
        raise _BrokenError(str(error.reason)) from None
    except (OSError, http.client.HTTPException) as error:
        raise _BrokenError(str(error) or type(error).__name__) from None
    if received < length:
        raise _BrokenError(f"it broke off after {received:,} of {length:,} bytes")
