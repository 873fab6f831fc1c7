"""A file system that fails on purpose: every system call of a write is counted, and one of them goes wrong.

:class:`Watch` stands between Python and the files under a folder. It records the calls, and at the n-th one kills the
process, truncates a write, or lets the system refuse. :class:`Disk` replays the record and says what a disk holds after
a power cut: data that were not synced are lost, names that were not synced may be.
"""

from __future__ import annotations

import errno
import io
import os
import random
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ERRORS = ("ENOSPC", "EIO", "EROFS", "EMFILE")


@dataclass(frozen=True)
class Call:
    """A system call: open, write, fsync, rename, unlink, mkdir or sync (of a folder)."""

    kind: str
    path: str
    other: str = ""
    data: bytes = b""


@dataclass(frozen=True)
class Fault:
    """A fault at one call: "kill", "tear" (half a write, then the kill), or the name of an error.

    Attributes:
        kind: of the fault.
        at: the number of the call.
        lasting: whether all later calls fail, too; a kill always lasts.
    """

    kind: str
    at: int
    lasting: bool = False


class Watch:
    """Counts and records the calls under a folder while it is entered, and lets one of them fail."""

    def __init__(self, folder: Path, fault: Fault | None = None) -> None:
        self.folder = str(folder)
        self.calls: list[Call] = []
        self._fault = fault
        self._real = {name: getattr(os, name) for name in ("fsync", "replace", "unlink", "mkdir")}
        self._open = io.open

    def __enter__(self) -> Watch:
        io.open = self._open_file  # type: ignore[assignment]
        for name in self._real:
            setattr(os, name, getattr(self, f"_{name}"))
        return self

    def __exit__(self, *_: object) -> None:
        io.open = self._open
        for name, real in self._real.items():
            setattr(os, name, real)

    def _call(self, kind: str, path: Any, other: Any = "", data: bytes = b"", tear: Callable[[], Any] = int) -> None:
        """Record a call before it happens, or let it fail."""
        fault, number = self._fault, len(self.calls)
        self.calls.append(Call(kind, self._name(path), self._name(other) if other else "", bytes(data)))
        if fault is None or number < fault.at or (number > fault.at and not fault.lasting):
            return
        if kind == "write" and fault.kind != "kill":
            tear()
        if fault.kind in ("kill", "tear"):
            os.kill(os.getpid(), signal.SIGKILL)
        code = getattr(errno, fault.kind)
        raise OSError(code, os.strerror(code), str(path))

    def _watched(self, path: Any) -> bool:
        name = os.fspath(path) if not isinstance(path, int) else ""
        return name == self.folder or (name.startswith(self.folder + os.sep) and not name.endswith(".lock"))

    def _name(self, path: Any) -> str:
        return os.path.relpath(os.fspath(path), self.folder)

    def _open_file(self, file: Any, mode: str = "r", *rest: Any, **options: Any) -> Any:
        if not self._watched(file) or mode not in ("wb", "a"):
            return self._open(file, mode, *rest, **options)
        self._call("open" if mode == "wb" else "append", file)
        raw = _Watched(file, mode.removesuffix("b"), self, options.get("opener"))
        return io.BufferedWriter(raw) if mode == "wb" else io.TextIOWrapper(io.BufferedWriter(raw), encoding="utf-8")

    def _fsync(self, handle: int) -> None:
        name = str(Path(f"/proc/self/fd/{handle}").readlink())
        if self._watched(name):
            self._call("sync" if Path(name).is_dir() else "fsync", name)
        self._real["fsync"](handle)

    def _replace(self, source: Any, target: Any) -> None:
        if self._watched(source) and Path(source).exists():
            self._call("rename", source, target)
        self._real["replace"](source, target)

    def _unlink(self, path: Any, **options: Any) -> None:
        folder = f"/proc/self/fd/{options['dir_fd']}" if options.get("dir_fd") is not None else ""
        whole = Path(folder).readlink() / path if folder else path
        if self._watched(whole) and Path(whole).exists():
            self._call("unlink", whole)
        self._real["unlink"](path, **options)

    def _mkdir(self, path: Any, *rest: Any, **options: Any) -> None:
        if self._watched(path) and not Path(path).exists():
            self._call("mkdir", path)
        self._real["mkdir"](path, *rest, **options)


class _Watched(io.FileIO):
    def __init__(self, path: Any, mode: str, watch: Watch, opener: Any) -> None:
        super().__init__(path, mode, opener=opener)
        self._watch = watch

    def write(self, data: Any) -> int:
        half = bytes(data)[: len(bytes(data)) // 2]
        self._watch._call("write", self.name, data=data, tear=lambda: super(_Watched, self).write(half))
        return super().write(data)


@dataclass
class Disk:
    """The content of a disk: as the system shows it, and as it would be after a power cut.

    Attributes:
        files: the initial content, all of it synced.
    """

    files: dict[str, bytes]
    _shown: dict[str, int] = field(default_factory=dict)
    _kept: dict[str, int] = field(default_factory=dict)
    _written: list[bytes] = field(default_factory=list)
    _synced: list[bytes] = field(default_factory=list)
    _folders: set[str] = field(default_factory=set)
    _pending: list[tuple[str, str, str, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        for name, data in self.files.items():
            self._shown[name] = self._kept[name] = self._new(data)
            self._folders.add(_folder(name))
        self._folders.add(".")

    def _new(self, data: bytes = b"") -> int:
        self._written.append(data)
        self._synced.append(data)
        return len(self._written) - 1

    def do(self, call: Call) -> None:
        """Apply a call to the disk."""
        path = call.path
        if call.kind == "open" or (call.kind == "append" and path not in self._shown):
            self._shown[path] = self._new()
            self._later("link", path, "", self._shown[path])
        elif call.kind == "write":
            self._written[self._shown[path]] += call.data
        elif call.kind == "fsync":
            self._synced[self._shown[path]] = self._written[self._shown[path]]
        elif call.kind == "rename":
            self._shown[call.other] = self._shown.pop(path)
            self._later("rename", path, call.other, self._shown[call.other])
        elif call.kind == "unlink":
            self._later("unlink", path, "", self._shown.pop(path))
        elif call.kind == "mkdir":
            self._later("mkdir", path, "", -1)
        elif call.kind == "sync":
            for change in [change for change in self._pending if _folder(change[1]) == path]:
                self._pending.remove(change)
                self._apply(change, self._kept, self._folders)

    def _later(self, *change: Any) -> None:
        self._pending.append(change)

    @staticmethod
    def _apply(change: tuple[str, str, str, int], names: dict[str, int], folders: set[str]) -> None:
        kind, path, other, place = change
        if kind == "mkdir":
            folders.add(path)
        elif kind == "link":
            names[path] = place
        else:
            names.pop(path, None)
            if kind == "rename":
                names[other] = place

    def after_cut(self, how: str, chance: random.Random) -> dict[str, bytes]:
        """The files that are left: "nothing" unsynced; all "names" without data; or "some" of both, at random."""
        names, folders = dict(self._kept), set(self._folders)
        for change in self._pending:
            if how == "names" or (how == "some" and chance.random() < 0.5):
                self._apply(change, names, folders)
        left = {}
        for name, place in names.items():
            written, synced = self._written[place], self._synced[place]
            more = chance.randint(len(synced), len(written)) if how == "some" else len(synced)
            if _folder(name) in folders:
                left[name] = written[:more]
        return left


def _folder(name: str) -> str:
    return str(Path(name).parent)
