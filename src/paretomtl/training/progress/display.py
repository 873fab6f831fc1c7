"""Displays of a run: a bar on a terminal, one line that changes in a notebook, plain lines elsewhere."""

from __future__ import annotations

import importlib.util
import math
import sys
import time
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

from paretomtl._support.argument_checks import quote
from paretomtl._support.imports.optional_packages import require
from paretomtl._support.splits import split_word
from paretomtl._support.terminal import escaped, text_console
from paretomtl._support.text import short_number
from paretomtl.training.progress.callbacks import Callback, Report
from paretomtl.training.progress.study_listeners import study_listeners

ProgressStyle: TypeAlias = Literal["auto", "rich", "notebook", "plain", "quiet"]
STYLES = ("auto", "rich", "notebook", "plain", "quiet")
PLAIN_SECONDS = 5.0
"""The least time between plain lines."""

NOTEBOOK_SECONDS = 0.25
"""The least time between changes of the line in a notebook."""

_MANY = 30  # numbers in a line; more are given as ranges


def choose_style(style: str) -> str:
    """The style itself, or the one that "auto" selects.

    That is one line in the kernel of a notebook, a bar if standard error is a terminal and rich is installed, and plain
    lines otherwise.
    """
    if style not in STYLES:
        raise ValueError(f"'progress' must be one of {', '.join(STYLES)}. Got {quote(style)} instead.")
    if style == "auto":
        terminal = sys.stderr.isatty() and importlib.util.find_spec("rich") is not None
        style = "notebook" if _in_notebook() else "rich" if terminal else "plain"
    if style == "notebook" and not _in_notebook():
        raise ValueError("'progress' must not be 'notebook' outside of a notebook's kernel. Use 'auto' instead.")
    return style


def _in_notebook() -> bool:
    """Whether this process is the kernel of a notebook; IPython is not imported for that."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")


def make_progress(style: str) -> list[Callback]:
    """The display for this style; "auto" uses that of the study that a run belongs to, if any."""
    listeners = study_listeners()
    if style == "auto" and listeners is not None:
        return list(listeners)
    style = choose_style(style)
    if style == "quiet":
        return []
    if style == "notebook":
        return [NotebookProgress()]
    return [RichProgress() if style == "rich" else PlainProgress()]


def say(line: str) -> None:
    """Print a line on standard error."""
    sys.stderr.write(escaped(line) + "\n")
    sys.stderr.flush()


class PlainProgress:
    """A line at most every five seconds, on standard error."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def __call__(self, report: Report) -> None:
        if time.monotonic() - self._last >= PLAIN_SECONDS:
            self._say(describe(report))

    def tick(self, share: float, seconds: float) -> None:
        """Print progress within a long epoch."""
        if time.monotonic() - self._last >= 6 * PLAIN_SECONDS:
            self._say(f"{share:.1%} done, {clock(seconds)} gone, {clock(seconds / share - seconds)} left")

    def _say(self, line: str) -> None:
        self._last = time.monotonic()
        say(line)


