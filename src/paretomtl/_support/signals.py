"""Signals that ask a process to stop: Ctrl-C, and SIGTERM as schedulers send it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

_NUMBERS = (signal.SIGINT, signal.SIGTERM)
_last: signal.Signals | None = None
_count = 0


def _replaceable(number: signal.Signals) -> bool:
    """Whether Python can replace and restore the handler: not in a thread, and not if it is one of C code."""
    return threading.current_thread() is threading.main_thread() and signal.getsignal(number) is not None


class Stopping:
    """A block in which the first signal asks the run to end after its step, and the second one ends it at once.

    A signal whose handler belongs to C code, as in programs that embed Python, keeps that handler.

    Attributes:
        asked: whether there was a signal.
    """

    def __init__(self) -> None:
        self.asked = False
        self._old: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        self._old = {number: signal.signal(number, self._note) for number in _NUMBERS if _replaceable(number)}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._old.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: Any) -> None:
        _remember(number)
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True


@contextmanager
def sigterm_interrupts() -> Iterator[None]:
    """Let SIGTERM do what Ctrl-C does, also outside training: files are closed, and complete ones stay."""
    if not _replaceable(signal.SIGTERM):
        yield
        return

    def interrupt(number: int, frame: Any) -> None:
        _remember(number)
        raise KeyboardInterrupt

    _remember(None)
    old = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, old)


def stopped_by() -> signal.Signals | None:
    """The last signal that asked this process to stop; None for none, and for Ctrl-C outside training."""
    return _last


class SignalWatch:
    """Signals since this object was made, for work of several runs.

    A run that gets a signal while it evaluates its final models ends as complete. The next run must not begin then.
    """

    def __init__(self) -> None:
        self._before = _count

    def check(self) -> None:
        """Raise KeyboardInterrupt if there was a signal."""
        if _count > self._before:
            raise KeyboardInterrupt


def _remember(number: int | None) -> None:
    global _last, _count
    _last = None if number is None else signal.Signals(number)
    _count += number is not None
