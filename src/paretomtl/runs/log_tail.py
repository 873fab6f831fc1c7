"""The log of a run while it is written: what was added since the last look, and few points of long curves."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from paretomtl._support.safe_open import LINE, TENSORS, open_file

_ONE_LOOK = 256 << 20  # bytes that are read at a look; the rest at the next
_HEAD = 256  # bytes at the start of a log that tell it from another one

POINTS = 200  # of a curve, at most


class LogTail:
    """The events of a log, each once, however often it is looked at.

    A line without an end is not read until it has one; a line that is no event, or longer than any report, is left out.

    Args:
        path: the file, which need not be there yet.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._place = 0
        self._head = b""
        self._skipping = False

    def begun_anew(self) -> bool:
        """Whether the file is another one than at the last look: what was read counts no more."""
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
        """What was added since the last look."""
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
                    self._skipping = not whole  # a line longer than any report: the rest of it is no event either
                    if event is not None:
                        yield event
        except OSError:
            return


class Curves:
    """Few events of a log that grows: at most as many as a page shows of a curve, evenly, the last one among them.

    Example:
        >>> curves = Curves(points=4)
        >>> for epoch in range(1, 9):
        ...     curves.add({"epoch": epoch})
        >>> [event["epoch"] for event in curves.events()]
        [1, 5, 8]
    """

    def __init__(self, points: int = POINTS) -> None:
        self._most = points
        self._every = 1
        self._seen = 0
        self._kept: list[dict[str, Any]] = []
        self._last: list[dict[str, Any]] = []

    def add(self, event: dict[str, Any]) -> None:
        """Add the report of an epoch."""
        due = self._seen % self._every == 0
        self._seen += 1
        self._last = [] if due else [event]
        if due:
            self._kept.append(event)
        if len(self._kept) == self._most:
            self._kept, self._last = self._kept[::2], self._kept[-1:] if self._most % 2 == 0 else []
            self._every *= 2

    def go_back(self, epoch: int) -> None:
        """Forget what came after an epoch: a run that is taken up again goes through it once more."""
        self._kept = [event for event in self._kept if event["epoch"] <= epoch]
        self._last = [event for event in self._last if event["epoch"] <= epoch]
        self._seen = len(self._kept) * self._every

    def events(self) -> list[dict[str, Any]]:
        """What is left, in order."""
        return self._kept + self._last


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) else None
