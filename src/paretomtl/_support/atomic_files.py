"""Files that are whole or absent, text and JSON; ``tensor_files.py`` has those of tensors. Nothing is pickled.

A checksum tells damage, not forgery, so what is behind it is checked, too: kinds, shapes and ranges. Loaders raise
ValueError or FileNotFoundError with the name of the file. Their time and memory follow from its size: declared lengths
are compared with the size before anything is allocated.
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

from paretomtl._support.safe_open import (
    RECORD,
    create_file,
    read_file,
    remove_files,
)

_CANNOT_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.EBADF, errno.EACCES, errno.EPERM, errno.EISDIR)
_RESERVED = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?", re.IGNORECASE)
_LONGEST_NAME = 50  # letters, of up to four bytes; systems take 255 bytes


class NewerFormatError(ValueError):
    """A file that a newer version of this library wrote."""


def check_writable(name: str, folder: Path) -> None:
    """Make a folder, and find out now, not after the work, whether it can be written."""
    mark = _unfinished(folder / "writable")
    try:
        make_folder(folder)
        create_file(mark).close()
        mark.unlink(missing_ok=True)
    except OSError as error:
        raise ValueError(f"'{name}' must be a folder that can be written. {error}.") from None


def make_folder(folder: Path) -> None:
    """Make a folder, and those above it, so that they last through a loss of power."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for each in missing:
        sync_folder(each.parent)


def file_name(text: str) -> str:
    """A text as one part of a path that any system takes and that cannot lead anywhere else.

    Example:
        >>> file_name("../../etc/passwd"), file_name("CON"), file_name("multi-mnist")
        ('_.._etc_passwd', '_CON', 'multi-mnist')
    """
    plain = re.sub(r"[^\w.+-]", "_", text)[:_LONGEST_NAME].lstrip(".").rstrip(". ")
    return f"_{plain}" if not plain or _RESERVED.fullmatch(plain) else plain


def check_format(path: Path, found: Any, formats: Collection[int | None]) -> None:
    """Refuse a file of a format that is not known here; one of a newer format says so."""
    newest = max(each for each in formats if each is not None)
    if isinstance(found, int) and found > newest:
        raise NewerFormatError(
            f"'{path}' was written by a newer paretomtl (format {found}; this one knows {newest}): update paretomtl."
        )
    if found not in formats:
        known = " or ".join(str(each) for each in formats if each is not None)
        raise ValueError(f"'{path}' must have the format {known}. Got {found!r} instead.")


@contextmanager
def pointing_to_doctor(folder: Path) -> Iterator[None]:
    """Add to errors of damaged files which command says more; those of newer formats have a remedy."""
    try:
        yield
    except NewerFormatError:
        raise
    except ValueError as error:
        error.add_note(f"'paretomtl doctor {folder}' says which files are damaged and what can be saved.")
        raise


def check_file(path: Path) -> None:
    """Refuse a folder where a file is to be written; the system would name an unfinished file instead."""
    if path.is_dir():
        raise IsADirectoryError(f"'{path}' must be a file to write. It is a folder.")


def write_text(path: Path, text: str) -> None:
    """Write a text file whole or not at all; what UTF-8 does not know is escaped, in JSON as it should be."""
    with whole_file(path) as file:
        file.write(text.encode(errors="backslashreplace"))


def write_record(path: Path, content: Mapping[str, Any], *, format: int) -> None:
    """Write a JSON object with the number of its format and a checksum, whole or not at all."""
    plain = json.loads(json.dumps({"format": format, **content}))
    write_text(path, json.dumps({**plain, "sha256": _checksum_of_json(plain)}, indent=2, ensure_ascii=False))


def read_record(path: Path, formats: Collection[int | None], *, limit: int = RECORD) -> dict[str, Any]:
    """Read what :func:`write_record` wrote; an error for another format, and for a file that was changed.

    Args:
        path: the file.
        formats: those that are known; None for files that say none. Files without a checksum are older ones.
        limit: the most bytes that it may have.
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
    """A file to be written that takes its place when the block ends well; until then, and else, nothing changes.

    With ``earlier`` the file that was there is kept under that name. Wherever it is cut short, one of both is whole.
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
        with suppress(OSError):  # what went wrong first is what is told
            unfinished.unlink(missing_ok=True)
            if moved is not None and not path.exists():
                moved.replace(path)
        raise
    sync_folder(path.parent)


def read_json(path: Path, *, limit: int = RECORD) -> Any:
    """The content of a JSON file; a ValueError that names the file where it is none."""
    return parse_json(read_file(path, limit=limit), f"'{path}'")


def parse_json(text: bytes, what: str) -> Any:
    """The content of JSON in UTF-8.

    A ValueError, which begins with what it is, for all else: also for numbers of thousands of digits, for brackets
    within brackets without end, and for a name that an object has twice, of which readers would take one or the other.
    """
    try:
        return json.loads(text.decode(), object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{what} must be a JSON file. It is damaged: {error}.") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"{name!r:.80} is there twice")
        found[name] = value
    return found


def sweep(folder: Path, *, seconds: float = 0.0, follow: bool = True) -> None:
    """Remove what writes that never ended left behind, where nothing was written to it for some time.

    Args:
        folder: where to look.
        seconds: how long nothing was written.
        follow: whether the folder itself may be a link; inside of a run's folder it may not.
    """
    now = time.time()
    remove_files(folder, lambda name, found: is_leftover(name) and now - found.st_mtime >= seconds, follow=follow)


def is_leftover(name: str) -> bool:
    """Whether a name is that of a write that never ended."""
    return fnmatchcase(name, ".*.unfinished-*")


def sync_folder(folder: Path) -> None:
    """Make renames last through a loss of power, where the system can."""
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
