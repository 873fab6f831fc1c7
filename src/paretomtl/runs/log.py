"""The log of a run: all of its events, or those added since the last read.

A run is watched through its log alone. Checkpoints are large, and a reader must not get in the way of the process that
writes them. The log's first line and every report hold what else a reader needs: the writing process, the meaning of
the rows, the scale. The configuration does not hold them, because it must stay equal for a run to be resumed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from paretomtl._support.files.atomic_files import parse_json
from paretomtl._support.files.safe_open import LINE, TENSORS, open_file
from paretomtl.runs.manifest import LOG

_LONGEST_LOG = 1 << 40  # bytes
_ONE_LOOK = 256 << 20  # bytes per read; the rest follows at the next one
_HEAD = 256  # bytes at the start of a log that identify it


def read_log(path: Path) -> list[dict[str, Any]]:
    """Read the events of a run's log; skip lines that are not events, such as one torn by a crash."""
    events = []
    for line in lines_of(path / LOG):
        with suppress(ValueError):
            events += [parse_json(line, "an event")] if line else []
    return [event for event in events if isinstance(event, dict)]


def lines_of(path: Path) -> Iterator[bytes]:
    """Yield the lines of a log without their newlines; skip lines that are longer than any report.

    A last line without a newline counts as a line; if the file ends with a newline, the last line is empty.
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


def ends_with_line(path: Path) -> bool:
    """Whether a log is empty, or ends with a whole line."""
    with open_file(path, limit=_LONGEST_LOG) as file:
        if not file.seek(0, os.SEEK_END):
            return True
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"


class LogTail:
    """The events of a growing log, each read once.

    A line without a newline is not read until it has one. Lines that are not events, or longer than any report, are
    skipped.

    Args:
        path: the file, which need not exist yet.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._place = 0
        self._head = b""
        self._skipping = False

    def replaced(self) -> bool:
        """Whether the file was replaced since the last read, so that the events read so far are stale."""
        try:
            with open_file(self._path, limit=TENSORS) as file:
                head = file.read(_HEAD)
                size = file.seek(0, 2)
        except OSError:
            head, size = b"", 0
        other = size < self._place or not head.startswith(self._head)
        if other:
            self._place = 0
            self._skipping = False
        self._head = head
        return other

    def events(self) -> Iterator[dict[str, Any]]:
        """Yield the events added since the last read."""
        try:
            with open_file(self._path, limit=TENSORS) as file:
                file.seek(self._place)
                end = self._place + _ONE_LOOK
                while self._place < end and (line := file.readline(LINE)):
                    whole = line.endswith(b"\n")
                    if not whole and len(line) < LINE:
                        return
                    self._place += len(line)
                    event = None if self._skipping else _parsed(line)
                    self._skipping = not whole  # a line longer than any report: the rest of it is not an event either
                    if event is not None:
                        yield event
        except OSError:
            return


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) else None
