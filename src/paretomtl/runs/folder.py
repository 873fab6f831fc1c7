"""A run's folder: what was asked for, a log, checkpoints that are whole or absent, and the front."""

from __future__ import annotations

import json
import os
import re
import tempfile
import time
import uuid
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import Tensor

from paretomtl._support.files import (
    NewerFormatError,
    check_format,
    check_writable,
    parse_json,
    pointing_to_doctor,
    read_record,
    read_tensors,
    sweep,
    write_record,
    write_tensors,
)
from paretomtl._support.locks import Lock
from paretomtl._support.pack import pack, unpack
from paretomtl._support.safe_open import (
    LINE,
    append_file,
    check_file_kind,
    check_folder_kind,
    exists,
    names_in,
    open_file,
)
from paretomtl._support.text import cut_to_difference
from paretomtl.front import Front
from paretomtl.front.storage import sweep_front, write_front
from paretomtl.problems import Problem
from paretomtl.runs.manifest import LOG, NAME, Manifest, is_member, read_manifest

FORMAT = 3
"""The version of a run's configuration and of its checkpoints."""

CONFIG, LOCK = "config.json", ".lock"
_MOMENT = 0.2  # seconds that somebody who looks at a lock may hold it
CHECKPOINT, PREVIOUS = "checkpoint.safetensors", "checkpoint-previous.safetensors"
IDENTITY = "run"
"""Under this name a configuration and its checkpoints say which run they are of."""

_FOLDERS = ("front", "shards")
_LONGEST_LOG = 1 << 40  # bytes
_COUNTS = 2**63  # what a checkpoint counts is smaller
_OR_MORE = {"epochs": ", or more,", "patience": ", or more, or None where it has one,"}


