"""Listeners of a study, to which its runs report.

Runs within a study find its display through a context variable. It holds the listeners that ``progress="auto"`` stands
for, so that neither cells nor executors need a further argument. A worker in another process has no display, and is
quiet.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from paretomtl.training.progress.callbacks import Callback

_listeners: ContextVar[list[Callback] | None] = ContextVar("study_listeners", default=None)


def study_listeners() -> list[Callback] | None:
    """The listeners of the study that runs belong to; None outside of a study."""
    return _listeners.get()


@contextmanager
def listening_for(listeners: list[Callback]) -> Iterator[None]:
    """Within, runs with ``progress="auto"`` report to these listeners instead of their own display."""
    token = _listeners.set(listeners)
    try:
        yield
    finally:
        _listeners.reset(token)


@contextmanager
def quiet_elsewhere() -> Iterator[None]:
    """Within, a run of a study is quiet in a process that has no display of that study, such as a Ray worker."""
    with listening_for(_listeners.get() or []):
        yield


def is_part_of_study() -> bool:
    """Whether runs report to a display of many runs."""
    return _listeners.get() is not None