class NotebookLine:
    """One line below the cell of a notebook, which changes at most four times a second."""

    def __init__(self) -> None:
        self._handle: Any = None
        self._last = -math.inf
        self._line = ""

    def show(self, line: str) -> None:
        """Change the line, unless the last change is too recent."""
        self._line = line
        if time.monotonic() - self._last >= NOTEBOOK_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Show the last line that was given."""
        if not self._line:
            return
        self._last = time.monotonic()
        shown = {"text/plain": escaped(self._line)}
        if self._handle is None:
            self._handle = require("IPython.display", "cli").display(shown, raw=True, display_id=True)
        else:
            self._handle.update(shown, raw=True)


class NotebookProgress:
    """The progress of a run in one line of a notebook."""

    def __init__(self) -> None:
        self._line = NotebookLine()

    def __call__(self, report: Report) -> None:
        self._line.show(describe(report))

    def tick(self, share: float, seconds: float) -> None:
        """Show progress within a long epoch."""
        self._line.show(f"{share:.1%} done, {clock(seconds)} gone, {clock(seconds / share - seconds)} left")

    def close(self) -> None:
        """Show the last line."""
        self._line.flush()


class RichProgress:
    """A bar with the time left, and the losses of each model below it."""

    def __init__(self) -> None:
        console = text_console(stderr=True)
        self._live = require("rich.live", "cli").Live(console=console, transient=True, refresh_per_second=4)
        self._started = False
        self._report: Report | None = None

    def __call__(self, report: Report) -> None:
        self._report = report
        self._draw(report.epoch / report.epochs, report.seconds)

    def tick(self, share: float, seconds: float) -> None:
        """Move the bar within an epoch."""
        self._draw(share, seconds)

    def _draw(self, share: float, seconds: float) -> None:
        if not self._started:
            self._live.start()
            self._started = True
        self._live.update(report_panel(self._report, share, seconds))

    def close(self) -> None:
        """Remove the display."""
        if self._started:
            self._live.stop()


def describe(report: Report) -> str:
    """The progress of a run in one line."""
    rows = losses_in_words(report.tasks, _mean_rows(report))
    volume = (
        "" if report.hypervolume is None else f", hypervolume on {split_word(report.split)} {report.hypervolume:.4g}"
    )
    return (
        f"epoch {report.epoch}/{report.epochs}, {clock(report.seconds)} gone, {clock(report.remaining)} left{volume}; "
        f"{report.note + '; ' if report.note else ''}losses on {split_word(report.split)}{_over_seeds(report)}{rows}"
        f"{_frozen(report)}"
    )


def clock(seconds: float) -> str:
    """Seconds as hours, minutes and seconds."""
    whole = round(seconds)
    hours, minutes = whole // 3600, whole % 3600 // 60
    return f"{hours}:{minutes:02d}:{whole % 60:02d}" if hours else f"{minutes}:{whole % 60:02d}"


def _mean_rows(report: Report) -> list[tuple[int, list[float]]]:
    """Each model with its losses, as means over seeds if there are several."""
    places = dict.fromkeys(report.subproblems)
    rows = report.quote().reshape(-1, len(places), len(report.tasks)).mean(0)
    return list(zip(places, rows.tolist(), strict=True))


def _over_seeds(report: Report) -> str:
    return f" (means of {len(set(report.seeds))} seeds)" if report.seeds else ""


def _frozen(report: Report) -> str:
    return f"; frozen: {', '.join(map(str, report.frozen))}" if report.frozen else ""


def bar_line(share: float, before: str, *after: str) -> Any:
    """A bar between texts in one line; the bar shrinks first in a narrow one."""
    bar = require("rich.progress_bar", "cli").ProgressBar(total=1.0, completed=share)
    line = require("rich.table", "cli").Table.grid(padding=(0, 1))
    texts = [text for text in after if text]
    if before:
        line.add_column(no_wrap=True)
    line.add_column(max_width=30, min_width=4)
    for text in texts:
        line.add_column(no_wrap=len(text) < 30, overflow="ellipsis")
    line.add_row(*([before] if before else []), bar, *texts)
    return line


def report_panel(report: Report | None, share: float, seconds: float) -> Any:
    """The bar and the table of the last report, as rich draws them."""
    epoch = f"epoch {report.epoch}/{report.epochs}" if report is not None else "first epoch"
    left = f"{clock(seconds / share - seconds)} left" if share > 0 else ""
    note = "" if report is None else report.note
    head = bar_line(share, epoch, left, note)
    if report is None:
        return head
    table = require("rich.table", "cli").Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("\nk", justify="right")
    for task in report.tasks:
        table.add_column(f"{report.split}\n{task}", justify="right")
    shown = _mean_rows(report)
    for k, row in shown[:12]:
        state = " frozen" if k in report.frozen else ""
        table.add_row(f"{k}{state}", *map(short_number, row))
    rest = [f"and {len(shown) - 12} more"] if len(shown) > 12 else []
    rest += [f"Losses are means of {len(set(report.seeds))} seeds."] if report.seeds else []
    rest += (
        [] if report.hypervolume is None else [f"hypervolume on {split_word(report.split)} {report.hypervolume:.4g}"]
    )
    return require("rich.console", "cli").Group(head, table, *rest)


def losses_in_words(tasks: Sequence[str], rows: Sequence[tuple[int, list[float]]]) -> str:
    """The losses of each model; if there are many, the range in each task.

    Example:
        >>> losses_in_words(["a", "b"], [(0, [0.5, 2.0]), (1, [0.25, 4.0])])
        ' 0: 0.5 2  1: 0.25 4'
        >>> losses_in_words(["a", "b"], [(k, [0.5 + k, 2.0]) for k in range(20)])
        ' of 20 models: a 0.5 to 19.5, b 2 to 2'
    """
    if len(rows) * len(tasks) <= _MANY:
        return " " + "  ".join(f"{k}: " + " ".join(f"{value:.3g}" for value in row) for k, row in rows)
    columns = zip(*(row for _, row in rows), strict=True)
    return f" of {len(rows)} models: {', '.join(map(_range, tasks, columns))}"


def _range(task: str, values: Sequence[float]) -> str:
    finite = [value for value in values if math.isfinite(value)]
    return f"{task} {min(finite):.3g} to {max(finite):.3g}" if finite else f"{task} not finite"