class RunFolder:
    """The files of one run.

    It is written by one process at a time, from :meth:`open` to :meth:`close`; anybody may read it.

    Files:
        config.json: what was asked for, and the strategy that was taken.
        log.jsonl: one line per report.
        checkpoint.safetensors: all that a later process needs to go on.
        checkpoint-previous.safetensors: the one before, for the day that the last one is damaged.
        front: the result (:meth:`paretomtl.Front.save`).
        manifest.json: length and checksum of each file; written last.
        .lock: who is writing.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = Lock(path / LOCK)
        self._manifest = Manifest(path)
        self._identity: str | None = None
        self._log_works = True
        self._log_seen = False

    @property
    def checkpoint_path(self) -> Path:
        """Where the last checkpoint is."""
        return self.path / CHECKPOINT

    @property
    def previous_path(self) -> Path:
        """Where the checkpoint before the last one is."""
        return self.path / PREVIOUS

    @property
    def front_path(self) -> Path:
        """Where the front is, once there is one."""
        return self.path / "front"

    def open(self, *, resume: bool) -> dict[str, Any] | None:
        """Make the folder, see that it can be written, and keep others from it.

        Returns:
            What the configuration of the run in it says; None where there is none yet.
        """
        check_writable("out", self.path)
        check_entries(self.path)
        holder = self._lock.take(_MOMENT)
        if holder is not None:
            raise BlockingIOError(
                f"'out' must be a folder that no other process writes. '{self.path}' is locked by {holder}: wait until "
                "it ends, stop it, or take another folder."
            )
        sweep(self.path)
        path = self.path / CONFIG
        if not exists(path):
            self._clear()
            self._identity = uuid.uuid4().hex
            return None
        if not resume:
            raise ValueError(
                f"'out' must be a new folder, or come with resume=True (--resume). '{self.path}' holds a run already."
            )
        with pointing_to_doctor(self.path):
            stored = read_record(path, [FORMAT])
        self._identity = identity_of(stored)
        try:
            read_manifest(self.path)
        except NewerFormatError:
            raise
        except ValueError as error:
            warnings.warn(
                f"{error} The files say for themselves whether they are whole; it is written anew.", stacklevel=2
            )
        return stored

    def close(self) -> None:
        """Let others write."""
        self._lock.release()

    def _clear(self) -> None:
        """Make room for a new run: refuse what is not ours, remove what a run left that was killed as it began."""
        names = [NAME, "front.json", *([] if exists(self.checkpoint_path) else [LOG, "front"])]
        foreign = [name for name in names if exists(self.path / name)]
        if foreign:
            raise ValueError(
                f"'out' must be an empty folder, or that of a run. '{self.path}' has a {foreign[0]!r}: take another."
            )
        for path in (self.checkpoint_path, self.previous_path):  # of other settings, perhaps
            path.unlink(missing_ok=True)

    def check(self, stored: Mapping[str, Any], config: Mapping[str, Any], start: str | None = None) -> None:
        """Refuse to go on with another run than the one in the folder.

        Args:
            stored: the configuration in the folder.
            config: that of the run at hand.
            start: in what the untrained model differs, where it does: measured, so not to the last digit.
        """
        found = _flat(json.loads(json.dumps({name: value for name, value in config.items() if name != "start"})))
        expected = _flat(stored)
        for name, value in found.items():
            known = expected.get(name)
            if known == value or (name.startswith("data.") and name in expected and None in (known, value)):
                continue  # data without a checksum are judged by the start
            theirs, mine = cut_to_difference(json.dumps(known), json.dumps(value))
            name = "start" if name == "warm_start" else name
            rule = f"'{name}' must be that of the run in '{self.path}'{_OR_MORE.get(name, '')} to resume it"
            of_data = (
                " These are checksums: its values, their order or dtype differ." if name.startswith("data.") else ""
            )
            raise ValueError(f"{rule}: {theirs}. Got {mine} instead.{of_data}")
        gone = [name for name in expected if name.startswith(("data.", "metrics.")) and name not in found]
        if gone:
            raise ValueError(f"'{gone[0]}' must be given to resume the run in '{self.path}', which has it. Got none.")
        if start is not None:
            raise ValueError(f"'problem' must be that of the run in '{self.path}' to resume it: {start}.")

    def begin(self, config: Mapping[str, Any]) -> None:
        """Write down what is about to be run."""
        own = {} if self._identity is None else {IDENTITY: self._identity}
        write_record(self.path / CONFIG, {**config, **own}, format=FORMAT)
        self._list()

    def extend(self, config: Mapping[str, Any], problem: Problem) -> None:
        """Write down that the run goes on for longer than it was asked for before.

        The front is no longer that of a complete run, and says so first: where the process is killed before the
        configuration is written, resuming makes it again from the last checkpoint.
        """
        front = self.load_front(problem)
        try:
            if front is not None:
                write_front(replace(front, complete=False, ended="to be trained longer"), self.front_path, follow=False)
            self.begin(config)
        except OSError as error:
            raise ValueError(f"'out' must have room for a run. {error}.") from None

    def log(self, event: str, **fields: Any) -> None:
        """Add a line to the log; a log that cannot be written is said once and does not stop a run."""
        line = json.dumps({"event": event, "time": round(time.time(), 3), **fields}, ensure_ascii=False) + "\n"
        try:
            path = self.path / LOG
            torn = not self._log_seen and exists(path) and not _ends_well(path)
            self._log_seen = True
            with append_file(path) as file:
                file.write(("\n" if torn else "") + line)
        except OSError as error:
            if self._log_works:
                warnings.warn(f"the log in '{self.path}' cannot be written: {error}. Training goes on.", stacklevel=2)
            self._log_works = False

    def save_checkpoint(self, state: Mapping[str, Any]) -> None:
        """Store a checkpoint, and keep the last one as the previous; or leave the last one where it is."""
        tensors: dict[str, Tensor] = {}
        packed = pack(dict(state), tensors)
        meta = {"kind": "checkpoint", "format": str(FORMAT), "state": json.dumps(packed)}
        identity = self._known_identity()
        meta |= {} if identity is None else {IDENTITY: identity}
        write_tensors(self.checkpoint_path, tensors, meta, self.previous_path)
        if exists(self.path / CONFIG):
            self._list()

    def load_checkpoint(self) -> dict[str, Any] | None:
        """What the last checkpoint holds, on the CPU, or the previous one where it is damaged; None without any."""
        if not exists(self.checkpoint_path) and not exists(self.previous_path):
            return None
        try:
            return read_checkpoint(self.checkpoint_path, self._known_identity())
        except NewerFormatError:
            raise
        except (ValueError, FileNotFoundError) as error:
            reason = "it is missing" if isinstance(error, FileNotFoundError) else error
            try:
                state = read_checkpoint(self.previous_path, self._known_identity())
            except (ValueError, FileNotFoundError) as another:
                raise ValueError(
                    f"'{self.path}' must hold a whole checkpoint to be resumed. The last one: {reason} The one before "
                    f"it: {another} What can be saved, 'paretomtl doctor' says; to start over, delete the folder."
                ) from None
            warnings.warn(
                f"the last checkpoint in '{self.path}' is lost ({reason}); the run goes on from the one before it, "
                f"of step {state['number']}.",
                stacklevel=2,
            )
            self.restore()
            return state

    def _known_identity(self) -> str | None:
        """Which run this is, by what was opened or by its configuration; None where neither says it."""
        if self._identity is None and exists(self.path / CONFIG):
            with suppress(ValueError, OSError):
                self._identity = identity_of(read_record(self.path / CONFIG, [FORMAT]))
        return self._identity

    def restore(self) -> None:
        """Put the previous checkpoint in the place of the last one, before that one would be kept as the previous."""
        self.previous_path.replace(self.checkpoint_path)

    def load_front(self, problem: Problem) -> Front | None:
        """The front; None where there is none yet, and for a damaged one, which the checkpoint makes again."""
        check_folder_kind(self.front_path)
        if not exists(self.front_path / "front.json"):
            return None
        try:
            front = Front.load(self.front_path, problem)
        except NewerFormatError:
            raise
        except (ValueError, FileNotFoundError) as error:
            warnings.warn(f"the front is made again from the last checkpoint: {error}", stacklevel=2)
            return None
        if front.complete:  # nothing will be written any more: leave the folder as it should be
            with suppress(OSError):
                sweep_front(self.front_path, follow=False)
            self._list()
        return front

    def save_front(self, front: Front) -> None:
        """Store the result; where that fails, store it elsewhere and say so; the caller still has it."""
        try:
            write_front(front, self.front_path, follow=False)
        except OSError as error:
            warnings.warn(
                f"the front cannot be stored in '{self.front_path}': {error}. {_saved_elsewhere(front)} "
                "resume=True makes it again from the last checkpoint.",
                stacklevel=2,
            )
        else:
            self._list()

    def _list(self) -> None:
        """Bring the manifest up to date; without it, everything still loads."""
        try:
            self._manifest.write()
        except OSError as error:
            warnings.warn(f"the manifest in '{self.path}' cannot be written: {error}. Training goes on.", stacklevel=2)


def check_entries(folder: Path) -> None:
    """Refuse the folder of a run in which a link, a pipe or a device stands for one of its files or folders.

    The folder itself may be reached through a link; what is inside is the run's own, and a link leads out of it.
    """
    for name in names_in(folder):
        if name in (*_FOLDERS, LOCK, LOG, NAME) or is_member(name):
            (check_folder_kind if name in _FOLDERS else check_file_kind)(folder / name)
    for name in names_in(folder / "front", follow=False):
        if is_member(f"front/{name}"):
            check_file_kind(folder / "front" / name)


def identity_of(config: Mapping[str, Any]) -> str | None:
    """Which run a configuration is of; None for one of an earlier version."""
    found = config.get(IDENTITY)
    return found if isinstance(found, str) else None


def read_checkpoint(path: Path, identity: str | None = None) -> dict[str, Any]:
    """What a checkpoint holds, on the CPU; a ValueError that names a file which is damaged or of another kind.

    Args:
        path: the file.
        identity: of the run that it must be of; None for any.
    """
    tensors, meta = read_tensors(path)
    if meta.get("kind") != "checkpoint":
        raise ValueError(f"'{path}' must be a checkpoint. Got {meta.get('kind')!r:.40} instead.")
    number = meta.get("format", "")
    check_format(path, int(number) if re.fullmatch("[0-9]{1,9}", number) else number[:40], [FORMAT])
    if identity is not None and meta.get(IDENTITY) != identity:
        raise ValueError(f"'{path}' must be a checkpoint of this run. It is whole, and of another run.")
    words = parse_json(meta.get("state", "").encode(), f"'{path}'")
    try:
        state: dict[str, Any] = unpack(words, tensors)
        counts = {name: state[name] for name in ("epoch", "step", "number")}
        if not all(isinstance(count, int) and 0 <= count < _COUNTS for count in counts.values()):
            raise ValueError(f"invalid counters: {counts!s:.200}")
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise ValueError(f"'{path}' must describe where a run stands. It is damaged: {error!r}.") from None
    return state


@contextmanager
def explain_mismatch(path: Path) -> Iterator[None]:
    """Turn whatever comes of a file that is whole, but not of this run, into a ValueError that names it."""
    try:
        yield
    except (ArithmeticError, ValueError, TypeError, LookupError, AttributeError, RuntimeError) as error:
        raise ValueError(
            f"'{path}' must be of this run to resume it. It does not fit: {error!r}. Take another folder."
        ) from None


def _saved_elsewhere(front: Front) -> str:
    try:
        folder = tempfile.mkdtemp(prefix="paretomtl-front-")
        front.save(folder)
    except OSError as error:
        return f"Nor can it be stored elsewhere: {error}."
    return f"It is in '{folder}' instead."


def read_log(path: Path) -> list[dict[str, Any]]:
    """The events of a run's log, without lines that are no event, such as one that was torn by a crash."""
    events = []
    for line in lines_of(path / LOG):
        with suppress(ValueError):
            events += [parse_json(line, "an event")] if line else []
    return [event for event in events if isinstance(event, dict)]


def _flat(config: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration with dotted names in place of objects within it."""
    found: dict[str, Any] = {}
    for name, value in config.items():
        inner = _flat(value) if isinstance(value, dict) else {}
        found |= {f"{name}.{key}": part for key, part in inner.items()} if inner else {name: value}
    return found


def lines_of(path: Path) -> Iterator[bytes]:
    """The lines of a log, without their ends; those that are longer than any report are left out.

    A last line that has no end is a line, too; where the file ends with one, the last is empty.
    """
    with open_file(path, limit=_LONGEST_LOG) as file:
        whole = True
        while piece := file.readline(LINE):
            ended = piece.endswith(b"\n")
            if whole and (ended or len(piece) < LINE):
                yield piece.removesuffix(b"\n")
            whole = ended
        if whole:
            yield b""


def _ends_well(path: Path) -> bool:
    """Whether a log is empty, or ends with a whole line."""
    with open_file(path, limit=_LONGEST_LOG) as file:
        if not file.seek(0, os.SEEK_END):
            return True
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"
