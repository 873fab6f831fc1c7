"""The display of many runs: the current one, and the remaining time of all."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Self

from paretomtl._support.imports.optional_packages import require
from paretomtl._support.signals import SignalWatch
from paretomtl._support.terminal import escaped, text_console
from paretomtl.training.progress.callbacks import Callback, Report
from paretomtl.training.progress.display import (
    PLAIN_SECONDS,
    NotebookLine,
    bar_line,
    choose_style,
    clock,
    report_panel,
)
from paretomtl.training.progress.study_listeners import listening_for
from paretomtl.training.progress.time_left import Tally


class StudyProgress:
    """A display of many runs; within it, each :func:`~paretomtl.fit` with ``progress="auto"`` reports to it.

    Args:
        tally: the runs.
        style: "auto", "rich", "notebook", "plain" or "quiet", as for one run.
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
        self._notebook_line = NotebookLine()
        self._stack = ExitStack()
        self._signals = SignalWatch()

    def __enter__(self) -> Self:
        listeners: list[Callback] = [] if self._style == "quiet" else [_Inner(self)]
        self._stack.enter_context(listening_for(listeners))
        if self._style == "rich":
            live = require("rich.live", "cli").Live
            console = text_console(stderr=True)
            self._live = live(console=console, transient=True, refresh_per_second=4, get_renderable=self.panel)
            self._stack.enter_context(self._live)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._style == "notebook":
            self._notebook_line.show(self.line())
            self._notebook_line.flush()
        self._stack.close()

    def begin(self, i: int) -> None:
        """Note that run i begins; raise KeyboardInterrupt if a signal asked to stop while another one ended."""
        self._signals.check()
        self._report = self._inner = None
        self.tally.begin(i)
        self._say(PLAIN_SECONDS)

    def end(self, i: int, *, failed: bool = False) -> None:
        """Note that run i is over."""
        self._report = self._inner = None
        self.tally.end(i, failed=failed)
        if self.tally.done < self.tally.total:
            self._say(PLAIN_SECONDS)

    def poll(self) -> None:
        """Update the display; called periodically while runs are trained elsewhere."""
        self._say(6 * PLAIN_SECONDS)

    def on_report(self, share: float, seconds: float, report: Report | None) -> None:
        """Note the progress of the only run under way."""
        if len(self.tally.running) != 1:
            return
        self._report = report or self._report
        self._inner = (share, seconds)
        self.tally.advance(self.tally.running[0], share, seconds)
        self._say(PLAIN_SECONDS if report is not None else 6 * PLAIN_SECONDS)

    def line(self) -> str:
        """The progress of all runs in one line."""
        epoch = "" if self._report is None else f"; epoch {self._report.epoch}/{self._report.epochs}"
        return f"{self._head()}, {self._times()}{epoch}"

    def panel(self) -> Any:
        """The same for rich, with the display of the current run below."""
        text = require("rich.text", "cli").Text(escaped(self._head()), no_wrap=True, overflow="ellipsis")
        row = bar_line(self.tally.share(), "", self._times())
        now, report = self._inner, self._report  # another thread draws, and training goes on
        inner = [] if now is None else [report_panel(report, *now)]
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
        """Print a line, unless the last one is too recent; in a notebook, change the only one."""
        if self._style == "notebook":
            self._notebook_line.show(self.line())
        if self._style == "plain" and self.tally.now() - self._spoke >= pause:
            self._spoke = self.tally.now()
            sys.stderr.write(escaped(self.line()) + "\n")
            sys.stderr.flush()


class _Inner:
    """The listener of a run within a study."""

    def __init__(self, study: StudyProgress) -> None:
        self._study = study

    def __call__(self, report: Report) -> None:
        self._study.on_report(report.epoch / report.epochs, report.seconds, report)

    def tick(self, share: float, seconds: float) -> None:
        """Pass on progress within an epoch."""
        self._study.on_report(share, seconds, None)
