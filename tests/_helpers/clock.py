"""A clock that tests move."""

from __future__ import annotations


class Clock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds
