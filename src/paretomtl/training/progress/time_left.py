"""The remaining time of several runs, from those that are done and the share of those under way.

A run is first judged by runs of its kind, then more and more by its own pace. The estimate is exact if all runs take
the same time, and never negative.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass


def remaining_of(elapsed: float, share: float, usual: float | None) -> float | None:
    """Estimate the remaining seconds of a run; None if there is nothing to go by.

    The whole run is first judged by runs of its kind, then more and more by its own pace.

    Args:
        elapsed: how long it has taken.
        share: how much of it is done, from 0 to 1; 0 if unknown.
        usual: how long a run of its kind takes; None if unknown.
    """
    if share >= 1.0:
        return 0.0
    if share <= 0.0:
        return None if usual is None else max(usual - elapsed, 0.0)
    whole = elapsed / share if usual is None else (1.0 - share) * usual + elapsed
    return (1.0 - share) * whole


class Tally:
    """Which of several runs are done, and how long they took.

    Args:
        names: of the runs to train, in their order.
        kinds: of each run; runs of one kind take about the same time.
        stored: how many further runs were done before.
        known: how long a run of some kinds took before.
        slots: how many are trained at a time.
        now: a clock, in seconds.
    """

    def __init__(
        self,
        names: Sequence[str],
        kinds: Sequence[str],
        *,
        stored: int = 0,
        known: Mapping[str, float] | None = None,
        slots: int = 1,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.names = names
        self.stored = stored
        self.now = now
        self._kinds = kinds
        self._known = dict(known or {})
        self._slots = max(slots, 1)
        self._began = now()
        self._running: dict[int, _Running] = {}
        self._ended: set[int] = set()
        self._seconds: dict[str, list[float]] = {}

    @property
    def total(self) -> int:
        """How many runs there are, including those that were done before."""
        return self.stored + len(self.names)

    @property
    def done(self) -> int:
        """How many are done, before and now."""
        return self.stored + len(self._ended)

    @property
    def running(self) -> list[int]:
        """The runs under way."""
        return list(self._running)

    def begin(self, i: int) -> None:
        """Note that run i begins, or begins again elsewhere."""
        self._running[i] = _Running(self.now(), self.now())

    def advance(self, i: int, share: float, seconds: float | None = None) -> None:
        """Note the share of run i that is done; it never decreases.

        ``seconds`` is how long that share took, without the time before training; by default all the time.
        """
        run, now = self._running[i], self.now()
        setup = 0.0 if seconds is None else max(now - run.start - seconds, 0.0)
        self._running[i] = _Running(run.start, now, min(max(share, run.share), 1.0), setup)

    def end(self, i: int, *, failed: bool = False) -> None:
        """Note that run i is over; the time of a failed run says nothing about the others."""
        run = self._running.pop(i, None)
        self._ended.add(i)
        if run is not None and not failed:
            self._seconds.setdefault(self._kinds[i], []).append(self.now() - run.start)

    def share(self) -> float:
        """How much of all runs is done, from 0 to 1."""
        return min((self.done + sum(run.share for run in list(self._running.values()))) / max(self.total, 1), 1.0)

    def gone(self) -> float:
        """Seconds since the first run could begin."""
        return self.now() - self._began

    def left(self) -> float | None:
        """Seconds until all runs are done, if they are like those so far; None while there is nothing to go by."""
        each = [self._remaining(i) for i in range(len(self.names)) if i not in self._ended]
        known = [seconds for seconds in each if seconds is not None]
        if len(known) < len(each):
            return None
        return max(sum(known) / self._slots, max(known, default=0.0))

    def _remaining(self, i: int) -> float | None:
        usual, run = self._usual(self._kinds[i]), self._running.get(i)
        if run is None:
            return usual
        at = run.moment if run.share > 0 else self.now()
        usual = None if usual is None else max(usual - run.setup, 0.0)
        seconds = remaining_of(at - run.start - run.setup, run.share, usual)
        return None if seconds is None else max(seconds - (self.now() - at), 0.0)

    def _usual(self, kind: str) -> float | None:
        """How long a run of a kind takes: like those that ended, the one under way, earlier ones, or other kinds."""
        paces = {self._kinds[i]: run.whole for i, run in list(self._running.items()) if run.share > 0}
        if kind in self._seconds:
            return statistics.fmean(self._seconds[kind])
        seconds = paces.get(kind, self._known.get(kind))
        if seconds is not None:
            return seconds
        ended = [statistics.fmean(each) for each in list(self._seconds.values())]
        others = [*ended, *paces.values(), *self._known.values()]
        return statistics.fmean(others) if others else None


@dataclass(frozen=True)
class _Running:
    """A run under way: its start, and at a later moment its share and the seconds before training."""

    start: float
    moment: float
    share: float = 0.0
    setup: float = 0.0

    @property
    def whole(self) -> float:
        """Its total time at its own pace; its share must be positive."""
        return self.setup + (self.moment - self.start - self.setup) / self.share
