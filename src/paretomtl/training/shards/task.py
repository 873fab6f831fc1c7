"""What is done for a shard, here or on a worker: measure how its models train, or train them in a run's folder."""

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

from paretomtl._support.files import whole_file
from paretomtl._support.random_state import isolated_randomness, seed_everything
from paretomtl._support.safe_open import TENSORS, WORD, check_folder_kind, exists, kind_of, read_file
from paretomtl.engine.device import find_device
from paretomtl.problems import NamedProblem
from paretomtl.runs.folder import RunFolder
from paretomtl.training._loop import train_fronts
from paretomtl.training._run import TrainingRun
from paretomtl.training.progress.callbacks import Report
from paretomtl.training.settings import Settings
from paretomtl.training.shards.executor import Channel
from paretomtl.training.torch_modes import library_modes

Files: TypeAlias = dict[str, bytes | None]
"""Files by their path in a folder; None for one that is gone."""

SHARED_FS_PROBE = ".reached"
"""A file beside the folders of shards: a worker that reads the word in it writes to them itself."""

_TIMED = 3  # how many steps are timed
_TELL_SECONDS = 0.25  # between messages of one shard


@dataclass(frozen=True)
class ShardConfig:
    """What all shards of a run have in common.

    Attributes:
        settings: of the whole run; without its problem, where that is found by name.
        named: where the problem is found; None where it was sent.
        pause: seconds between checkpoints.
    """

    settings: Settings
    named: NamedProblem | None
    pause: float

    def part(self, subproblems: Sequence[int]) -> Settings:
        """The settings of a shard, where it is trained."""
        problem = self.settings.problem if self.named is None else self.named.make()
        device = find_device(self.settings.device, self.settings.shares.ranks)
        return replace(self.settings, problem=problem, subproblems=list(subproblems), device=device)


@dataclass(frozen=True)
class ShardJob:
    """What one shard needs: its subproblems, its folder, and the word by which a worker knows that it is that one."""

    subproblems: tuple[int, ...]
    folder: Path
    word: str


@dataclass(frozen=True)
class ShardCost:
    """What a trial of a shard found: the strategy, its threads, how many models fit into a stack, seconds of a run."""

    strategy: str
    workers: int
    most: int | None
    seconds: float


def measure_shard(common: ShardConfig, subproblems: tuple[int, ...], link: Channel) -> ShardCost:
    """How a shard of these subproblems would train: the engine's own trials, and a few steps."""
    settings = common.part(subproblems)
    on_gpu = settings.device.type == "cuda"
    here = torch.cuda.device(settings.device) if on_gpu else contextlib.nullcontext()
    with here, isolated_randomness(), library_modes(settings.precision), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the shards will say the same
        seed_everything(settings.seeds[0])
        with TrainingRun(settings, None, False, 0.0, []) as course:
            times = []
            for batch in itertools.islice(course.batches(0), _TIMED + 1):
                began = time.perf_counter()
                course.take_step(batch)
                if on_gpu:
                    torch.cuda.synchronize()
                times.append(time.perf_counter() - began)
            choice = course.choice
            return ShardCost(choice.strategy, choice.workers, choice.most, min(times) * course.total)


def train_shard(common: ShardConfig, order: ShardJob, link: Channel) -> list[str]:
    """Train a shard in its folder, from its last checkpoint on; return what it warned of."""
    settings = common.part(order.subproblems)
    with _folder(order, link) as (folder, mirror), warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        train_fronts(settings, RunFolder(folder), True, common.pause, [_Relay(link, mirror)])
        if mirror is not None:
            mirror.send()
    return list(dict.fromkeys(str(each.message) for each in said))


@contextlib.contextmanager
def _folder(order: ShardJob, link: Channel) -> Iterator[tuple[Path, _Mirror | None]]:
    """The shard's folder where this process sees it; else one here, with its files, and what sends them back."""
    token = order.folder.parent / SHARED_FS_PROBE
    if exists(token) and read_file(token, limit=WORD) == order.word.encode():
        yield order.folder, None
        return
    with tempfile.TemporaryDirectory(prefix="paretomtl-") as place:
        folder = Path(place) / order.folder.name
        put_files(folder, link.fetch())
        yield folder, _Mirror(folder, link)


def take_files(folder: Path) -> Files:
    """The files of a folder that a later process needs."""
    return {name: read_file(path, limit=TENSORS) for name, path in _files(folder).items()}


def put_files(folder: Path, files: Files) -> None:
    """Write files into a folder, each whole or not at all; the front's words after the tensors that they name."""
    check_folder_kind(folder)
    check_folder_kind(folder / "front")
    for name, content in sorted(files.items(), key=lambda item: item[0].endswith(".json")):
        path = (folder / name).resolve()
        if not path.is_relative_to(folder.resolve()):
            raise ValueError(f"'files' must stay in their folder. Got {name!r}.")
        if content is None:
            path.unlink(missing_ok=True)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as file:
            file.write(content)


def _files(folder: Path) -> dict[str, Path]:
    """Its regular files: a link would bring in what lies elsewhere."""
    paths = [path for path in (*folder.glob("*"), *_inside(folder / "front")) if exists(path) and kind_of(path) is None]
    return {path.relative_to(folder).as_posix(): path for path in sorted(paths) if not path.name.startswith(".")}


def _inside(folder: Path) -> Iterator[Path]:
    return folder.glob("*") if kind_of(folder) == "a folder" else iter(())


class _Mirror:
    """Sends what changed in a folder to whoever asked for the work."""

    def __init__(self, folder: Path, link: Channel) -> None:
        self._folder = folder
        self._link = link
        self._known = self._state()

    def send(self, *, log_alone: bool = True) -> None:
        """Send the files that changed, or are gone; not for the sake of a log alone, unless that is wanted."""
        now = self._state()
        changed = [name for name in {**self._known, **now} if self._known.get(name) != now.get(name)]
        if not changed or (changed == ["log.jsonl"] and not log_alone):
            return
        self._known = now
        there = {name: self._folder / name for name in changed if name in now}
        gone: Files = {name: None for name in changed if name not in now}
        self._link.send({**{name: read_file(path, limit=TENSORS) for name, path in there.items()}, **gone})

    def _state(self) -> dict[str, tuple[int, int]]:
        return {name: (path.stat().st_mtime_ns, path.stat().st_size) for name, path in _files(self._folder).items()}


class _Relay:
    """A listener that passes on what a shard tells, and stops it when that is wanted."""

    def __init__(self, link: Channel, mirror: _Mirror | None) -> None:
        self._link = link
        self._mirror = mirror
        self._told = -_TELL_SECONDS
        self._stopped = False

    def __call__(self, report: Report) -> None:
        self._pass(report, last=report.epoch == report.epochs)

    def tick(self, share: float, seconds: float) -> None:
        """A sign of life in a long epoch."""
        self._pass(share)

    def _pass(self, message: Report | float, *, last: bool = False) -> None:
        if not last and time.monotonic() - self._told < _TELL_SECONDS:
            return
        self._told = time.monotonic()
        if self._mirror is not None:
            self._mirror.send(log_alone=False)
        self._link.send(message)
        if self._link.stopping and not self._stopped:
            self._stopped = True
            _interrupt()


def _interrupt() -> None:
    """End the run as Ctrl-C does; called rather than sent, for workers of Ray block the signal."""
    handler = signal.getsignal(signal.SIGINT)
    if not callable(handler):
        raise KeyboardInterrupt
    handler(signal.SIGINT, None)
