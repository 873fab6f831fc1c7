"""Curves of a growing log, thinned to a few evenly spaced points."""

from __future__ import annotations

from typing import Any

POINTS = 200
"""The maximum number of points of a curve."""


class Curves:
    """Events of a growing log, thinned: at most ``points`` of them, evenly spaced, the last one included.

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
        """Drop the events after an epoch: a resumed run repeats them."""
        self._kept = [event for event in self._kept if event["epoch"] <= epoch]
        self._last = [event for event in self._last if event["epoch"] <= epoch]
        self._seen = len(self._kept) * self._every

    def events(self) -> list[dict[str, Any]]:
        """Return the remaining events, in order."""
        return self._kept + self._last
