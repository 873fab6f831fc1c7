"""Progress of many runs: which one is trained, and how long all of them still take."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Self

from paretomtl._extras import require
from paretomtl._terminal import escaped, text_console
from paretomtl.training._progress import (
    PLAIN_SECONDS,
    Callback,
    Report,
    bar_line,
    choose_style,
    clock,
    listening_instead,
    report_panel,
)
from paretomtl.training._signals import SignalWatch


def remaining_of(elapsed: float, share: float, usual: float | None) -> float | None:
    """Seconds that a run still takes; None where nothing tells.

    The whole run is judged by runs of its kind at first, and more and more by its own pace.

    Args:
        elapsed: how long it has taken.
        share: how much of it is done, from 0 to 1; 0 where that is not known.
        usual: how long a run of its kind takes; None where that is not known.
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
        self._running: dict[int, tuple[float, float, float]] = {}  # start, last share, moment of that share
        self._ended: set[int] = set()
        self._seconds: dict[str, list[float]] = {}

    @property
    def total(self) -> int:
        """How many runs there are, those that were done before included."""
        return self.stored + len(self.names)

    @property
    def done(self) -> int:
        """How many are done, before and now."""
        return self.stored + len(self._ended)

    @property
    def running(self) -> list[int]:
        """Those under way."""
        return list(self._running)

    def begin(self, i: int) -> None:
        """Run i begins, or begins again elsewhere."""
        self._running[i] = (self.now(), 0.0, self.now())

    def advance(self, i: int, share: float) -> None:
        """So much of run i is done; less than before counts as before."""
        start, before, _ = self._running[i]
        self._running[i] = (start, min(max(share, before), 1.0), self.now())

    def end(self, i: int, *, failed: bool = False) -> None:
        """Run i is over; how long one took that failed says nothing about the others."""
        start, _, _ = self._running.pop(i, (self.now(), 0.0, 0.0))
        self._ended.add(i)
        if not failed:
            self._seconds.setdefault(self._kinds[i], []).append(self.now() - start)

    def share(self) -> float:
        """How much of all runs is done, from 0 to 1."""
        return min((self.done + sum(share for _, share, _ in list(self._running.values()))) / max(self.total, 1), 1.0)

    def gone(self) -> float:
        """Seconds since the first run could begin."""
        return self.now() - self._began

    def left(self) -> float | None:
        """Seconds until all runs are done, if they are like those so far; None while nothing tells."""
        each = [self._remaining(i) for i in range(len(self.names)) if i not in self._ended]
        known = [seconds for seconds in each if seconds is not None]
        if len(known) < len(each):
            return None
        return max(sum(known) / self._slots, max(known, default=0.0))

    def _remaining(self, i: int) -> float | None:
        usual = self._usual(self._kinds[i])
        if i not in self._running:
            return usual
        start, share, moment = self._running[i]
        at = moment if share > 0 else self.now()
        found = remaining_of(at - start, share, usual)
        return None if found is None else max(found - (self.now() - at), 0.0)

    def _usual(self, kind: str) -> float | None:
        """How long a run of a kind takes: as those that ended, the one under way, those before, or as other kinds."""
        paces = {
            self._kinds[i]: (moment - start) / share
            for i, (start, share, moment) in list(self._running.items())
            if share > 0
        }
        if kind in self._seconds:
            return statistics.fmean(self._seconds[kind])
        found = paces.get(kind, self._known.get(kind))
        if found is not None:
            return found
        others = [*(statistics.fmean(each) for each in self._seconds.values()), *paces.values(), *self._known.values()]
        return statistics.fmean(others) if others else None


class StudyProgress:
    """A display of many runs; within it, each :func:`~paretomtl.fit` with ``progress="auto"`` reports to it.

    Args:
        tally: the runs.
        style: "auto", "rich", "plain" or "quiet", as of one run.
        noun: what a run is called.
    """

    def __init__(self, tally: Tally, style: str = "auto", noun: str = "run") -> None:
        self.tally = tally
        self._style = choose_style(style)
        self._noun = noun
        self._report: Report | None = None
        self._inner: tuple[float, float] | None = None  # share and seconds of the run under way
        self._spoke = tally.now()
        self._live: Any = None
        self._stack = ExitStack()
        self._signals = SignalWatch()

    def __enter__(self) -> Self:
        listeners: list[Callback] = [] if self._style == "quiet" else [_Inner(self)]
        self._stack.enter_context(listening_instead(listeners))
        if self._style == "rich":
            live = require("rich.live", "cli").Live
            console = text_console(stderr=True)
            self._live = live(console=console, transient=True, refresh_per_second=4, get_renderable=self.panel)
            self._stack.enter_context(self._live)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def begin(self, i: int) -> None:
        """Run i begins; a KeyboardInterrupt if a signal asked to stop while another one ended."""
        self._signals.check()
        self._report = self._inner = None
        self.tally.begin(i)
        self._say(PLAIN_SECONDS)

    def end(self, i: int, *, failed: bool = False) -> None:
        """Run i is over."""
        self._report = self._inner = None
        self.tally.end(i, failed=failed)
        if self.tally.done < self.tally.total:
            self._say(PLAIN_SECONDS)

    def rest(self) -> None:
        """Called now and then while runs are trained elsewhere."""
        self._say(6 * PLAIN_SECONDS)

    def hear(self, share: float, seconds: float, report: Report | None) -> None:
        """How far the only run under way has come."""
        if len(self.tally.running) != 1:
            return
        self._report = report or self._report
        self._inner = (share, seconds)
        self.tally.advance(self.tally.running[0], share)
        self._say(PLAIN_SECONDS if report is not None else 6 * PLAIN_SECONDS)

    def line(self) -> str:
        """Where all stands, in one line."""
        epoch = "" if self._report is None else f"; epoch {self._report.epoch}/{self._report.epochs}"
        return f"{self._head()}, {self._times()}{epoch}"

    def panel(self) -> Any:
        """The same as rich draws it, with the display of the run under way below."""
        text = require("rich.text", "cli").Text(escaped(self._head()), no_wrap=True, overflow="ellipsis")
        row = bar_line(self.tally.share(), "", self._times())
        inner = [] if self._inner is None else [report_panel(self._report, *self._inner)]
        return require("rich.console", "cli").Group(text, row, *inner)

    def _head(self) -> str:
        tally, running = self.tally, self.tally.running
        if len(running) == 1:
            return f"{self._noun} {tally.done + 1} of {tally.total} ({tally.names[running[0]]})"
        under_way = f", {len(running)} under way" if running else ""
        return f"{tally.done} of {tally.total} {self._noun}s done{under_way}"

    def _times(self) -> str:
        left = self.tally.left()
        return f"{clock(self.tally.gone())} gone" + ("" if left is None else f", {clock(left)} left")

    def _say(self, pause: float) -> None:
        """Print a line, unless the last one is too recent."""
        if self._style == "plain" and self.tally.now() - self._spoke >= pause:
            self._spoke = self.tally.now()
            sys.stderr.write(escaped(self.line()) + "\n")
            sys.stderr.flush()


class _Inner:
    """What a run within a study reports to."""

    def __init__(self, study: StudyProgress) -> None:
        self._study = study

    def __call__(self, report: Report) -> None:
        self._study.hear(report.epoch / report.epochs, report.seconds, report)

    def tick(self, share: float, seconds: float) -> None:
        """Inside of an epoch."""
        self._study.hear(share, seconds, None)
