"""What a run tells while it goes: a bar on a terminal, plain lines elsewhere, TensorBoard on request."""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, TypeAlias

from torch import Tensor

from paretomtl._support.optional import require
from paretomtl._support.signatures import check_takes
from paretomtl._support.splits import ranking_split
from paretomtl._support.tensor_json import to_numbers
from paretomtl._support.terminal import escaped, text_console
from paretomtl.training.progress.loss_text import losses_in_words

ProgressStyle: TypeAlias = Literal["auto", "rich", "plain", "quiet"]
STYLES = ("auto", "rich", "plain", "quiet")
PLAIN_SECONDS = 5.0
"""The least time between plain lines."""


@dataclass(frozen=True)
class Report:
    """Where a run stands at the end of an epoch.

    Attributes:
        epoch: how many epochs are done.
        epochs: how many are planned.
        step: how many steps are done.
        seconds: how long training took so far.
        tasks: their names.
        subproblems: which are trained, in the order of everything below.
        losses: mean training losses over the epoch's batches, ``[K, m]``.
        weights: mean weights over the epoch's batches, ``[K, m]``.
        val_losses: losses on the validation split, ``[K, m]``; None without one.
        val_metrics: metrics on the validation split, ``[K]`` each.
        hypervolume: of the losses on ``split``, against ``reference``; None without moocore or a reference, and where
            it would take long: for more than 100 solutions of five or six tasks, or more than 20 of seven or more.
        reference: the point that it is measured against.
        frozen: the subproblems whose losses were not finite.
        scale: the factors ``[K, m]`` that the method multiplies the losses by; None for none.
        note: of a run in shards, where these stand. Its epoch is then the mean over all subproblems, and losses of
            those that have not begun are NaN.
        seeds: of :func:`~paretomtl.fit_seeds`, the seed of each row. There is a row for every model: all subproblems of
            the first seed, then those of the next one, so that K above is the number of seeds times that of
            subproblems, ``subproblems`` repeats itself, and ``hypervolume`` is the mean over seeds. Empty for one seed.
    """

    epoch: int
    epochs: int
    step: int
    seconds: float
    tasks: Sequence[str]
    subproblems: Sequence[int]
    losses: Tensor
    weights: Tensor
    val_losses: Tensor | None
    val_metrics: dict[str, Tensor]
    hypervolume: float | None
    reference: Sequence[float] | None
    frozen: Sequence[int]
    scale: Tensor | None = None
    note: str = ""
    seeds: Sequence[int] = ()

    @property
    def remaining(self) -> float:
        """The seconds that the epochs to come will take, if they are like those so far."""
        return self.seconds / self.epoch * (self.epochs - self.epoch)

    def numbers(self) -> dict[str, Any]:
        """Everything as numbers and lists, for a log; NaN and infinity as None."""
        found: dict[str, Any] = {
            "epoch": self.epoch,
            "epochs": self.epochs,
            "step": self.step,
            "seconds": round(self.seconds, 3),
            "losses": to_numbers(self.losses),
            "weights": to_numbers(self.weights),
            "split": self.split,
            "hypervolume": self.hypervolume,
            "reference": None if self.reference is None else list(self.reference),
            "frozen": list(self.frozen),
            **({"note": self.note} if self.note else {}),
            **({"seeds": list(self.seeds)} if self.seeds else {}),
        }
        if self.scale is not None:
            found["scale"] = to_numbers(self.scale)
        if self.val_losses is not None:
            found["val_losses"] = to_numbers(self.val_losses)
            found["val_metrics"] = {name: to_numbers(values) for name, values in self.val_metrics.items()}
        return found

    @property
    def split(self) -> str:
        """The split that ranks, whose hypervolume and losses are shown; losses on "train" are means over batches."""
        return ranking_split(["train"] if self.val_losses is None else ["train", "val"])

    def shown(self) -> Tensor:
        """The losses to show, on ``split``."""
        return self.losses if self.val_losses is None else self.val_losses


Callback: TypeAlias = Callable[[Report], bool | None]
"""Called with a :class:`Report` at the end of an epoch; one that returns True stops the run after this epoch.

One that has ``tick(share, seconds)`` is called about once a second besides, with the share of the steps that are done
and how long they took; one that has ``close()`` is closed at the end of the run.
"""


