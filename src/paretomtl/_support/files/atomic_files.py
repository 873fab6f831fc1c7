"""Atomic writes of text and JSON files; ``tensor_files.py`` has those of tensors. Nothing is pickled.

A checksum detects damage, not forgery. Types, shapes and ranges of the content are therefore checked too. Loaders raise
ValueError or FileNotFoundError with the name of the file. The size of a file bounds their time and memory: declared
lengths are compared with the size before anything is allocated.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import threading
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import IO, Any

from paretomtl._support.files.safe_open import (
    RECORD,
    create_file,
    read_file,
    remove_files,
)

_CANNOT_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.EBADF, errno.EACCES, errno.EPERM, errno.EISDIR)
_RESERVED = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?", re.IGNORECASE)
_LONGEST_NAME = 50  # characters of up to four bytes; systems allow 255 bytes


class NewerFormatError(ValueError):
    """A file that a newer version of this library wrote."""


def check_writable(name: str, folder: Path) -> None:
    """Make a folder, and check that it can be written before any work is done."""
    mark = _unfinished(folder / "writable")
    try:
        make_folder(folder)
        create_file(mark).close()
        mark.unlink(missing_ok=True)
    except OSError as error:
        raise ValueError(f"'{name}' must be a folder that can be written. {error}.") from None


def make_folder(folder: Path) -> None:
    """Make a folder and its parents durably: they survive a loss of power."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for each in missing:
        sync_folder(each.parent)


def file_name(text: str) -> str:
    """Turn a text into one part of a path that every system accepts and that cannot lead elsewhere.

    Example:
        >>> file_name("../../etc/passwd"), file_name("CON"), file_name("multi-mnist")
        ('_.._etc_passwd', '_CON', 'multi-mnist')
    """
    plain = re.sub(r"[^\w.+-]", "_", text)[:_LONGEST_NAME].lstrip(".").rstrip(". ")
    return f"_{plain}" if not plain or _RESERVED.fullmatch(plain) else plain


def check_format(path: Path, format: Any, formats: Collection[int | None]) -> None:
    """Refuse a file of an unknown format; the error for a newer format says so."""
    newest = max(each for each in formats if each is not None)
    if isinstance(format, int) and format > newest:
        raise NewerFormatError(
            f"'{path}' was written by a newer paretomtl (format {format}; this one knows {newest}): update paretomtl."
        )
    if format not in formats:
        known = " or ".join(str(each) for each in formats if each is not None)
        raise ValueError(f"'{path}' must have the format {known}. Got {format!r} instead.")


@contextmanager
def pointing_to_doctor(folder: Path) -> Iterator[None]:
    """Add a note on ``paretomtl doctor`` to errors of damaged files; those of newer formats already have a remedy."""
    try:
        yield
    except NewerFormatError:
        raise
    except ValueError as error:
        error.add_note(f"'paretomtl doctor {folder}' says which files are damaged and what can be saved.")
        raise


def check_file(path: Path) -> None:
    """Refuse a folder in place of a file to write; the system's error would name a temporary file."""
    if path.is_dir():
        raise IsADirectoryError(f"'{path}' must be a file to write. It is a folder.")


def write_text(path: Path, text: str) -> None:
    """Write a text file atomically; what UTF-8 cannot encode is escaped, which is valid in JSON."""
    with whole_file(path) as file:
        file.write(text.encode(errors="backslashreplace"))


def write_record(path: Path, content: Mapping[str, Any], *, format: int) -> None:
    """Write a JSON object with its format version and a checksum, atomically."""
    plain = json.loads(json.dumps({"format": format, **content}))
    write_text(path, json.dumps({**plain, "sha256": _checksum_of_json(plain)}, indent=2, ensure_ascii=False))


def read_record(path: Path, formats: Collection[int | None], *, limit: int = RECORD) -> dict[str, Any]:
    """Read what :func:`write_record` wrote; raise an error for another format or a checksum mismatch.

    Args:
        path: the file.
        formats: the known formats; None for files without one. Older files have no checksum.
        limit: the largest size in bytes.
    """
    stored = read_json(path, limit=limit)
    if not isinstance(stored, dict):
        raise ValueError(f"'{path}' must hold a JSON object. Got {type(stored).__name__} instead.")
    check_format(path, stored.get("format"), formats)
    checksum = stored.pop("sha256", None)
    if checksum is not None and checksum != _checksum_of_json(stored):
        raise ValueError(f"'{path}' must be as it was written. Its checksum differs: it was changed.")
    stored.pop("format", None)
    return stored


def _checksum_of_json(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _unfinished(path: Path) -> Path:
    return path.with_name(f".{path.name}.unfinished-{os.getpid()}-{threading.get_ident()}")


@contextmanager
def whole_file(path: Path, earlier: Path | None = None) -> Iterator[IO[bytes]]:
    """Write a file atomically: it replaces ``path`` when the block ends without an error.

    With ``earlier``, the previous file is kept under that name. Wherever it is interrupted, one of the two is complete.
    """
    check_file(path)
    unfinished = _unfinished(path)
    moved = None
    try:
        with create_file(unfinished) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if earlier is not None:
            with suppress(FileNotFoundError):
                moved = path.replace(earlier)
        unfinished.replace(path)
    except BaseException:
        with suppress(OSError):  # the first error is the one to report
            unfinished.unlink(missing_ok=True)
            if moved is not None and not path.exists():
                moved.replace(path)
        raise
    sync_folder(path.parent)


def read_json(path: Path, *, limit: int = RECORD) -> Any:
    """Read a JSON file; raise a ValueError that names the file if it is not JSON."""
    return parse_json(read_file(path, limit=limit), f"'{path}'")


def parse_json(text: bytes, what: str) -> Any:
    """Parse JSON in UTF-8.

    Raises a ValueError, which begins with ``what``, for anything else. This includes numbers with thousands of digits,
    brackets nested too deeply, and duplicate names in an object, of which readers might take either.
    """
    try:
        return json.loads(text.decode(), object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{what} must be a JSON file. It is damaged: {error}.") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content: dict[str, Any] = {}
    for name, value in pairs:
        if name in content:
            raise ValueError(f"{name!r:.80} appears twice")
        content[name] = value
    return content


def sweep(folder: Path, *, seconds: float = 0.0, follow: bool = True) -> None:
    """Remove stale temporary files of interrupted writes.

    Args:
        folder: the folder to clean.
        seconds: the age in seconds from which a file counts as stale.
        follow: whether the folder itself may be a link; inside a run's folder it may not.
    """
    now = time.time()
    remove_files(folder, lambda name, found: is_leftover(name) and now - found.st_mtime >= seconds, follow=follow)


def is_leftover(name: str) -> bool:
    """Whether a name is that of a temporary file of an interrupted write."""
    return fnmatchcase(name, ".*.unfinished-*")


def sync_folder(folder: Path) -> None:
    """Make renames in a folder durable, where the system can: they survive a loss of power."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except PermissionError:  # as on Windows
        return
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in _CANNOT_SYNC:
            raise
    finally:
        os.close(handle)
