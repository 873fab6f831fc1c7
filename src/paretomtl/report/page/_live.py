"""A run's folder as a view at any time: before there is a run in it, while it trains, after it ended or broke.

While a run trains, all comes from its configuration and its log, which are small: checkpoints are large, and a reader
must not get in the way of the writer. The front is read once it is there.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from paretomtl._support.atomic_files import read_json
from paretomtl.front import Front
from paretomtl.front.limits import check_solution_count
from paretomtl.report.page.view import View, history_of, view_of
from paretomtl.runs import is_running
from paretomtl.runs.curves import POINTS, Curves
from paretomtl.runs.log import LogTail

_TRAINING, _ENDED = ("start", "resume", "epoch"), ("end", "stopped")  # words of a log
_CURVES = {"losses": "losses", "weights": "weights", "val": "val_losses"}  # what a history calls them, and a log
_TABLES = "tables"  # where an event keeps its tensors
_OF_A_RUN = ("config.json", "log.jsonl", "front", "checkpoint")  # beginnings of names in a run's folder


@dataclass(frozen=True)
class News:
    """The state of a run, in addition to its view.

    Attributes:
        state: "waiting" where there is no run yet, or one of a view's.
        process: "running", "gone" or "unknown".
        time: of the last line of the log, in seconds since 1970; None before the first one.
        text: what is wrong with it; empty for nothing.
    """

    state: str
    process: str
    time: float | None
    text: str = ""


class LiveRun:
    """A run that is looked at again and again.

    Args:
        folder: of a run, or where one is going to be.
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
        """Read what is new; return whether anything is."""
        anew = self._tail.replaced()
        if anew:
            self._forget()
        before = self._config
        if not self._word:  # a configuration without a log may be that of an earlier run
            self._read_config()
        added = [self._take(event) for event in self._tail.events()] if self._config else []
        running = is_running(_mapping(self._legend.get("process"))) if self._word in _TRAINING else False
        replaced = not running and self._read_front()
        news = self._stand(running)
        if not (anew or any(added) or replaced or self._config != before or news != self.news):
            return False
        self.news = news
        self.front = self._final() or self._of_log()
        return True

    def view(self, *, reference: Sequence[float] | None = None, points: int = POINTS) -> View:
        """The front to show, with the arguments of :func:`view_of`; there must be a front."""
        assert self.front is not None
        found = view_of(self.front, self.name, str(self.folder), reference=reference, points=points)
        if self.front is self._final():
            return {**found, "epochs": self._epochs() or found["epochs"]}
        events = self._curves.events()
        return {
            **found,
            "state": "training" if self.news.state == "waiting" else self.news.state,
            "epoch": events[-1]["epoch"] if events else 0,
            "epochs": self._epochs(),
            "history": self._history(points),
        }

    # What the files say.

    def _forget(self) -> None:
        self._config: dict[str, Any] = {}
        self._config_trouble = ""
        self._legend: dict[str, Any] = {}
        self._curves = Curves()
        self._word = ""
        self._time: float | None = None
        self._front: Front | None = None
        self._front_seen: tuple[int, ...] | None = None
        self._front_trouble = ""

    def _read_config(self) -> None:
        self._config, self._config_trouble = {}, ""
        try:
            config = read_json(self.folder / "config.json")
            _check_config(config)
        except FileNotFoundError:
            return
        except (OSError, ValueError, TypeError, LookupError, ArithmeticError, RuntimeError) as error:
            self._config_trouble = f"its config.json cannot be read: {error}"
            return
        self._config = config

    def _take(self, event: dict[str, Any]) -> bool:
        """Take an event of the log; return whether it was one."""
        word = event.get("event")
        if word not in (*_TRAINING, *_ENDED) or not _finite(event.get("time")):
            return False
        if word == "epoch":
            shape = (len(self._config["subproblems"]), len(self._config["tasks"]))
            if type(event.get("epoch")) is not int or not all(
                _fits(event.get(n), shape) for n in ("losses", "weights")
            ):
                return False
            self._curves.add(event)
        elif word in ("start", "resume"):
            self._legend |= event
            self._curves.go_back(event["epoch"] if type(event.get("epoch")) is int else 0)
        self._word, self._time = str(word), event["time"]
        return True

    def _read_front(self) -> bool:
        """Read the front where it is another one than at the last look; return whether it is."""
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
                self._front = replace(Front.load(self.folder), parameters={}, measured={}, snapshot=None)
            except (OSError, ValueError) as error:
                self._front_trouble = f"its front cannot be read: {error}"
        return True

    # What follows from it.

    def _final(self) -> Front | None:
        """The front that counts: one that is complete, or whose run says nothing later."""
        return None if self._front is None or (self._word in _TRAINING and not self._front.complete) else self._front

    def _stand(self, running: bool | None) -> News:
        front = self._final()
        if front is not None:
            return News("finished" if front.complete else "stopped", "gone", self._time)
        trouble = self._config_trouble or self._front_trouble
        if not self._word:
            return News("broken" if trouble else "waiting", "unknown", self._time, trouble)
        if self._word in _ENDED:
            state = "finished" if self._word == "end" else "stopped"
            return News(state, "gone", self._time, trouble or "its front was not stored; this is what its log says")
        process = {True: "running", False: "gone", None: "unknown"}[running]
        return News("broken" if running is False else "training", process, self._time, trouble)

    def _of_log(self) -> Front | None:
        if not self._config:
            return None
        events = self._curves.events()
        return front_of_log(self._config, self._legend, events[-1] if events else {})

    def _epochs(self) -> int | None:
        """The number of epochs that were planned."""
        planned = self._legend.get("epochs", self._config.get("epochs"))  # of a run that goes on for longer
        return planned if type(planned) is int else None

    def _history(self, points: int) -> View:
        """The curves so far; what an event holds of them becomes tensors once."""
        shape, events = (len(self._config["subproblems"]), len(self._config["tasks"])), self._curves.events()
        for event in events:
            if _TABLES not in event:
                event[_TABLES] = {n: _numbers(event[k]) for n, k in _CURVES.items() if _fits(event.get(k), shape)}
        whole = [name for name in _CURVES if events and all(name in event[_TABLES] for event in events)]
        tables = {name: torch.stack([event[_TABLES][name] for event in events]) for name in whole}
        return history_of(tables, points, [event["epoch"] for event in events])


