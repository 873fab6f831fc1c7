"""Safe opening of untrusted files: regular files of a sane size, and no links.

Every file below a run's folder is opened here, without following a link and without waiting for a pipe. Files are
removed through the handle of an open folder. An error is both a ValueError, for readers that treat it as damage, and an
OSError, for writers that continue elsewhere.
"""

from __future__ import annotations

import errno
import io
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

RECORD = 64 << 20
"""The most bytes of a JSON file: a front of a hundred thousand models has fewer."""

SMALL_RECORD = 4 << 20
"""The most bytes of a JSON file that does not grow with the models: a manifest, the options of a command."""

WORD = 64 << 10
"""The most bytes of a lock or a token."""

TENSORS = 1 << 40
"""The most bytes of a file of tensors."""

LINE = 16 << 20
"""The most bytes of a line of a log; longer ones are skipped."""

_HOLES = 64  # a sparse file that exceeds its stored bytes by this factor is an attack on time and memory

# Not every system has all of them. Without O_NOFOLLOW, links are checked before and after a file is opened.
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)
_SAFE = _NO_FOLLOW | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOCTTY", 0)
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
_BY_HANDLE = os.unlink in os.supports_dir_fd and os.listdir in os.supports_fd and os.stat in os.supports_dir_fd
_KINDS = {
    stat.S_IFLNK: "a link",
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class UnsafeFileError(ValueError, OSError):
    """Anything but a regular file of a sane size.

    A ValueError for readers, which treat it as damage, and an OSError for writers, which cannot write there.
    """

    def __str__(self) -> str:
        return str(self.args[0])


def exists(path: Path) -> bool:
    """Whether anything has this name; a link counts, wherever it leads."""
    return os.path.lexists(path)


def kind_of(path: Path) -> str | None:
    """The kind of file under a name: "a link", "a pipe", ...; None for a regular file, and if there is none."""
    try:
        return _kind(os.lstat(path).st_mode)
    except OSError:
        return None


def open_file(path: Path, *, limit: int, follow: bool = False) -> io.BufferedReader:
    """Open a regular file to read it.

    Args:
        path: the file. A link, a pipe, a device or a folder in its place is an :class:`UnsafeFileError`.
        limit: the largest size in bytes.
        follow: whether links are followed, for files outside a run's folder.
    """

    def check(found: os.stat_result) -> None:
        if found.st_size > limit:
            raise UnsafeFileError(f"'{path}' must have at most {limit:,} bytes. Got {found.st_size:,} instead.")
        stored = 512 * getattr(found, "st_blocks", 0)  # 0 where the system does not say
        if 0 < stored * _HOLES < found.st_size and found.st_size > RECORD:
            sizes = f"Got {found.st_size:,} bytes, of which {stored:,} are stored"
            raise UnsafeFileError(f"'{path}' must not be a sparse file. {sizes}.")

    return io.open(path, "rb", opener=_opener(path, check, follow=follow))  # noqa: UP020 (what tests stand in for)


def read_file(path: Path, *, limit: int, follow: bool = False) -> bytes:
    """Read a regular file; see :func:`open_file`."""
    with open_file(path, limit=limit, follow=follow) as file:
        return file.read(os.fstat(file.fileno()).st_size)  # no more, even if it grows meanwhile


def create_file(path: Path) -> IO[bytes]:
    """Open a new file to write it. An existing file or link target of that name is never written to."""
    if exists(path):
        path.unlink()  # left by a process with the same id, or planted for us to write through
    return io.open(path, "wb", opener=lambda name, flags: os.open(name, flags | _SAFE | os.O_EXCL, 0o666))  # noqa: UP020


def append_file(path: Path) -> IO[str]:
    """Open or create a regular file to append text; a file with several hard links is refused."""

    def check(found: os.stat_result) -> None:
        if found.st_nlink > 1:
            raise UnsafeFileError(f"'{path}' must have one name to be written. It has {found.st_nlink} (hard links).")

    opener = _opener(path, check)
    return io.open(path, "a", encoding="utf-8", errors="backslashreplace", opener=opener)  # noqa: UP020


def open_handle(path: Path, flags: int) -> int:
    """Open a regular file and return its handle, for locks."""
    return _opener(path, lambda found: None)(str(path), flags)


def check_file_kind(path: Path) -> None:
    """Refuse anything but a regular file, or nothing, under this name."""
    if (kind := kind_of(path)) is not None:
        raise UnsafeFileError(_refusal(path, kind, "regular file"))


def check_folder_kind(path: Path) -> None:
    """Refuse anything but a folder, or nothing, under this name: a link to a folder leads out of a run."""
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISDIR(mode):
        raise UnsafeFileError(_refusal(path, _kind(mode) or "a file", "folder"))


def names_in(folder: Path, *, follow: bool = True) -> list[str]:
    """The names in a folder; empty if it does not exist."""
    try:
        with _opened(folder, follow=follow) as handle:
            return _listed(folder, handle)
    except FileNotFoundError:
        return []


def remove_files(folder: Path, selected: Callable[[str, os.stat_result], bool], *, follow: bool = True) -> list[str]:
    """Remove the files of a folder that a predicate selects by name and state; return their names.

    The folder is opened once, so that it cannot be replaced by a link meanwhile. A link is removed, not its target;
    folders stay.
    """
    removed = []
    with suppress(FileNotFoundError), _opened(folder, follow=follow) as handle:
        for name in _listed(folder, handle):
            place: dict[str, Any] = {"dir_fd": handle} if _BY_HANDLE else {}
            path = name if _BY_HANDLE else str(folder / name)
            with suppress(FileNotFoundError):  # another process was quicker
                found = os.lstat(path, **place)
                if not stat.S_ISDIR(found.st_mode) and selected(name, found):
                    os.unlink(path, **place)
                    removed.append(name)
    return removed


def _listed(folder: Path, handle: int) -> list[str]:
    return sorted(os.listdir(handle if _BY_HANDLE else folder))  # noqa: PTH208 (paths know no handles)


@contextmanager
def _opened(folder: Path, *, follow: bool) -> Iterator[int]:
    """Open a handle of a folder; -1 if the system has none."""
    if not follow:
        check_folder_kind(folder)
    if not _BY_HANDLE:
        if not folder.is_dir():
            raise FileNotFoundError(str(folder))
        yield -1
        return
    handle = os.open(folder, _FOLDER | (0 if follow else _NO_FOLLOW))
    try:
        yield handle
    finally:
        os.close(handle)


def _opener(path: Path, check: Callable[[os.stat_result], None], *, follow: bool = False) -> Callable[[str, int], int]:
    def opened(name: str, flags: int) -> int:
        if not follow and not _NO_FOLLOW:
            check_file_kind(path)
        try:
            handle = os.open(name, flags | (_SAFE & ~_NO_FOLLOW if follow else _SAFE), 0o666)
        except OSError as error:
            kind = None if follow else kind_of(path)
            if kind is None or error.errno in (errno.EACCES, errno.EPERM):
                raise
            raise UnsafeFileError(_refusal(path, kind, "regular file")) from None
        try:
            found = os.fstat(handle)
            if (kind := _kind(found.st_mode)) is not None:
                raise UnsafeFileError(_refusal(path, kind, "regular file"))
            if not follow and not _NO_FOLLOW and not os.path.samestat(found, os.lstat(path)):
                raise UnsafeFileError(_refusal(path, "exchanged while it was opened", "regular file"))
            check(found)
        except BaseException:
            os.close(handle)
            raise
        return handle

    return opened


def _kind(mode: int) -> str | None:
    return None if stat.S_ISREG(mode) else _KINDS.get(stat.S_IFMT(mode), "no file")


def _refusal(path: Path, kind: str, wanted: str) -> str:
    where = ""
    if kind == "a link":
        with suppress(OSError):
            where = f" to '{path.readlink()}'"
        where += ", which is not followed"
    return f"'{path}' must be a {wanted}. It is {kind}{where}."
