"""A run's folder: what was asked for, a log, checkpoints that are whole or absent, and the front."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from paretomtl._files import check_writable, pack, read_json, read_tensors, sweep, unpack, write_tensors, write_text
from paretomtl.front import Front

FORMAT = 2
"""The version of what a run's folder holds."""


class RunFolder:
    """The files of one run.

    Files:
        config.json: what was asked for, and the strategy that was taken.
        log.jsonl: one line per report.
        checkpoint.safetensors: all that a later process needs to go on.
        front: the result (:meth:`paretomtl.Front.save`).
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._log_works = True
        self._log_seen = False

    @property
    def checkpoint_path(self) -> Path:
        """Where the last checkpoint is."""
        return self.path / "checkpoint.safetensors"

    @property
    def front_path(self) -> Path:
        """Where the front is, once there is one."""
        return self.path / "front"

    def open(self, *, resume: bool) -> dict[str, Any] | None:
        """Make the folder, and see that it can be written.

        Returns:
            What the configuration of the run in it says; None where there is none yet.
        """
        check_writable("out", self.path)
        sweep(self.path)
        path = self.path / "config.json"
        if not path.exists():
            foreign = [name for name in ("log.jsonl", "front") if (self.path / name).exists()]
            if foreign and not self.checkpoint_path.exists():
                raise ValueError(
                    f"'out' must be an empty folder, or that of a run. '{self.path}' has a {foreign[0]!r}."
                )
            return None
        if not resume:
            raise ValueError(
                f"'out' must be a new folder, or come with resume=True (--resume). '{self.path}' holds a run already."
            )
        stored = read_json(path)
        if not isinstance(stored, dict) or stored.get("format") != FORMAT:
            found = stored.get("format") if isinstance(stored, dict) else "no object"
            raise ValueError(f"'{path}' must have the format {FORMAT} of this version. Got {found} instead.")
        return stored

    def check(self, stored: Mapping[str, Any], config: Mapping[str, Any]) -> None:
        """Refuse to go on with another run than the one in the folder."""
        for name, value in json.loads(json.dumps(config)).items():
            if stored.get(name) != value:
                theirs, mine = _difference(json.dumps(stored.get(name)), json.dumps(value))
                raise ValueError(
                    f"'{name}' must be that of the run in '{self.path}' to resume it: {theirs}. Got {mine} instead."
                )

    def begin(self, config: Mapping[str, Any]) -> None:
        """Write down what is about to be run."""
        write_text(self.path / "config.json", json.dumps({"format": FORMAT, **config}, indent=2, ensure_ascii=False))

    def log(self, event: str, **fields: Any) -> None:
        """Add a line to the log; a log that cannot be written is said once and does not stop a run."""
        line = json.dumps({"event": event, "time": round(time.time(), 3), **fields}, ensure_ascii=False) + "\n"
        try:
            path = self.path / "log.jsonl"
            torn = not self._log_seen and path.exists() and path.read_bytes()[-1:] not in (b"", b"\n")
            self._log_seen = True
            with path.open("a", encoding="utf-8") as file:
                file.write(("\n" if torn else "") + line)
        except OSError as error:
            if self._log_works:
                warnings.warn(f"the log in '{self.path}' cannot be written: {error}. Training goes on.", stacklevel=2)
            self._log_works = False

    def save_checkpoint(self, state: Mapping[str, Any]) -> None:
        """Replace the last checkpoint by this one, or leave it as it is."""
        tensors: dict[str, Tensor] = {}
        packed = pack(dict(state), tensors)
        write_tensors(
            self.checkpoint_path, tensors, {"kind": "checkpoint", "format": str(FORMAT), "state": json.dumps(packed)}
        )

    def load_checkpoint(self) -> dict[str, Any] | None:
        """What the last checkpoint holds, on the CPU; None where there is none."""
        if not self.checkpoint_path.exists():
            return None
        tensors, meta = read_tensors(self.checkpoint_path)
        if meta.get("kind") != "checkpoint" or meta.get("format") != str(FORMAT):
            raise ValueError(f"'{self.checkpoint_path}' must be a checkpoint of format {FORMAT}. Got {meta} instead.")
        state: dict[str, Any] = unpack(json.loads(meta["state"]), tensors)
        return state

    def save_front(self, front: Front) -> None:
        """Store the result; where that fails, say so, for the caller still has it."""
        try:
            front.save(self.front_path)
        except OSError as error:
            warnings.warn(f"the front cannot be stored in '{self.front_path}': {error}.", stacklevel=2)


def read_log(path: Path) -> list[dict[str, Any]]:
    """The events of a run's log, without a line that was torn by a crash."""
    events = []
    for line in (path / "log.jsonl").read_text(encoding="utf-8").splitlines():
        try:
            events.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return events


def _difference(one: str, other: str, around: int = 50) -> tuple[str, str]:
    """Both texts, cut to where they differ."""
    first = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    start = max(0, first - around)

    def cut(text: str) -> str:
        end = first + around
        return ("..." if start else "") + text[start:end] + ("..." if len(text) > end else "")

    return cut(one), cut(other)