def front_of_log(config: Mapping[str, Any], legend: Mapping[str, Any], report: Mapping[str, Any]) -> Front:
    """A front without models, of what a run's configuration, its start and its last report say.

    Losses on "train" are means over the batches of the last epoch. Runs of earlier versions say neither what their rows
    mean nor what the losses are scaled by: they have no regions here.
    """
    rows, tasks = list(config["subproblems"]), tuple(map(str, config["tasks"]))
    shape = (len(rows), len(tasks))
    losses = {"train": report.get("losses"), "val": report.get("val_losses")}
    metrics, better = _mapping(report.get("val_metrics")), _mapping(legend.get("better"))
    found = report.get("frozen")
    frozen = found if isinstance(found, list) else []
    seconds, seed = report.get("seconds"), config.get("seed")
    return Front(
        problem=str(config.get("problem")),
        method=str(legend.get("method") or str(config.get("method")).partition("(")[0]),
        tasks=tasks,
        reading=str(legend.get("reading") or "start"),
        preferences=torch.tensor(config["preferences"], dtype=torch.float64),
        subproblems=tuple(rows),
        losses={split: _numbers(table) for split, table in losses.items() if _fits(table, shape)},
        scale=_numbers(report["scale"]) if _fits(report.get("scale"), shape) else None,
        status=["non-finite" if k in frozen else "training" for k in rows],
        since=None,
        parameters={},
        history={},
        seed=seed if type(seed) is int else 0,
        seconds=seconds or 0.0 if _fits(seconds, ()) else 0.0,
        metrics={"val": {name: _numbers(values) for name, values in metrics.items() if _fits(values, shape[:1])}},
        better={name: "lower" if word == "lower" else "higher" for name, word in better.items()},
        complete=False,
        strategy=f"{legend['strategy']}: {legend.get('reason')}" if "strategy" in legend else "",
        reference=_point(report.get("reference"), shape[1:]),
        ideal=_point(legend.get("ideal"), shape[1:]),
    )


def check_folder(folder: Path) -> None:
    """Refuse what is no run and cannot become one."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"'RUN' must be a folder. Got '{folder}', which is a file.")
    names = [path.name for path in folder.glob("[!.]*")] if folder.is_dir() else []
    if names and not any(name.startswith(_OF_A_RUN) for name in names):
        raise ValueError(
            f"'RUN' must be the folder of a run, or one where a run is going to be. Got '{folder}', which holds other "
            f"files, such as '{min(names)}'."
        )


def _check_config(config: Mapping[str, Any]) -> None:
    """Refuse a configuration that is of no run; whatever else it leads to is caught where it is read."""
    check_solution_count(config["preferences"])
    rows, chosen, tasks = torch.tensor(config["preferences"]), config["subproblems"], config["tasks"]
    filled = chosen and tasks and isinstance(chosen, list) and isinstance(tasks, list)
    if not filled or rows.shape[1:] != (len(tasks),) or not all(type(k) is int and 0 <= k < len(rows) for k in chosen):
        raise ValueError("preferences, subproblems and tasks do not go together")


def _fits(value: Any, shape: tuple[int, ...]) -> bool:
    """Whether a log has numbers, or None, in this shape."""
    if not shape:
        return value is None or type(value) is float or (type(value) is int and abs(value) < 2**63)
    return isinstance(value, list) and len(value) == shape[0] and all(_fits(part, shape[1:]) for part in value)


def _finite(value: Any) -> bool:
    return value is not None and _fits(value, ()) and math.isfinite(value)


def _numbers(lists: Any) -> Tensor:
    """Numbers of a log as they were: NaN for None."""

    def known(part: Any) -> Any:
        return [known(each) for each in part] if isinstance(part, list) else torch.nan if part is None else part

    return torch.tensor(known(lists), dtype=torch.float64)


def _point(value: Any, shape: tuple[int, ...]) -> tuple[float, ...] | None:
    return tuple(value) if _fits(value, shape) and None not in value else None


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