def check_callbacks(callbacks: Sequence[Callback]) -> None:
    """Refuse what cannot be called with a report at the end of the first epoch."""
    if not isinstance(callbacks, Iterable) or isinstance(callbacks, str):
        raise TypeError(f"'callbacks' must be a list of functions of a report. Got {callbacks!r} instead.")
    for callback in callbacks:
        if isinstance(callback, type):
            raise TypeError(f"'callbacks' must be functions of a report. Got the class {callback.__name__} instead.")
        if not callable(callback):
            raise TypeError(f"'callbacks' must be functions of a report. Got {type(callback).__name__} instead.")
        check_takes("callbacks", callback, "be functions of a report", "report")


def notify(listeners: Sequence[Callback], report: Report) -> bool:
    """Call all with a report; return whether one wants to stop. Where one raises, the error says when."""
    stop = False
    for listener in listeners:
        try:
            answer = listener(report)
            if answer is not None and not isinstance(answer, bool):
                raise TypeError(
                    f"'callbacks' must return None, or True to stop after this epoch. {_name(listener)} returned "
                    f"{answer!r:.80} instead."
                )
        except Exception as error:
            error.add_note(f"This came from a callback at the end of epoch {report.epoch}.")
            raise
        stop = stop or answer is True
    return stop


def tick(listeners: Sequence[Callback], share: float, seconds: float) -> None:
    """Give a sign of life inside of an epoch to those that want one."""
    for listener in listeners:
        if hasattr(listener, "tick"):
            listener.tick(share, seconds)


def close(listeners: Sequence[Callback]) -> None:
    """Close those that can be closed: all of them, though one may fail."""
    failures = []
    for listener in listeners:
        try:
            if hasattr(listener, "close"):
                listener.close()
        except Exception as error:
            failures.append(error)
    if failures:
        raise failures[0]


def _name(listener: Callback) -> str:
    """What a user calls a callback: its name, where it has one of its own."""
    found = getattr(listener, "__qualname__", None)
    return f"'{found}'" if isinstance(found, str) else f"A callback of the class '{type(listener).__qualname__}'"


_instead: ContextVar[list[Callback] | None] = ContextVar("instead", default=None)


@contextmanager
def listening_for(listeners: list[Callback]) -> Iterator[None]:
    """Within, runs with ``progress="auto"`` report to these listeners and have no display of their own."""
    token = _instead.set(listeners)
    try:
        yield
    finally:
        _instead.reset(token)


@contextmanager
def quiet_elsewhere() -> Iterator[None]:
    """Within, a run of a study is quiet in a process that has no display of that study, such as a worker of Ray."""
    with listening_for(_instead.get() or []):
        yield


def is_part_of_study() -> bool:
    """Whether runs report to a display of many runs."""
    return _instead.get() is not None


def choose_style(style: str) -> str:
    """The style itself, or what "auto" stands for: a bar where standard error is a terminal and rich is there."""
    if style not in STYLES:
        raise ValueError(f"'progress' must be one of {', '.join(STYLES)}. Got {style!r} instead.")
    if style == "auto":
        terminal = sys.stderr.isatty() and importlib.util.find_spec("rich") is not None
        style = "rich" if terminal else "plain"
    return style


def make_progress(style: str) -> list[Callback]:
    """The display for this style; "auto" is that of the study that a run belongs to, if it belongs to one."""
    instead = _instead.get()
    if style == "auto" and instead is not None:
        return list(instead)
    style = choose_style(style)
    if style == "quiet":
        return []
    return [RichProgress() if style == "rich" else PlainProgress()]


