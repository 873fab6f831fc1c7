"""The job of a shard, here or on a worker: to measure how its models train, or to train them in the shard's folder.

A worker returns the files of that folder, which are read like those of any run. A worker that sees the folder writes
there; otherwise it sends the bytes. A random token in a file tells which case it is, so the user need not say. Ray
workers block SIGINT, so a shard is stopped by calling the handler that Ctrl-C would call.
"""

from __future__ import annotations

import contextlib
import itertools
import signal
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import torch

from paretomtl._support.argument_checks import quote
from paretomtl._support.files.atomic_files import whole_file
from paretomtl._support.files.safe_open import TENSORS, WORD, check_folder_kind, exists, kind_of, read_file
from paretomtl._support.random_state import own_states_kept
from paretomtl.engine.device import find_device
from paretomtl.problems import NamedProblem
from paretomtl.runs.folder import RunFolder
from paretomtl.training.progress.callbacks import Report
from paretomtl.training.run.loop import train_fronts
from paretomtl.training.run.trial_run import trial_run
from paretomtl.training.settings.settings import Settings
from paretomtl.training.shards.executor import Channel

Files: TypeAlias = dict[str, bytes | None]
"""Files by their path in a folder; None for one that is gone."""

SHARED_FS_PROBE = ".reached"
"""A file next to the folders of shards: a worker that reads the run's token in it writes to them itself."""

_TIMED = 3  # how many steps are timed
_SEND_SECONDS = 0.25  # between messages of one shard


@dataclass(frozen=True)
class ShardConfig:
    """The configuration of all shards of a run.

    Attributes:
        settings: of the whole run; without its problem, if workers find that by name.
        named: where workers find the problem; None if it was sent.
        pause: seconds between checkpoints.
    """

    settings: Settings
    named: NamedProblem | None
    pause: float

    def part(self, subproblems: Sequence[int]) -> Settings:
        """The settings of a shard, where it is trained."""
        problem = self.settings.problem if self.named is None else self.named.make()
        device = find_device(self.settings.device, self.settings.shares.processes)
        return replace(self.settings, problem=problem, subproblems=list(subproblems), device=device)


@dataclass(frozen=True)
class ShardJob:
    """One shard: its models, its folder, and a random token that proves that the worker sees this folder."""

    subproblems: tuple[int, ...]
    folder: Path
    token: str


@dataclass(frozen=True)
class ShardCost:
    """The cost of a shard, from a trial: strategy, threads, how many models fit into a stack, seconds of a run."""

    strategy: str
    workers: int
    most: int | None
    seconds: float


def measure_shard(config: ShardConfig, subproblems: tuple[int, ...], channel: Channel) -> ShardCost:
    """Measure how a shard of these models would train, by the engine's trials and a few steps."""
    settings = config.part(subproblems)
    with trial_run(settings) as run:
        times = []
        for batch in itertools.islice(run.batches(), _TIMED + 1):
            began = time.perf_counter()
            run.take_step(batch)
            if settings.device.type == "cuda":
                torch.cuda.synchronize()
            times.append(time.perf_counter() - began)
        choice = run.choice
        return ShardCost(choice.strategy, choice.workers, choice.most, min(times) * run.total)


def train_shard(config: ShardConfig, job: ShardJob, channel: Channel) -> list[str]:
    """Train a shard in its folder, from its last checkpoint on; return its warnings."""
    settings = config.part(job.subproblems)
    kept = own_states_kept(settings.sources)  # the next shard draws the same
    with kept, _folder(job, channel) as (folder, mirror), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        train_fronts(settings, RunFolder(folder), True, config.pause, [_Relay(channel, mirror)])
        if mirror is not None:
            mirror.send()
    return list(dict.fromkeys(str(each.message) for each in caught))


@contextlib.contextmanager
def _folder(job: ShardJob, channel: Channel) -> Iterator[tuple[Path, _Mirror | None]]:
    """The shard's folder if this process sees it; otherwise a local copy, with a mirror that sends changes back."""
    probe = job.folder.parent / SHARED_FS_PROBE
    if exists(probe) and read_file(probe, limit=WORD) == job.token.encode():
        yield job.folder, None
        return
    with tempfile.TemporaryDirectory(prefix="paretomtl-") as place:
        folder = Path(place) / job.folder.name
        put_files(folder, channel.fetch())
        yield folder, _Mirror(folder, channel)


def take_files(folder: Path) -> Files:
    """The files of a folder that a later process needs."""
    return {name: read_file(path, limit=TENSORS) for name, path in _files(folder).items()}


def put_files(folder: Path, files: Files) -> None:
    """Write files into a folder, each atomically; the front's JSON after the tensors that it names."""
    check_folder_kind(folder)
    check_folder_kind(folder / "front")
    for name, content in sorted(files.items(), key=lambda item: item[0].endswith(".json")):
        path = (folder / name).resolve()
        if not path.is_relative_to(folder.resolve()):
            raise ValueError(f"'files' must stay in their folder. Got {quote(name)}.")
        if content is None:
            path.unlink(missing_ok=True)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as file:
            file.write(content)


def _files(folder: Path) -> dict[str, Path]:
    """Its regular files: a link could lead outside of the folder."""
    paths = [path for path in (*folder.glob("*"), *_inside(folder / "front")) if exists(path) and kind_of(path) is None]
    return {path.relative_to(folder).as_posix(): path for path in sorted(paths) if not path.name.startswith(".")}


def _inside(folder: Path) -> Iterator[Path]:
    return folder.glob("*") if kind_of(folder) == "a folder" else iter(())


class _Mirror:
    """Sends the files of a folder that changed to the process that started the job."""

    def __init__(self, folder: Path, channel: Channel) -> None:
        self._folder = folder
        self._channel = channel
        self._known = self._state()

    def send(self, *, log_alone: bool = True) -> None:
        """Send files that changed or are gone; if only the log changed, send it only with ``log_alone``."""
        now = self._state()
        changed = [name for name in {**self._known, **now} if self._known.get(name) != now.get(name)]
        if not changed or (changed == ["log.jsonl"] and not log_alone):
            return
        self._known = now
        there = {name: self._folder / name for name in changed if name in now}
        gone: Files = {name: None for name in changed if name not in now}
        self._channel.send({**{name: read_file(path, limit=TENSORS) for name, path in there.items()}, **gone})

    def _state(self) -> dict[str, tuple[int, int]]:
        return {name: (path.stat().st_mtime_ns, path.stat().st_size) for name, path in _files(self._folder).items()}


class _Relay:
    """A listener that forwards the reports of a shard, and stops the shard on request."""

    def __init__(self, channel: Channel, mirror: _Mirror | None) -> None:
        self._channel = channel
        self._mirror = mirror
        self._sent = -_SEND_SECONDS
        self._stopped = False

    def __call__(self, report: Report) -> None:
        self._pass(report, last=report.epoch == report.epochs)

    def tick(self, share: float, seconds: float) -> None:
        """Forward progress within a long epoch."""
        self._pass(share)

    def _pass(self, message: Report | float, *, last: bool = False) -> None:
        if not last and time.monotonic() - self._sent < _SEND_SECONDS:
            return
        self._sent = time.monotonic()
        if self._mirror is not None:
            self._mirror.send(log_alone=False)
        self._channel.send(message)
        if self._channel.stopping and not self._stopped:
            self._stopped = True
            _interrupt()


def _interrupt() -> None:
    """End the run as Ctrl-C does. The handler is called, because Ray workers block the signal."""
    handler = signal.getsignal(signal.SIGINT)
    if not callable(handler):
        raise KeyboardInterrupt
    handler(signal.SIGINT, None)
