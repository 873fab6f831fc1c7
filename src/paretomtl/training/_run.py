"""A run's folder: what was asked for, a log, checkpoints that are whole or absent, and the front."""

from __future__ import annotations

import json
import re
import tempfile
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from torch import Tensor

from paretomtl._files import (
    NewerFormatError,
    check_format,
    check_writable,
    pack,
    parse_json,
    read_record,
    read_tensors,
    sweep,
    unpack,
    write_record,
    write_tensors,
)
from paretomtl._front_file import sweep_front
from paretomtl._locks import Lock
from paretomtl.front import Front
from paretomtl.problems import Problem
from paretomtl.training._manifest import LOG, NAME, Manifest, read_manifest

FORMAT = 3
"""The version of a run's configuration and of its checkpoints."""

CONFIG, LOCK = "config.json", ".lock"
_MOMENT = 0.2  # seconds that somebody who looks at a lock may hold it
CHECKPOINT, PREVIOUS = "checkpoint.safetensors", "checkpoint-previous.safetensors"


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
        holder = self._lock.take(_MOMENT)
        if holder is not None:
            raise BlockingIOError(
                f"'out' must be a folder that nobody else writes. '{self.path}' is being written by {holder}."
            )
        sweep(self.path)
        path = self.path / CONFIG
        if not path.exists():
            self._clear()
            return None
        if not resume:
            raise ValueError(
                f"'out' must be a new folder, or come with resume=True (--resume). '{self.path}' holds a run already."
            )
        stored = read_record(path, [FORMAT])
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
        names = [NAME] if self.checkpoint_path.exists() else [NAME, LOG, "front"]
        foreign = [name for name in names if (self.path / name).exists()]
        if foreign:
            raise ValueError(f"'out' must be an empty folder, or that of a run. '{self.path}' has a {foreign[0]!r}.")
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
            theirs, mine = _difference(json.dumps(known), json.dumps(value))
            raise ValueError(
                f"'{name}' must be that of the run in '{self.path}' to resume it: {theirs}. Got {mine} instead."
            )
        gone = [name for name in expected if name.startswith(("data.", "metrics.")) and name not in found]
        if gone:
            raise ValueError(f"'{gone[0]}' must be given to resume the run in '{self.path}', which has it. Got none.")
        if start is not None:
            raise ValueError(f"'problem' must be that of the run in '{self.path}' to resume it: {start}.")

    def begin(self, config: Mapping[str, Any]) -> None:
        """Write down what is about to be run."""
        write_record(self.path / CONFIG, config, format=FORMAT)
        self._list()

    def log(self, event: str, **fields: Any) -> None:
        """Add a line to the log; a log that cannot be written is said once and does not stop a run."""
        line = json.dumps({"event": event, "time": round(time.time(), 3), **fields}, ensure_ascii=False) + "\n"
        try:
            path = self.path / LOG
            torn = not self._log_seen and path.exists() and path.read_bytes()[-1:] not in (b"", b"\n")
            self._log_seen = True
            with path.open("a", encoding="utf-8", errors="backslashreplace") as file:
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
        write_tensors(self.checkpoint_path, tensors, meta, self.previous_path)
        if (self.path / CONFIG).exists():
            self._list()

    def load_checkpoint(self) -> dict[str, Any] | None:
        """What the last checkpoint holds, on the CPU, or the previous one where it is damaged; None without any."""
        if not self.checkpoint_path.exists() and not self.previous_path.exists():
            return None
        try:
            return read_checkpoint(self.checkpoint_path)
        except NewerFormatError:
            raise
        except (ValueError, FileNotFoundError) as error:
            reason = "it is missing" if isinstance(error, FileNotFoundError) else error
            try:
                state = read_checkpoint(self.previous_path)
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

    def restore(self) -> None:
        """Put the previous checkpoint in the place of the last one, before that one would be kept as the previous."""
        self.previous_path.replace(self.checkpoint_path)

    def load_front(self, problem: Problem) -> Front | None:
        """The front; None where there is none yet, and for a damaged one, which the checkpoint makes again."""
        if not (self.front_path / "front.json").exists():
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
                sweep_front(self.front_path)
            self._list()
        return front

    def save_front(self, front: Front) -> None:
        """Store the result; where that fails, store it elsewhere and say so; the caller still has it."""
        try:
            front.save(self.front_path)
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


def read_checkpoint(path: Path) -> dict[str, Any]:
    """What a checkpoint holds, on the CPU; a ValueError that names a file which is damaged or of another kind."""
    tensors, meta = read_tensors(path)
    if meta.get("kind") != "checkpoint":
        raise ValueError(f"'{path}' must be a checkpoint. Got {meta.get('kind')!r:.40} instead.")
    number = meta.get("format", "")
    check_format(path, int(number) if re.fullmatch("[0-9]{1,9}", number) else number[:40], [FORMAT])
    words = parse_json(meta.get("state", "").encode(), f"'{path}'")
    try:
        state: dict[str, Any] = unpack(words, tensors)
        counts = {name: state[name] for name in ("epoch", "step", "number")}
        if not all(isinstance(count, int) and count >= 0 for count in counts.values()):
            raise ValueError(f"it counts {counts}")
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise ValueError(f"'{path}' must describe where a run stands. It is damaged: {error!r}.") from None
    return state


@contextmanager
def taking_up(path: Path) -> Iterator[None]:
    """Turn whatever comes of a file that is whole, but not of this run, into a ValueError that names it."""
    try:
        yield
    except (ValueError, TypeError, LookupError, AttributeError, RuntimeError) as error:
        raise ValueError(f"'{path}' must be of this run to resume it. It does not fit: {error!r}.") from None


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
    for line in (path / LOG).read_bytes().split(b"\n"):
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


def _difference(one: str, other: str, around: int = 50) -> tuple[str, str]:
    """Both texts, cut to where they differ."""
    first = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    start = max(0, first - around)

    def cut(text: str) -> str:
        end = first + around
        return ("..." if start else "") + text[start:end] + ("..." if len(text) > end else "")

    return cut(one), cut(other)
