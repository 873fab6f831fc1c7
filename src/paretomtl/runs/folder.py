"""The folder of a run: its configuration, its log, its checkpoints and its front.

Two checkpoints are kept. The last one is renamed to the previous one right before the new one is renamed to its place,
so that one of them is whole and synced at any moment. Resuming falls back to the previous one with a warning. It first
moves that one over the damaged one, so that the damaged file is not kept as the previous checkpoint.

A run that is trained longer writes its front as incomplete first, then its configuration. A kill between the two
leaves a run of the old length, whose front is rebuilt from the checkpoint.

A front that cannot be stored in its folder goes to the folder for temporary files, because the caller may ignore the
returned front.
"""

from __future__ import annotations

import json
import tempfile
import time
import uuid
import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from paretomtl._support.files.atomic_files import (
    NewerFormatError,
    check_writable,
    pointing_to_doctor,
    read_record,
    sweep,
    write_record,
)
from paretomtl._support.files.locks import Lock
from paretomtl._support.files.safe_open import (
    append_file,
    check_file_kind,
    check_folder_kind,
    exists,
    names_in,
)
from paretomtl._support.tensor_json import to_numbers
from paretomtl._support.text import cut_to_difference
from paretomtl.front import Front
from paretomtl.front.storage.front_folder import sweep_front, verify_models, write_front
from paretomtl.problems import Problem
from paretomtl.runs.checkpoint_file import (
    CHECKPOINT,
    FORMAT,
    IDENTITY,
    PREVIOUS,
    identity_of,
    read_checkpoint,
    write_checkpoint,
)
from paretomtl.runs.log import ends_with_line
from paretomtl.runs.manifest import LOG, NAME, Manifest, is_member, read_manifest
from paretomtl.runs.options import OPTIONS, write_options

CONFIG, LOCK = "config.json", ".lock"
_MOMENT = 0.2  # seconds that a process may hold a lock only to inspect it

_FOLDERS = ("front", "shards")
_OR_MORE = {"epochs": ", or more,", "patience": ", or more, or None where it has one,"}


