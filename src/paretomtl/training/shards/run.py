"""A run in shards: each is an ordinary run of some models, trained by an executor.

A shard has its own folder, so checkpoints, logs and resuming need no second implementation. Merged, shards give the
front of a run that is not sharded.
"""

from __future__ import annotations

import contextlib
import tempfile
import time
import uuid
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from paretomtl._support.error_notes import note_kept
from paretomtl._support.files.atomic_files import write_text
from paretomtl._support.files.safe_open import check_folder_kind, exists
from paretomtl._support.signals import Stopping
from paretomtl.front import Front
from paretomtl.runs.folder import RunFolder
from paretomtl.runs.manifest import SHARDS
from paretomtl.training.preflight.loss_units import UNITS_WARNING
from paretomtl.training.progress.callbacks import Callback, Report, notify, tick
from paretomtl.training.run.extend import asks_for_more, follow_first_plan, longer_config, stored_plan
from paretomtl.training.run.stopping import CALLBACK, FAILED, INTERRUPTED, attach_fronts, close_all, planned_end
from paretomtl.training.settings.fingerprint import differing_start
from paretomtl.training.settings.settings import Settings
from paretomtl.training.shards.executor import Executor, JobBatch
from paretomtl.training.shards.job import (
    SHARED_FS_PROBE,
    ShardJob,
    put_files,
    take_files,
    train_shard,
)
from paretomtl.training.shards.merge import Overview, merge_fronts
from paretomtl.training.shards.plan import config_parts, make_shard_config, plan_shards, shard_run_config

_STOPPED = "training was stopped"  # the beginning of a warning of every shard
_TICK_SECONDS = 1.0  # between ticks


def is_sharded_run(folder: Path) -> bool:
    """Whether the run in a folder is in shards."""
    return exists(folder / SHARDS)


def train_in_shards(
    settings: Settings,
    device: torch.device | str | None,
    executor: Executor,
    folder: RunFolder | None,
    resume: bool,
    pause: float,
    listeners: list[Callback],
) -> Front:
    """Train the models in shards, and merge their fronts as they end.

    Args:
        settings: of the whole run, except for its device.
        device: where to train, among the executor's devices; None for a GPU if there is one.
        executor: where shards are trained.
        folder: of the run; None for a temporary one.
        resume: whether to continue with the shards in it that are missing.
        pause: seconds between checkpoints of a shard, and between fronts of the finished shards.
        listeners: called with one report of all shards.
    """
    if settings.shares.processes.is_distributed:
        raise ValueError("'executor' must be left out if processes share a run. Got one under torchrun.")
    settings = replace(settings, method=settings.method.for_part())
    if settings.method.needs_whole_front:
        if folder is not None and is_sharded_run(folder.path):
            raise ValueError(
                f"'method' must train each row of a front on its own to resume the run in '{folder.path}', which is in "
                f"shards. Got '{settings.method.name}' instead, which needs all rows together."
            )
        raise ValueError(
            f"'executor' must be None for the method '{settings.method.name}', which needs all rows of a front "
            f"together: a shard has some of them. Got {type(executor).__name__} instead."
        )
    if settings.patience is not None:
        raise ValueError(
            "'patience' must be None for a run in shards: a shard trains as it would among all, and does not see "
            f"whether the models of others improve. Got {settings.patience} instead."
        )
    lasts = folder is not None
    try:
        with contextlib.ExitStack() as stack, executor:
            capacity = executor.capacity(None if device is None else str(device))
            settings = replace(settings, device=torch.device(capacity.device))
            if folder is None:
                folder = RunFolder(Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="paretomtl-"))))
            run, path = folder, folder.path
            stack.callback(run.close)
            stored = run.open(resume=resume)
            settings = follow_first_plan(stored, settings, path)
            config, scaling = shard_run_config(settings)
            if stored is not None:
                if "shards" not in stored:
                    raise ValueError(f"'executor' must be left out: the run in '{path}' is not in shards.")
                longer = asks_for_more(stored, settings)
                before = (
                    {**shard_run_config(stored_plan(stored, settings))[0], "start": config["start"]}
                    if longer
                    else config
                )
                run.check(stored, before, differing_start(stored.get("start"), config["start"], settings.precision))
                if longer:
                    run.extend(longer_config(stored, config, settings, 0), settings.problem)
                plan = stored["shards"]
            else:
                plan = plan_shards(settings, executor, pause, capacity)
                check_folder_kind(path / SHARDS)
                (path / SHARDS).mkdir(exist_ok=True)
                run.begin({**config, "shards": plan})
            jobs = _Shards(settings, executor, run, plan, pause, listeners, scaling)
            front = jobs.front() if not jobs.names else _finish(jobs, executor, lasts=lasts)
    except BaseException as error:
        close_all(listeners, error)
        raise
    close_all(listeners, None, [front], path if lasts else None)
    return front


