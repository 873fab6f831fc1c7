"""The view of a run's folder at any time: before the run begins, while it trains, after it ended or broke.

While a run trains, everything comes from its configuration and its log, which are small. Checkpoints are large, and a
reader must not get in the way of the writer. The front is read once it exists.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from paretomtl._support.files.atomic_files import read_json
from paretomtl._support.tensor_json import from_numbers
from paretomtl.front import Front
from paretomtl.report.page.view import View, history_of, view_of
from paretomtl.runs import is_running
from paretomtl.runs.curves import POINTS, Curves
from paretomtl.runs.log import LogTail
from paretomtl.runs.logged_front import as_mapping, check_config, fits, is_finite, read_logged_front

_TRAINING, _ENDED = ("start", "resume", "settled", "epoch"), ("end", "stopped")  # events of a log
_CURVES = {"losses": "losses", "weights": "weights", "val": "val_losses"}  # names in a history, and in a log
_TABLES = "tables"  # where an event keeps its tensors
_OF_A_RUN = ("config.json", "log.jsonl", "front", "checkpoint")  # prefixes of names in a run's folder


@dataclass(frozen=True)
class News:
    """The state of a run, in addition to its view.

    Attributes:
        state: "waiting" if there is no run yet, or a state of a view.
        process: "running", "gone" or "unknown".
        time: of the last line of the log, in seconds since 1970; None before the first one.
        text: what is wrong with the run; empty if nothing is.
        left: the seconds that the run needs from ``time`` on, by the pace of its epochs so far; None if unknown.
    """

    state: str
    process: str
    time: float | None
    text: str = ""
    left: float | None = None


class LiveRun:
    """A run that is polled.

    Args:
        folder: of a run, or where one will be.
        name: what to call it.

    Example:
        >>> run = LiveRun(Path("runs/not-yet"), "not-yet")
        >>> run.poll()
        True
        >>> run.news.state, run.front
        ('waiting', None)
        >>> run.poll()
        False
    """

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder
        self.name = name
        self.front: Front | None = None
        self.news = News("", "unknown", None)
        self._tail = LogTail(folder / "log.jsonl")
        self._forget()

    def poll(self) -> bool:
        """Read what is new; return whether anything changed."""
        restarted = self._tail.replaced()
        if restarted:
            self._forget()
        before = self._config
        if not self._event:  # a configuration without a log may be that of an earlier run
            self._read_config()
        added = [self._take(event) for event in self._tail.events()] if self._config else []
        running = is_running(as_mapping(self._legend.get("process"))) if self._event in _TRAINING else False
        replaced = not running and self._read_front()
        news = self._stand(running)
        if not (restarted or any(added) or replaced or self._config != before or news != self.news):
            return False
        self.news = news
        self.front = self._final() or self._of_log()
        return True

    def view(self, *, reference: Sequence[float] | None = None, points: int = POINTS) -> View:
        """The front to show, with the arguments of :func:`view_of`; there must be a front."""
        assert self.front is not None
        shown = view_of(self.front, self.name, str(self.folder), reference=reference, points=points)
        if self.front is self._final():
            return {**shown, "epochs": self._epochs() or shown["epochs"]}
        events = self._curves.events()
        return {
            **shown,
            "state": "training" if self.news.state == "waiting" else self.news.state,
            "epoch": events[-1]["epoch"] if events else 0,
            "epochs": self._epochs(),
            "history": self._history(points, self.front.reference if reference is None else reference),
        }

    # Reading the files.

    def _forget(self) -> None:
        self._config: dict[str, Any] = {}
        self._config_trouble = ""
        self._legend: dict[str, Any] = {}
        self._curves = Curves()
        self._event = ""
        self._time: float | None = None
        self._paced: list[tuple[int, float]] = []
        self._front: Front | None = None
        self._front_seen: tuple[int, ...] | None = None
        self._front_trouble = ""

    def _read_config(self) -> None:
        self._config, self._config_trouble = {}, ""
        try:
            config = read_json(self.folder / "config.json")
            check_config(config)
        except FileNotFoundError:
            return
        except (OSError, ValueError, TypeError, LookupError, ArithmeticError, RuntimeError) as error:
            self._config_trouble = f"its config.json cannot be read: {error}"
            return
        self._config = config

    def _take(self, event: dict[str, Any]) -> bool:
        """Process an event of the log; return whether it was valid."""
        kind = event.get("event")
        if kind not in (*_TRAINING, *_ENDED) or not is_finite(event.get("time")):
            return False
        if kind == "epoch":
            shape = (len(self._config["subproblems"]), len(self._config["tasks"]))
            if type(event.get("epoch")) is not int or not all(fits(event.get(n), shape) for n in ("losses", "weights")):
                return False
            self._curves.add(event)
            self._paced = [*self._paced[:1], (event["epoch"], event["time"])]
        elif kind in ("start", "resume"):
            self._legend |= event
            self._curves.go_back(event["epoch"] if type(event.get("epoch")) is int else 0)
            self._paced = []
        elif kind == "settled":
            self._legend |= {name: event[name] for name in ("reading", "directions") if name in event}
        self._event, self._time = str(kind), event["time"]
        return True

    def _read_front(self) -> bool:
        """Read the front if it changed since the last poll; return whether it did."""
        seen = None
        for path in (self.folder / "front" / "front.json", self.folder / "front.json"):
            with suppress(OSError):
                stat = path.lstat()
                seen = seen or (stat.st_ino, stat.st_mtime_ns, stat.st_size)
        if seen == self._front_seen:
            return False
        self._front_seen, self._front, self._front_trouble = seen, None, ""
        if seen is not None:
            try:
                self._front = Front.load(self.folder)
            except (OSError, ValueError) as error:
                self._front_trouble = f"its front cannot be read: {error}"
        return True

    # Conclusions from them.

    def _final(self) -> Front | None:
        """Return the stored front if it is complete, or if the log does not say that training goes on."""
        return None if self._front is None or (self._event in _TRAINING and not self._front.complete) else self._front

    def _stand(self, running: bool | None) -> News:
        front = self._final()
        if front is not None:
            return News("finished" if front.complete else "stopped", "gone", self._time)
        trouble = self._config_trouble or self._front_trouble
        if not self._event:
            return News("broken" if trouble else "waiting", "unknown", self._time, trouble)
        if self._event in _ENDED:
            state = "finished" if self._event == "end" else "stopped"
            return News(state, "gone", self._time, trouble or "its front was not stored; this is what its log says")
        process = {True: "running", False: "gone", None: "unknown"}[running]
        if running is False:
            return News("broken", process, self._time, trouble)
        return News("training", process, self._time, trouble, self._left())

    def _left(self) -> float | None:
        """Return the seconds left after the last epoch; the first epoch after a start is slower, and does not count."""
        epochs = self._epochs()
        if epochs is None or len(self._paced) < 2:
            return None
        (first, began), (last, ended) = self._paced
        return round(max(0, epochs - last) * (ended - began) / (last - first), 1) if last > first else None

    def _of_log(self) -> Front | None:
        if not self._config:
            return None
        events = self._curves.events()
        return read_logged_front(self._config, self._legend, events[-1] if events else {})

    def _epochs(self) -> int | None:
        """Return the planned number of epochs."""
        planned = self._legend.get("epochs", self._config.get("epochs"))  # the log knows of a longer run
        return planned if type(planned) is int else None

    def _history(self, points: int, reference: Sequence[float] | None) -> View:
        """Return the curves so far; the numbers of an event become tensors once."""
        shape, events = (len(self._config["subproblems"]), len(self._config["tasks"])), self._curves.events()
        for event in events:
            if _TABLES not in event:
                event[_TABLES] = {n: from_numbers(event[k]) for n, k in _CURVES.items() if fits(event.get(k), shape)}
        whole = [name for name in _CURVES if events and all(name in event[_TABLES] for event in events)]
        tables = {name: torch.stack([event[_TABLES][name] for event in events]) for name in whole}
        return history_of(tables, points, [event["epoch"] for event in events], reference)


def check_folder(folder: Path) -> None:
    """Refuse a path that is not a run and cannot become one."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"'RUN' must be a folder. Got '{folder}', which is a file.")
    names = [path.name for path in folder.glob("[!.]*")] if folder.is_dir() else []
    if names and not any(name.startswith(_OF_A_RUN) for name in names):
        raise ValueError(
            f"'RUN' must be the folder of a run, or one where a run will be. Got '{folder}', which holds other "
            f"files, such as '{min(names)}'."
        )