class PlainProgress:
    """A line at most every five seconds, on standard error."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def __call__(self, report: Report) -> None:
        if time.monotonic() - self._last >= PLAIN_SECONDS:
            self._say(describe(report))

    def tick(self, share: float, seconds: float) -> None:
        """A sign of life in a long epoch."""
        if time.monotonic() - self._last >= 6 * PLAIN_SECONDS:
            self._say(f"{share:.1%} done, {clock(seconds)} gone, {clock(seconds / share - seconds)} left")

    def _say(self, line: str) -> None:
        self._last = time.monotonic()
        sys.stderr.write(escaped(line) + "\n")
        sys.stderr.flush()


class RichProgress:
    """A bar with the time left, and the losses of each subproblem below it."""

    def __init__(self) -> None:
        console = text_console(stderr=True)
        self._live = require("rich.live", "cli").Live(console=console, transient=True, refresh_per_second=4)
        self._started = False
        self._report: Report | None = None

    def __call__(self, report: Report) -> None:
        self._report = report
        self._draw(report.epoch / report.epochs, report.seconds)

    def tick(self, share: float, seconds: float) -> None:
        """Move the bar inside of an epoch."""
        self._draw(share, seconds)

    def _draw(self, share: float, seconds: float) -> None:
        if not self._started:
            self._live.start()
            self._started = True
        self._live.update(report_panel(self._report, share, seconds))

    def close(self) -> None:
        """Take the display away."""
        if self._started:
            self._live.stop()


class TensorBoard:
    """Writes losses, weights and hypervolume of each epoch for TensorBoard (extra ``tensorboard``).

    Args:
        folder: where the event files go.

    Example:
        .. code-block:: python

            pm.fit(problem, epochs=10, callbacks=[pm.TensorBoard("runs/first")])
    """

    def __init__(self, folder: str | Path) -> None:
        require("tensorboard", "tensorboard")
        from torch.utils.tensorboard import SummaryWriter

        self._writer = SummaryWriter(str(folder))

    def __call__(self, report: Report) -> None:
        groups = {"train": report.losses, "weight": report.weights}
        models = [str(k) for k in report.subproblems]
        if report.seeds:
            models = [f"{k}/seed-{seed}" for k, seed in zip(models, report.seeds, strict=True)]
        if report.val_losses is not None:
            groups["val"] = report.val_losses
        for kind, table in groups.items():
            for i, task in enumerate(report.tasks):
                for k, row in zip(models, table, strict=True):
                    self._add(f"{kind}/{task}/{k}", float(row[i]), report.epoch)
        for name, values in report.val_metrics.items():
            for k, value in zip(models, values.tolist(), strict=True):
                self._add(f"val/{name}/{k}", value, report.epoch)
        if report.hypervolume is not None:
            self._add(f"{report.split}/hypervolume", report.hypervolume, report.epoch)

    def _add(self, name: str, value: float, epoch: int) -> None:
        self._writer.add_scalar(name, value, epoch)

    def close(self) -> None:
        """Write what is left."""
        self._writer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def describe(report: Report) -> str:
    """One line on where a run stands."""
    rows = losses_in_words(report.tasks, _mean_rows(report))
    volume = "" if report.hypervolume is None else f", hypervolume on {report.split} {report.hypervolume:.4g}"
    return (
        f"epoch {report.epoch}/{report.epochs}, {clock(report.seconds)} gone, {clock(report.remaining)} left{volume}; "
        f"{report.note + '; ' if report.note else ''}losses on {report.split}{_over_seeds(report)}{rows}"
        f"{_frozen(report)}"
    )


def clock(seconds: float) -> str:
    """Seconds as hours, minutes and seconds."""
    whole = round(seconds)
    hours, minutes = whole // 3600, whole % 3600 // 60
    return f"{hours}:{minutes:02d}:{whole % 60:02d}" if hours else f"{minutes}:{whole % 60:02d}"


def _mean_rows(report: Report) -> list[tuple[int, list[float]]]:
    """Each subproblem with its losses, as means over seeds where there are several."""
    places = dict.fromkeys(report.subproblems)
    rows = report.shown().reshape(-1, len(places), len(report.tasks)).mean(0)
    return list(zip(places, rows.tolist(), strict=True))


def _over_seeds(report: Report) -> str:
    return f" (means of {len(set(report.seeds))} seeds)" if report.seeds else ""


def _frozen(report: Report) -> str:
    return f"; frozen: {', '.join(map(str, report.frozen))}" if report.frozen else ""


def bar_line(share: float, before: str, *after: str) -> Any:
    """A bar between texts in one line; where that is narrow, the bar gives way."""
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
        table.add_row(f"{k}{state}", *[f"{value:.4g}" for value in row])
    rest = [f"and {len(shown) - 12} more"] if len(shown) > 12 else []
    rest += [f"Losses are means of {len(set(report.seeds))} seeds."] if report.seeds else []
    rest += [] if report.hypervolume is None else [f"hypervolume on {report.split} {report.hypervolume:.4g}"]
    return require("rich.console", "cli").Group(head, table, *rest)