class RunFolder:
    """The files of one run.

    One process at a time writes it, from :meth:`open` to :meth:`close`; any process may read it.

    Files:
        config.json: the settings, and the strategy.
        asked.json: the options of the command line that started the run.
        log.jsonl: one line per report.
        checkpoint.safetensors: everything that a later process needs to resume.
        checkpoint-previous.safetensors: the previous checkpoint, used if the last one is damaged.
        front: the result (:meth:`paretomtl.Front.save`).
        manifest.json: length and checksum of each file; written last.
        .lock: who is writing.

    Args:
        path: the folder.
        options: the options of the command line, stored when the run begins; None for a run that Python started.
    """

    def __init__(self, path: Path, options: Mapping[str, Any] | None = None) -> None:
        self.path = path
        self._options = options
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
        """Where the front is, once it exists."""
        return self.path / "front"

    def open(self, *, resume: bool) -> dict[str, Any] | None:
        """Create the folder, check that it is writable, and lock it against other writers.

        Returns:
            The configuration of the run in it; None if there is none yet.
        """
        check_writable("out", self.path)
        check_entries(self.path)
        holder = self._lock.take(_MOMENT)
        if holder is not None:
            raise BlockingIOError(
                f"'out' is locked by {holder}, which writes to '{self.path}'. Wait until it ends, stop it, or take "
                "another folder."
            )
        sweep(self.path)
        stored = self.peek()
        if stored is None:
            self._clear()
            self._identity = uuid.uuid4().hex
            return None
        if not resume:
            raise ValueError(
                f"'out' must be a new folder, or come with resume=True (--resume). '{self.path}' holds a run already: "
                f"take another folder (--out {self.path}-2) to train again, or resume it."
            )
        self._identity = identity_of(stored)
        try:
            read_manifest(self.path)
        except NewerFormatError:
            raise
        except ValueError as error:
            warnings.warn(
                f"{error} The manifest is rewritten; each file is verified by its own checksum.", stacklevel=2
            )
        return stored

    def peek(self) -> dict[str, Any] | None:
        """Read the configuration of the run in the folder without a lock; None if there is none."""
        path = self.path / CONFIG
        if not exists(path):
            return None
        with pointing_to_doctor(self.path):
            return read_record(path, [FORMAT])

    def close(self) -> None:
        """Release the lock, so that other processes can write."""
        self._lock.release()

    def _clear(self) -> None:
        """Prepare for a new run: refuse foreign files, and remove those of a run that was killed as it began."""
        names = [NAME, "front.json", *([] if exists(self.checkpoint_path) else [LOG, "front"])]
        foreign = [name for name in names if exists(self.path / name)]
        if foreign:
            raise ValueError(
                f"'out' must be an empty folder, or that of a run. '{self.path}' has a {foreign[0]!r}: take another."
            )
        for path in (self.checkpoint_path, self.previous_path, self.path / OPTIONS):  # perhaps of other settings
            path.unlink(missing_ok=True)

    def check(self, stored: Mapping[str, Any], config: Mapping[str, Any], start: str | None = None) -> None:
        """Refuse to resume any other run than the one in the folder.

        Args:
            stored: the configuration in the folder.
            config: the configuration of the current run.
            start: how the untrained model differs, if it does; measured, so not to the last digit.
        """
        fields = _flat(json.loads(json.dumps({name: value for name, value in config.items() if name != "start"})))
        expected = _flat(stored)
        for name, value in fields.items():
            known = expected.get(name)
            if known == value or (name.startswith("data.") and name in expected and None in (known, value)):
                continue  # data without a checksum are compared by the losses at the start
            before, now = cut_to_difference(json.dumps(known), json.dumps(value))
            name = "start" if name == "warm_start" else name
            rule = f"'{name}' must be that of the run in '{self.path}'{_OR_MORE.get(name, '')} to resume it"
            of_data = (
                " These are checksums: its values, their order or dtype differ." if name.startswith("data.") else ""
            )
            raise ValueError(f"{rule}: {before}. Got {now} instead.{of_data}")
        gone = [name for name in expected if name.startswith(("data.", "metrics.")) and name not in fields]
        if gone:
            raise ValueError(f"'{gone[0]}' must be given to resume the run in '{self.path}', which has it. Got none.")
        if start is not None:
            raise ValueError(f"'problem' must be that of the run in '{self.path}' to resume it: {start}.")

    def begin(self, config: Mapping[str, Any]) -> None:
        """Write the configuration and the options of the run."""
        own = {} if self._identity is None else {IDENTITY: self._identity}
        write_record(self.path / CONFIG, {**config, **own}, format=FORMAT)
        if self._options is not None:
            write_options(self.path, self._options)
        self._list()

    def extend(self, config: Mapping[str, Any], problem: Problem) -> None:
        """Record that the run is trained for longer than it was planned.

        The front is marked as incomplete first. If the process is killed before the configuration is written, resuming
        rebuilds the front from the last checkpoint.
        """
        front = self.load_front(problem)
        try:
            if front is not None:
                write_front(replace(front, complete=False, ended="to be trained longer"), self.front_path, follow=False)
            self.begin(config)
        except OSError as error:
            raise ValueError(f"'out' must have room for a run. {error}.") from None

    def log(self, event: str, **fields: Any) -> None:
        """Append a line to the log; if that fails, warn once and go on."""
        content = to_numbers({"event": event, "time": round(time.time(), 3), **fields})
        line = json.dumps(content, ensure_ascii=False, allow_nan=False) + "\n"
        try:
            path = self.path / LOG
            torn = not self._log_seen and exists(path) and not ends_with_line(path)
            self._log_seen = True
            with append_file(path) as file:
                file.write(("\n" if torn else "") + line)
        except OSError as error:
            if self._log_works:
                warnings.warn(f"the log in '{self.path}' cannot be written: {error}. Training goes on.", stacklevel=2)
            self._log_works = False

    def save_checkpoint(self, state: Mapping[str, Any]) -> None:
        """Store a checkpoint and keep the last one as the previous; if that fails, the last one stays."""
        write_checkpoint(self.path, state, self._known_identity())
        if exists(self.path / CONFIG):
            self._list()

    def load_checkpoint(self) -> dict[str, Any] | None:
        """Read the last checkpoint, or the previous one if the last is damaged; None if there is none."""
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
            except (ValueError, FileNotFoundError) as previous_error:
                raise ValueError(
                    f"'{self.path}' must hold a whole checkpoint to be resumed. The last one: {reason} The one before "
                    f"it: {previous_error} 'paretomtl doctor' says what can be saved; to start over, delete the folder."
                ) from None
            warnings.warn(
                f"the last checkpoint in '{self.path}' is lost ({reason}); the run goes on from the one before it, "
                f"of step {state['number']}.",
                stacklevel=2,
            )
            self.restore()
            return state

    def _known_identity(self) -> str | None:
        """Return the identity of the run, as opened or from its configuration; None if neither has one."""
        if self._identity is None and exists(self.path / CONFIG):
            with suppress(ValueError, OSError):
                self._identity = identity_of(read_record(self.path / CONFIG, [FORMAT]))
        return self._identity

    def restore(self) -> None:
        """Move the previous checkpoint over the last one, so that a damaged one is not kept."""
        self.previous_path.replace(self.checkpoint_path)

    def load_front(self, problem: Problem) -> Front | None:
        """Load the front; None if there is none yet, or if it is damaged and must be rebuilt from the checkpoint."""
        check_folder_kind(self.front_path)
        if not exists(self.front_path / "front.json"):
            return None
        try:
            front = Front.load(self.front_path, problem)
            current = self._manifest.is_current()
            if not current:  # a file changed after the manifest was written: by a crash, or by damage
                verify_models(front)
        except NewerFormatError:
            raise
        except (ValueError, FileNotFoundError) as error:
            warnings.warn(f"the front is rebuilt from the last checkpoint: {error}", stacklevel=2)
            return None
        if front.complete:  # nothing more will be written: tidy up the folder
            with suppress(OSError):
                sweep_front(self.front_path, follow=False)
            if not current:
                self._list()
        return front

    def save_front(self, front: Front) -> Path | None:
        """Store the result and return where it is; if that fails, store it elsewhere and warn."""
        try:
            write_front(front, self.front_path, follow=False)
        except Exception as error:  # a full disk, or weights that no file can hold
            place, text = _saved_elsewhere(front)
            warnings.warn(
                f"the front cannot be stored in '{self.front_path}': {error}. {text} "
                "resume=True rebuilds it from the last checkpoint.",
                stacklevel=2,
            )
            return place
        self._list()
        return self.path

    def _list(self) -> None:
        """Update the manifest; everything still loads without it."""
        try:
            if self._options is not None and not exists(self.path / OPTIONS):  # the first process was killed before
                write_options(self.path, self._options)
            self._manifest.write()
        except OSError as error:
            warnings.warn(f"the manifest in '{self.path}' cannot be written: {error}. Training goes on.", stacklevel=2)


def check_entries(folder: Path) -> None:
    """Refuse a run's folder in which one of its files or folders is a link, a pipe or a device.

    The folder itself may be reached through a link. Inside, everything is the run's own; a link would lead out of it.
    """
    for name in names_in(folder):
        if name in (*_FOLDERS, LOCK, LOG, NAME) or is_member(name):
            (check_folder_kind if name in _FOLDERS else check_file_kind)(folder / name)
    for name in names_in(folder / "front", follow=False):
        if is_member(f"front/{name}"):
            check_file_kind(folder / "front" / name)


def _saved_elsewhere(front: Front) -> tuple[Path | None, str]:
    try:
        folder = tempfile.mkdtemp(prefix="paretomtl-front-")
        front.save(folder)
    except Exception as error:
        return None, f"Nor can it be stored elsewhere: {error}."
    return Path(folder), f"It is in '{folder}' instead."


def _flat(config: Mapping[str, Any]) -> dict[str, Any]:
    """Flatten a configuration: nested objects become dotted names."""
    fields: dict[str, Any] = {}
    for name, value in config.items():
        inner = _flat(value) if isinstance(value, dict) else {}
        fields |= {f"{name}.{key}": part for key, part in inner.items()} if inner else {name: value}
    return fields
