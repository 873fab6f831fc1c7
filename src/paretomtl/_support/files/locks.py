"""Locks between processes: one writer at a time, by a lock on an open file that the system releases with its process.

The presence of a file is never the lock, because it could outlive its process. The file is removed while the lock is
held; a process that takes a lock checks that its file is still the one in the folder. Children of a process close the
locks that they inherit.

``filelock``, a dependency of torch, guarantees less. On Unix it leaves its file behind. On a file system without
``flock`` it fails, or locks by the presence of a file, which outlives its process. Its file does not name the owner. It
opens pipes and devices as well as regular files.
"""

from __future__ import annotations

import datetime
import errno
import json
import os
import socket
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from paretomtl._support.files.safe_open import WORD, open_handle, read_file

_NO_LOCKS = (errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.ENOLCK, errno.EINVAL)
_PAUSE = 0.02  # seconds between two attempts to take a lock
_held: set[int] = set()


@dataclass(frozen=True)
class Owner:
    """The process that holds a lock, as recorded in its file."""

    pid: int | None = None
    host: str | None = None
    since: str | None = None

    def __str__(self) -> str:
        if self.pid is None:
            return "another process"
        return f"process {self.pid} on {self.host} since {self.since}"


class Lock:
    """A lock between processes, and between threads of one process.

    The file names the owner, only for messages. What counts is the lock of the system (``flock``; a byte range by
    ``msvcrt`` on Windows). A release removes the file; a stale file of a killed process does not lock anything.

    Args:
        path: the file; its folder must exist. A link in its place is an error, and nothing is written through it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._handle: int | None = None

    def take(self, seconds: float = 0.0) -> Owner | None:
        """Take the lock, and retry until the timeout in seconds; return None if it was taken, else its owner."""
        end = time.monotonic() + seconds
        while True:
            handle = open_handle(self.path, os.O_RDWR | os.O_CREAT)
            try:
                taken = _try_lock(handle, self.path)
                current = taken and _is_at(handle, self.path)  # the last owner may have removed the file meanwhile
            except BaseException:
                os.close(handle)
                raise
            if current:
                break
            os.close(handle)
            if not taken and time.monotonic() >= end:
                return read_owner(self.path)
            time.sleep(0.0 if taken else _PAUSE)
        self._handle = handle
        _held.add(handle)
        since = datetime.datetime.now().astimezone().isoformat(" ", "seconds")
        owner = json.dumps({"pid": os.getpid(), "host": socket.gethostname(), "since": since}).encode()
        with suppress(OSError):  # a full disk: the lock holds without an owner's name
            if os.fstat(handle).st_nlink == 1:  # a hard link would overwrite another file too
                os.ftruncate(handle, 0)
                os.write(handle, owner)
        return None

    def release(self) -> None:
        """Release the lock; a no-op if it is not held, as in a child process."""
        handle, self._handle = self._handle, None
        if handle is None or handle not in _held:
            return
        _held.discard(handle)
        with suppress(OSError):  # the folder may be gone; Windows keeps open files
            if _is_at(handle, self.path):
                self.path.unlink()
        os.close(handle)


@contextmanager
def locked(path: Path, seconds: float = 60.0) -> Iterator[None]:
    """Hold a lock for a short piece of work; wait for its owner, and raise an error that names it after a timeout."""
    lock = Lock(path)
    holder = lock.take(seconds)
    if holder is not None:
        raise BlockingIOError(
            f"'{path.parent}' must be free to be written. {holder} has locked '{path}': try again when it has ended."
        )
    try:
        yield
    finally:
        lock.release()


def is_held(path: Path) -> bool:
    """Whether a process holds a lock; does not change its file."""
    try:
        handle = open_handle(path, os.O_RDWR)
    except OSError:  # also if it is not a regular file
        return False
    try:
        return not _try_lock(handle, path)
    finally:
        os.close(handle)


def read_owner(path: Path) -> Owner:
    """Read the process that last wrote a lock's file."""
    try:
        owner = json.loads(read_file(path, limit=WORD).decode())
        return Owner(int(owner["pid"]), str(owner["host"]), str(owner["since"]))
    except (OSError, ValueError, LookupError, TypeError, OverflowError, RecursionError):
        return Owner()


def _is_at(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), path.lstat())
    except FileNotFoundError:
        return False


if sys.platform == "win32":
    import msvcrt

    _FAR = 1 << 30  # beyond the content, which others may read

    def _try_lock(handle: int, path: Path) -> bool:
        os.lseek(handle, _FAR, os.SEEK_SET)
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        finally:
            os.lseek(handle, 0, os.SEEK_SET)
        return True

else:
    import fcntl

    def _try_lock(handle: int, path: Path) -> bool:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
            warnings.warn(
                f"the file system of '{path}' has no locks ({error}): make sure that only one process writes there at "
                "a time.",
                stacklevel=4,
            )
        return True

    def _drop_inherited() -> None:
        """Close the locks of the parent in a child process, which must not keep them after the parent dies."""
        for handle in _held:
            os.close(handle)
        _held.clear()

    os.register_at_fork(after_in_child=_drop_inherited)