def _finish(jobs: _Shards, executor: Executor, *, lasts: bool) -> Front:
    """Train the remaining shards, and keep the finished ones however it ends."""
    front: Front | None
    with jobs.signals:
        try:
            for i, messages in executor.map(jobs):
                jobs.ended(i, messages)
        except BaseException:
            jobs.keep(complete=False)
            raise
        try:
            front = jobs.front()
        except KeyboardInterrupt:  # nothing was trained before a listener failed
            if jobs.failure is None:
                raise
            front = None
        if jobs.failure is not None:
            attach_fronts(jobs.failure, [] if front is None else [front], jobs.folder if lasts else None)
            if lasts:
                text = f"The shards in '{jobs.folder}' have checkpoints: the same call with resume=True goes on."
                note_kept(jobs.failure, text, "resume")
            raise jobs.failure
        assert front is not None
        return front


class _Shards(JobBatch):
    """The shards of a run that are not done yet."""

    def __init__(
        self,
        settings: Settings,
        executor: Executor,
        run: RunFolder,
        plan: Mapping[str, Any],
        pause: float,
        listeners: Sequence[Callback],
        scaling: Mapping[str, str],
    ) -> None:
        self._settings, self._run, self._pause, self._listeners = settings, run, pause, listeners
        self._parts = [tuple(part) for part in plan["parts"]]
        self._fronts = {i: front for i in range(len(self._parts)) if (front := self._stored(i)) is not None}
        self._left = [i for i in range(len(self._parts)) if i not in self._fronts]
        self._running: set[int] = set()
        self.signals = Stopping()
        self.failure: Exception | None = None
        self._stopped_by_callback = False
        self._overview = Overview(settings, self._parts)
        for i, front in self._fronts.items():
            self._overview.known(i, front)
        self._token = uuid.uuid4().hex
        self._began = self._saved = self._ticked = time.monotonic()
        self._before, self._epoch, self._begun_again = self._earlier(), 0, 0
        planned = replace(settings, strategy=plan["strategy"], workers=plan["workers"])
        super().__init__(
            train_shard,
            [self._name(i) for i in self._left],
            [ShardJob(self._parts[i], self._path(i).absolute(), self._token) for i in self._left],
            make_shard_config(planned, executor, pause),
            settings.device.type,
            config_parts(settings),
        )
        if self._left:
            write_text(run.path / SHARDS / SHARED_FS_PROBE, self._token)
            run.log(
                "start" if not self._fronts else "resume",
                shards=len(self._parts),
                left=len(self._left),
                **settings.legend(),
                **scaling,
            )

    @property
    def folder(self) -> Path:
        """The folder of the run."""
        return self._run.path

    # Hooks of the executor.

    def fetch(self, i: int) -> Any:
        return take_files(self._path(self._left[i]))

    def on_message(self, i: int, message: Any) -> None:
        if isinstance(message, dict):
            put_files(self._path(self._left[i]), message)
        else:
            self._overview.on_message(self._left[i], message)

    def on_start(self, i: int, where: Mapping[str, Any]) -> None:
        self._running.add(self._left[i])
        self._run.log("shard", name=self.names[i], state="running", **where)

    def on_lost(self, i: int, why: str) -> Any:
        self._running.discard(self._left[i])
        self._begun_again += 1
        self._run.log("shard", name=self.names[i], state="lost", why=why)
        path = RunFolder(self._path(self._left[i])).checkpoint_path
        return path.lstat().st_mtime_ns if exists(path) else None

    def poll(self) -> None:
        now = time.monotonic()
        if self._epoch < self._overview.epoch() < self._settings.epochs:
            self._report()
        if now - self._ticked >= _TICK_SECONDS and self._overview.share() > 0:
            self._ticked = now
            self._ask(lambda: tick(self._listeners, self._overview.share(), self._elapsed()))

    # The ends of shards, and the front of those that ended.

    def ended(self, i: int, messages: Sequence[str]) -> None:
        """Handle the end of a shard, complete or stopped early; ``messages`` are its warnings."""
        number = self._left[i]
        front = Front.load(self._path(number), self._settings.problem)
        self._running.discard(number)
        self._fronts[number] = front
        self._run.log("shard", name=self.names[i], state="finished" if front.complete else "stopped")
        for text in messages:
            if not text.startswith((_STOPPED, UNITS_WARNING)):  # warned of once for all shards, before training
                warnings.warn(text, stacklevel=5)
        if not front.complete:
            self.stop()
        self.poll()
        if time.monotonic() - self._saved >= self._pause and len(self._fronts) < len(self._parts):
            self.keep(complete=False)

    def keep(self, *, complete: bool) -> Front | None:
        """Store the front of the shards so far; None if there are none."""
        known = [self._fronts[i] for i in sorted(self._fronts)]
        if not known:
            return None
        front = merge_fronts(
            known, self._settings, complete=complete, seconds=self._elapsed(), ended=self._ended(complete)
        )
        self._run.save_front(front)
        self._saved = time.monotonic()
        return front

    def front(self) -> Front:
        """The front of the run, or of its shards so far."""
        missing = len(self._parts) - len(self._fronts)
        complete = not missing and all(front.complete for front in self._fronts.values())
        if complete and not self._left:
            front = self._run.load_front(self._settings.problem)
            if front is not None and front.complete:
                return front
        stored = self.keep(complete=complete)
        if stored is None:
            raise KeyboardInterrupt  # stopped before any shard had a front
        if complete and self._left:
            self._report()
        (self._run.path / SHARDS / SHARED_FS_PROBE).unlink(missing_ok=True)
        self._run.log("end" if complete else "stopped", seconds=round(self._elapsed(), 3), ended=stored.ended)
        if not complete and not self._stopped_by_callback and self.failure is None:
            done = sum(front.complete for front in self._fronts.values())
            stopped = f"{_STOPPED} after {done} of {len(self._parts)} shards"
            warnings.warn(f"{stopped}: front.complete is False, and resume=True goes on.", stacklevel=5)
        return stored

    @property
    def stopping(self) -> bool:
        """Whether all shards are asked to store a checkpoint and end: after a signal, or when one was stopped."""
        return super().stopping or self.signals.asked

    # Parts.

    def _name(self, i: int) -> str:
        return f"{i:03d}"

    def _path(self, i: int) -> Path:
        path = self._run.path / SHARDS / self._name(i)
        check_folder_kind(path)
        return path

    def _stored(self, i: int) -> Front | None:
        """The front of a shard that is done."""
        front = RunFolder(self._path(i)).load_front(self._settings.problem)
        done = front is not None and front.complete and len(front.history["losses"]) >= self._settings.epochs
        return front if done else None

    def _earlier(self) -> float:
        """The seconds that earlier runs took, as far as they are stored."""
        front = self._run.load_front(self._settings.problem)
        return 0.0 if front is None else front.seconds

    def _elapsed(self) -> float:
        return self._before + time.monotonic() - self._began

    def _report(self) -> None:
        self._epoch = self._overview.epoch()
        done, running = len(self._fronts), len(self._running)
        note = f"shards: {done} done, {running} running, {len(self._parts) - done - running} waiting"
        note += f", {self._begun_again} begun again" if self._begun_again else ""
        report: Report = self._overview.report(self._elapsed(), note)
        self._run.log("epoch", **report.numbers())
        if self._ask(lambda: notify(self._listeners, report)):
            self._stopped_by_callback = True
            self.stop()

    def _ask(self, call: Callable[[], bool | None]) -> bool | None:
        """Call listeners; if one fails, let all shards store a checkpoint and end before the error is raised."""
        if self.failure is not None:
            return None
        try:
            return call()
        except Exception as error:
            self.failure = error
            self.stop()
            return None

    def _ended(self, complete: bool) -> str:
        """Why the run ended, in words."""
        if complete:
            return planned_end(self._settings, self._settings.epochs, 0) or ""
        why = FAILED if self.failure is not None else CALLBACK if self._stopped_by_callback else INTERRUPTED
        done = sum(front.complete for front in self._fronts.values())
        return f"{why}, after {done} of {len(self._parts)} shards"
