"""Inspection and repair of a run's folder, file by file.

A file is whole if the checksum inside it matches; the manifest decides nothing. A repair never removes a whole file.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias

from paretomtl._support.files.atomic_files import NewerFormatError, is_leftover, read_record
from paretomtl._support.files.locks import Lock, is_held, read_owner
from paretomtl._support.files.safe_open import SMALL_RECORD, check_folder_kind, exists, kind_of, names_in, remove_files
from paretomtl.front import Front
from paretomtl.front.storage.front_folder import leftover_files, verify_models
from paretomtl.runs import manifest
from paretomtl.runs.checkpoint_file import CHECKPOINT, FORMAT, PREVIOUS, identity_of, read_checkpoint
from paretomtl.runs.folder import CONFIG, LOCK, RunFolder
from paretomtl.runs.log import lines_of
from paretomtl.runs.manifest import SHARDS
from paretomtl.runs.options import OPTIONS

State: TypeAlias = Literal["ok", "info", "repairable", "lost"]
STATES: tuple[State, ...] = ("ok", "info", "repairable", "lost")
"""From good to bad."""

FRONT = "front/front.json"
_STORED = "front.json"  # of a front that was saved alone
_GO_ON = "resume (--resume) goes on from there"


@dataclass(frozen=True)
class Finding:
    """The state of one file.

    Attributes:
        file: its name in the run's folder.
        state: "ok"; "info", with nothing to do; "repairable", as ``text`` says; or "lost".
        text: the state of the file, and what repairs it.
        repair: a function that repairs it and returns what it did; None if no repair is safe.
    """

    file: str
    state: State
    text: str
    repair: Callable[[], str] | None = field(default=None, repr=False, compare=False)


def worst(findings: list[Finding]) -> State:
    """Return the worst state of the findings."""
    return max((finding.state for finding in findings), key=STATES.index, default="ok")


def inspect_run(run: str | Path) -> list[Finding]:
    """Inspect every file of a run's folder, or of a front that was saved alone, without changing anything.

    A checkpoint or a front counts as whole if the checksum inside it matches.

    Args:
        run: the folder.

    Example:
        >>> import tempfile, paretomtl as pm
        >>> folder = tempfile.mkdtemp()
        >>> front = pm.fit(pm.problems.quadratic(), epochs=3, out=folder, progress="quiet", device="cpu")
        >>> [finding.file for finding in inspect_run(folder)][:3]
        ['config.json', 'checkpoint.safetensors', 'checkpoint-previous.safetensors']
        >>> worst(inspect_run(folder))
        'ok'
    """
    folder = Path(run)
    if _is_stored_front(folder):
        return [_about_stored_front(folder)]
    findings = list(_Inspection(folder).findings())
    for name in _shards(folder):
        findings += [replace(each, file=f"{name}/{each.file}") for each in inspect_run(folder / name)]
    return findings


def repair_run(run: str | Path) -> list[str]:
    """Repair what is safe to repair: leftovers, a damaged checkpoint with a whole one before it, the manifest.

    Whole files are never removed. It is an error if another process is writing the run.

    Args:
        run: the folder.

    Returns:
        One line for each repair.
    """
    folder = Path(run)
    inspect_run(folder)  # raises an error if this is not a run
    if _is_stored_front(folder):
        return []
    lock = Lock(folder / LOCK)
    has_old_lock = exists(lock.path)
    holder = lock.take()
    if holder is not None:
        raise BlockingIOError(
            f"'RUN' is locked by {holder}, which writes to '{folder}'. Wait until it ends, or stop it."
        )
    try:
        done = [finding.repair() for finding in _Inspection(folder).findings() if finding.repair is not None]
        if has_old_lock:
            done.append(f"{LOCK}: removed; its process is gone.")
        done += _list_again(folder)
    finally:
        lock.release()
    return done + [f"{name}/{line}" for name in _shards(folder) for line in repair_run(folder / name)]


def _is_stored_front(folder: Path) -> bool:
    """Whether this folder was written by ``Front.save``, and is not that of a run."""
    of_runs = (CONFIG, CHECKPOINT, PREVIOUS, FRONT, manifest.NAME)
    return exists(folder / _STORED) and not any(exists(folder / name) for name in of_runs)


def _about_stored_front(folder: Path) -> Finding:
    try:
        front = _load_verified(folder)
    except NewerFormatError as error:
        return Finding(_STORED, "repairable", str(error))
    except (ValueError, OSError) as error:
        return Finding(_STORED, "lost", f"{error} It cannot be rebuilt.")
    models = "with their weights" if front.models else "without weights"
    return Finding(_STORED, "ok", f"whole: {len(front)} models, {models}; a front that was saved alone.")


def _shards(folder: Path) -> list[str]:
    """Return the shards of a run that have begun; each is a run of its own."""
    if kind_of(folder / SHARDS) != "a folder":
        return []
    names = names_in(folder / SHARDS, follow=False)
    return [f"{SHARDS}/{name}" for name in names if _is_folder_with(folder / SHARDS / name, CONFIG)]


def _is_folder_with(folder: Path, name: str) -> bool:
    return kind_of(folder) == "a folder" and exists(folder / name)


def _list_again(folder: Path) -> list[str]:
    """Rewrite the manifest if it does not match the files, all of which must be whole."""
    inspection = _Inspection(folder)
    if worst(inspection.own()) not in ("ok", "info") or kind_of(folder / manifest.NAME) == "a folder":
        return []
    if not any(finding.state == "repairable" or inspection.listed is None for finding in inspection.about_manifest()):
        return []
    manifest.Manifest(folder).write()
    return [f"{manifest.NAME}: rewritten; the checksums inside all files were verified."]


class _Inspection:
    """The files of a folder, each read once."""

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise FileNotFoundError(f"'RUN' must be the folder of a run. There is no folder '{folder}'.")
        if not any(exists(folder / name) for name in (CONFIG, CHECKPOINT, PREVIOUS, FRONT, manifest.NAME)):
            raise ValueError(f"'RUN' must be the folder of a run. '{folder}' has none of its files.")
        self.folder = folder
        self.config = self._read(CONFIG, lambda path: read_record(path, [FORMAT]))
        self.asked = self._read(OPTIONS, lambda path: read_record(path, [None, 1], limit=SMALL_RECORD))
        identity = identity_of(self.config) if isinstance(self.config, dict) else None
        self.last = self._read(CHECKPOINT, lambda path: read_checkpoint(path, identity))
        self.previous = self._read(PREVIOUS, lambda path: read_checkpoint(path, identity))
        self.front = self._read(FRONT, _load_front)
        listed = self._read(manifest.NAME, lambda path: manifest.read_manifest(path.parent))
        self.listed: Mapping[str, Any] | None = listed if isinstance(listed, dict) else None
        self._manifest_error = listed if isinstance(listed, Exception) else None

    def _read(self, name: str, read: Callable[[Path], Any]) -> Any:
        """Return the content of a file, the error from reading it, or None if it does not exist."""
        path = self.folder / name
        refused = path.parent != self.folder and exists(path.parent) and not self._has_front_folder
        if not exists(path) and not refused:
            return None
        try:
            return read(self.folder / name)
        except (ValueError, OSError) as error:
            return error

    @property
    def complete(self) -> bool:
        return isinstance(self.front, Front) and self.front.complete

    @property
    def sharded(self) -> bool:
        """Whether the run is sharded: its checkpoints are those of its shards."""
        return isinstance(self.config, dict) and "shards" in self.config

    @property
    def resumable(self) -> bool:
        if self.sharded:
            return True
        return isinstance(self.config, dict) and any(isinstance(each, dict) for each in (self.last, self.previous))

    def findings(self) -> Iterator[Finding]:
        """Yield all findings; the lock, which says who is writing now, comes before the files that it protects."""
        for name in (LOCK, manifest.LOG, SHARDS, *self._shard_names()):
            if (kind := kind_of(self.folder / name)) not in (None, "a folder" if name.startswith(SHARDS) else None):
                text = f"{kind} in its place, which is not opened. Remove it; nothing is lost."
                yield Finding(name, "repairable", text)
        if is_held(self.folder / LOCK):
            holder = read_owner(self.folder / LOCK)
            yield Finding(LOCK, "info", f"held by {holder}: what follows may change while it is read.")
        elif exists(self.folder / LOCK) and kind_of(self.folder / LOCK) is None:
            yield Finding(LOCK, "info", f"left by {read_owner(self.folder / LOCK)}, which is gone; the run is free.")
        yield from self.own()
        yield from self.about_log()
        yield from self.about_manifest()
        yield from self.about_others()

    def own(self) -> list[Finding]:
        """Return findings on the files that carry their own checksum."""
        findings = [*self.about_config(), *self.about_checkpoints(), *self.about_front()]
        return [_newer(finding, self) for finding in findings]

    def about_config(self) -> Iterator[Finding]:
        rest = "; the front is whole: show reads it" if isinstance(self.front, Front) else ""
        if isinstance(self.config, dict):
            yield Finding(CONFIG, "ok", f"whole: {self.config.get('problem')}, {self.config.get('epochs')} epochs.")
        elif self.config is None and self.listed is None and self.front is None:
            yield Finding(CONFIG, "info", "none: the run was stopped as it began; the same command starts it.")
        else:
            yield Finding(CONFIG, "lost", f"{self.config or 'missing.'} The run cannot be resumed{rest}.")
        if isinstance(self.asked, dict):
            yield Finding(OPTIONS, "ok", "whole: the options of the command line.")
        elif self.asked is not None or (self.listed is not None and OPTIONS in self.listed):
            yield Finding(OPTIONS, "lost", f"{self.asked or 'missing.'} refine and exports need it; nothing else does.")

    def about_checkpoints(self) -> Iterator[Finding]:
        last, previous = self.last, self.previous
        if isinstance(last, dict):
            yield Finding(CHECKPOINT, "ok", f"whole: {_place(last)}.")
        elif last is None and previous is None:
            if self.config is not None and not self.complete and not self.sharded:
                yield Finding(CHECKPOINT, "lost", "missing: resume (--resume) starts over.")
        elif isinstance(previous, dict):
            text = f"{last or 'missing.'} The previous one, of {_place(previous)}, is whole: {_GO_ON}."
            blocked = kind_of(self.folder / CHECKPOINT) == "a folder"
            yield Finding(CHECKPOINT, "repairable", text, None if blocked else self._restore)
        elif self.complete:
            text = f"{last or 'missing.'} The front is complete and whole: only a run that is trained longer needs it."
            yield Finding(CHECKPOINT, "repairable", text)
        else:
            rest = "The front of the run so far is whole. " if isinstance(self.front, Front) else ""
            text = f"{last or 'missing.'} There is no whole one before it. {rest}To start over, delete the folder."
            yield Finding(CHECKPOINT, "lost", text)
        if isinstance(previous, dict) and isinstance(last, dict):
            yield Finding(PREVIOUS, "ok", f"whole: {_place(previous)}.")
        elif previous is not None and isinstance(last, dict):
            text = f"{previous} The last checkpoint is whole, and the next one replaces this file."
            yield Finding(PREVIOUS, "repairable", text, partial(self._remove, PREVIOUS, "it was damaged"))

    def about_front(self) -> Iterator[Finding]:
        listed = self.listed is not None and FRONT in self.listed
        if isinstance(self.front, Front):
            state = "complete" if self.front.complete else f"stopped early; {_GO_ON}"
            yield Finding(FRONT, "ok", f"whole: {len(self.front)} models, {state}.")
            yield from self._leftover_files()
        elif self.front is None and not listed:
            yield Finding(FRONT, "info", "none yet: resume (--resume) ends the run.")
        else:
            rebuild = "A checkpoint is whole: resume (--resume) rebuilds the front."
            if self._front_loads() and manifest.Manifest(self.folder).is_current():  # resume would not notice
                rebuild = rebuild.replace("front.", "front once the folder 'front' is deleted.")
            text = f"{self.front or 'missing.'} {rebuild if self.resumable else 'It cannot be rebuilt.'}"
            yield Finding(FRONT, "repairable" if self.resumable else "lost", text)

    def _leftover_files(self) -> Iterator[Finding]:
        for path in leftover_files(self.folder / "front"):
            name = path.relative_to(self.folder).as_posix()
            text = "left by an interrupted write of the front, which uses another file."
            yield Finding(name, "repairable", text, partial(self._remove, name, "the front uses another file"))

    def about_log(self) -> Iterator[Finding]:
        path = self.folder / manifest.LOG
        expected = (self.listed or {}).get(manifest.LOG, {}).get("size", 0)
        if kind_of(path) is not None:
            return
        size = path.lstat().st_size if exists(path) else 0
        if size < expected:
            text = f"{expected - size:,} bytes shorter than it was: lines are lost; training does not need them."
            yield Finding(manifest.LOG, "info", text)
        count = torn = 0
        last = b""
        for line in lines_of(path) if size else ():
            torn += count > 0 and not _is_json(last)
            count, last = count + 1, line
        if torn:
            yield Finding(manifest.LOG, "info", f"torn lines: {torn} of {count - 1}; readers skip them.")
        if last:
            yield Finding(manifest.LOG, "info", "the last line is torn; the next one begins a new line.")

    def about_manifest(self) -> Iterator[Finding]:
        name = manifest.NAME
        if self._manifest_error is not None:
            yield _newer(Finding(name, "repairable", f"{self._manifest_error} --fix rewrites it."), self)
        elif self.listed is None:
            yield Finding(name, "info", "none: the run is of an earlier version, or had just begun; --fix writes one.")
        else:
            other = [file for file in self.listed if file != manifest.LOG and self._differs(file)]
            if other:
                text = f"does not match {', '.join(other)}, as after a crash; --fix rewrites it once all are whole."
                yield Finding(name, "repairable", text)
            else:
                yield Finding(name, "ok", f"matches all {len(self.listed)} files.")

    def _differs(self, name: str) -> bool:
        path, entry = self.folder / name, (self.listed or {})[name]
        inside = path.parent == self.folder or self._has_front_folder
        if not inside or not exists(path) or kind_of(path) is not None:
            return True
        return (path.lstat().st_size, manifest.sha256_of(path)) != (entry.get("size"), entry.get("sha256"))

    def about_others(self) -> Iterator[Finding]:
        """Yield findings on leftovers of interrupted writes and on files that are not of the run."""
        known = {CONFIG, OPTIONS, CHECKPOINT, PREVIOUS, manifest.NAME, manifest.LOG, LOCK, "front", SHARDS}
        inside = names_in(self.folder / "front", follow=False) if self._has_front_folder else []
        for name in sorted([*names_in(self.folder), *(f"front/{name}" for name in inside)]):
            if is_leftover(Path(name).name) and kind_of(self.folder / name) != "a folder":
                text = "left by an interrupted write."
                yield Finding(name, "repairable", text, partial(self._remove, name, "it was never whole"))
            elif "/" not in name and name not in known:
                yield Finding(name, "info", "not part of the run; left alone.")

    def _shard_names(self) -> list[str]:
        if kind_of(self.folder / SHARDS) != "a folder":
            return []
        return [f"{SHARDS}/{name}" for name in names_in(self.folder / SHARDS, follow=False)]

    @property
    def _has_front_folder(self) -> bool:
        return kind_of(self.folder / "front") == "a folder"

    def _front_loads(self) -> bool:
        """Whether the front can be loaded; its models may still be damaged."""
        try:
            return self._has_front_folder and bool(Front.load(self.folder / "front"))
        except (ValueError, OSError):
            return False

    def _restore(self) -> str:
        RunFolder(self.folder).restore()
        return f"{CHECKPOINT}: replaced by the previous one, of {_place(self.previous)}."

    def _remove(self, name: str, reason: str) -> str:
        path = self.folder / name
        remove_files(path.parent, lambda each, _: each == path.name, follow=path.parent == self.folder)
        return f"{name}: removed; {reason}."


def _load_front(path: Path) -> Front:
    check_folder_kind(path.parent)
    return _load_verified(path.parent)


def _load_verified(folder: Path) -> Front:
    """Load a front, and verify all of its models and those of its snapshot."""
    front = Front.load(folder)
    verify_models(front)
    return front


def _newer(finding: Finding, inspection: _Inspection) -> Finding:
    """Return the finding, or another one for a file that a newer version wrote: that file is not damaged."""
    errors = {
        CONFIG: inspection.config,
        OPTIONS: inspection.asked,
        CHECKPOINT: inspection.last,
        PREVIOUS: inspection.previous,
        FRONT: inspection.front,
        manifest.NAME: inspection._manifest_error,
    }
    error = errors.get(finding.file)
    return Finding(finding.file, "repairable", str(error)) if isinstance(error, NewerFormatError) else finding


def _place(state: Mapping[str, Any]) -> str:
    return f"epoch {state['epoch']}, step {state['number']}"


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return not line
    return True
