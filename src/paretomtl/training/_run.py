"""The course of a run: where it stands, what it remembers, and how it ends."""

from __future__ import annotations

import contextlib
import copy
import itertools
import time
import warnings
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Self

import torch

from paretomtl._support.random_state import (
    model_seed,
    rank_seed,
    seed_everything,
)
from paretomtl._support.signals import Stopping
from paretomtl._support.version import made_by
from paretomtl.engine.data.batches import Batches, first_part, make_batches
from paretomtl.engine.error_hints import came_from
from paretomtl.engine.evaluate import Scores
from paretomtl.engine.history import EpochHistory
from paretomtl.engine.models.models import make_modules, named_tensors
from paretomtl.engine.plan import ExecutionPlan
from paretomtl.engine.step import split_by_group
from paretomtl.front import Front
from paretomtl.runs.checkpoint_file import explain_mismatch
from paretomtl.runs.folder import CONFIG, RunFolder
from paretomtl.training._checkpoint import Resumable
from paretomtl.training._execution import Execution
from paretomtl.training._extend import follow_first_plan
from paretomtl.training._stopping import CALLBACK, FAILED, INTERRUPTED, attach_fronts, close_all, early_stop
from paretomtl.training.preflight.checks import check_problem, first_batch
from paretomtl.training.preflight.loss_units import measure_first_losses, warn_of_units
from paretomtl.training.progress.callbacks import Callback, notify, tick
from paretomtl.training.progress.reports import make_report
from paretomtl.training.results.best_so_far import BestSoFar
from paretomtl.training.results.final_warnings import final_warnings, stopped_early
from paretomtl.training.results.front import build_front
from paretomtl.training.results.sanity_checks import FEWEST_STEPS, build_results, find_problems, merge_lines
from paretomtl.training.results.snapshot import Snapshot
from paretomtl.training.settings import Settings
from paretomtl.training.stop_notes import note_run_kept

_REPORT_SECONDS = 0.5  # between reports of a problem without data, whose epochs are single steps
_TICK_SECONDS = 1.0  # between signs of life inside of an epoch
_NOTHING = object()


class TrainingRun(Resumable):
    """A run from its start, or from its last checkpoint, to its fronts.

    Attributes:
        ended: why the run is at an end that was asked for, in words; None while it goes on.
        stopping: whether the user wants to stop after the current step, in any process.
    """

    def __init__(
        self, settings: Settings, folder: RunFolder | None, resume: bool, pause: float, listeners: list[Callback]
    ) -> None:
        made_by()  # before anybody changes the source of a long run
        self._ranks = settings.shares.ranks
        self._folder = folder if self._ranks.is_main else None
        self._pause = pause
        self._listeners = listeners
        problem = settings.problem
        stored = None if folder is None else self._ranks.broadcast(lambda: folder.open(resume=resume))
        settings = self._settings = follow_first_plan(stored, settings, None if folder is None else folder.path)
        self._splits = {name: self._make_batches(name) for name in ("train", "val", "test") if self._has(name)}
        self._train = self._splits["train"]
        seeds = [model_seed(seed, k) for seed in settings.seeds for k in settings.subproblems]
        modules = make_modules(problem, seeds, settings.device, settings.dtype)
        if settings.start is not None:
            settings.start.load(modules, settings.subproblems)
        self._ranks.broadcast_tensors(
            [tensor.detach() for module in modules for tensor in named_tensors(module).values()]
        )
        source = iter(self._train.epoch(settings.seeds[0], 0))
        first = first_batch("train", source)
        self._stacked = check_problem(settings, modules, self._splits, first_part(first))
        self._first_losses = measure_first_losses(settings, modules, itertools.chain([first], source))
        del source  # processes of a DataLoader end
        warn_of_units(settings, self._first_losses)

        self.total, self._planned = self._steps_of(settings.epochs), self._steps_of(settings.plan)
        self.epoch = self.step = self.number = self._counted = 0
        self._stored_epoch = 0
        self._stop = Stopping()
        self.stopping, self._why = False, INTERRUPTED
        self._made: list[Front] = []
        self.finished = None
        taken = None
        if folder is not None and stored is not None and "taken" in stored:
            with explain_mismatch(folder.path / CONFIG):
                taken = ExecutionPlan.of(stored["taken"])
        self._untrained = copy.deepcopy(modules[0])
        reference = None if settings.start is None else settings.start.reference
        self._trace = EpochHistory(len(modules), len(problem.tasks), settings.device, reference)
        self._models = Execution(
            settings,
            modules,
            self._splits,
            first,
            taken,
            self.total,
            self._trace,
            first_losses=self._first_losses,
            resumed=stored is not None,
        )
        self._stages = []
        judged = settings.keep == "best" or settings.patience is not None
        self._best = BestSoFar(self.groups, weights=settings.keep == "best") if judged else None
        self._seconds = 0.0
        self._began = self._saved = self._reported = self._ticked = time.monotonic()
        self._whole = True
        self._count = len(modules)
        apart = self._ranks.rank if problem.train is not None else 0  # without data, all do the same
        seed_everything(rank_seed(settings.seeds[0], apart))
        if folder is not None or self._ranks.is_distributed:
            config = self.config(settings)
            self._ranks.check_same(config)
            if folder is not None:
                self._open(folder, stored, {**config, "start": self._ranks.broadcast(lambda: self.start(config))})
        self.ended = self._ranks.broadcast(self._planned_end)

    # The loop's view: batches, and what happens around a step and an epoch.

    def batches(self, epoch: int) -> Iterator[Any]:
        """What is left of an epoch. Until a step is done, there is nothing whole that could be stored."""
        self._untrained = None  # training has better use for its memory
        source = self._models.epoch(epoch, self.step, self.number)
        while True:
            self._whole = False
            batch = next(source, _NOTHING)
            if batch is _NOTHING:
                self._whole = True
                return
            yield batch

    def take_step(self, batch: Any) -> None:
        """One step of all models; keep them first where the method is about to drop its constraints."""
        if self.number in self._settings.method.snapshots(self._planned):
            self._stages.append(self._stage([self.epoch] * self._count))
        with came_from(f"step {self.step + 1} of epoch {self.epoch + 1}", batch):
            failed = self._models.step(batch, self.epoch, self.step, self.number)
        self._tell_fallback(failed)
        self._trace.count()
        if self._settings.schedule == "step":
            self._models.step_schedulers()
        self.step += 1
        self.number += 1
        self._whole = True
        self.stopping, due = self._ranks.any(self._stop.asked, self._due())
        if self._train.resumes_inside and due:
            self._save()
        if self._listeners and self.total and time.monotonic() - self._ticked >= _TICK_SECONDS:
            self._ticked = time.monotonic()
            with self._kept_where_a_listener_fails(in_all=False):
                tick(self._listeners, self.number / self.total, self._elapsed())

    def after_epoch(self) -> None:
        """Evaluate on validation, keep the best, report, and store a checkpoint if it is time."""
        self._whole = False
        self._trace.end_epoch()
        self.epoch += 1
        self.step = 0
        if self._settings.schedule == "epoch":
            self._models.step_schedulers()
        scores = None
        if "val" in self._splits:
            scores = self._evaluate("val")
            self._trace.add_validation(scores.losses)
            if self._best is not None:
                self._best.consider(self.epoch, scores, self.groups, self._settings, self._trace.validation())
        self._whole = True
        self.ended = self._ranks.broadcast(self._planned_end)
        with self._kept_where_a_listener_fails():
            if self._ranks.broadcast(lambda: self._report(scores)):
                self.stopping, self._why = True, CALLBACK
        at_its_end = not self._train.resumes_inside and self._folder is not None
        if self._ranks.any(at_its_end or self._due())[0]:
            self._save()

    def fronts(self) -> list[Front]:
        """The result: of the whole run, or of what there is of it."""
        settings = self._settings
        complete, ended = self.ended is not None, self.ended or early_stop(self._why, settings, self.epoch)
        self._save()
        self._whole = False  # from here on the models may be those of another epoch
        epochs = [self.epoch] * self._count
        if self._best is not None and settings.keep == "best":
            self._best.give_back(self.groups)
            epochs = self._best.epochs(self.epoch)
        stages = [*self._stages, self._stage(epochs)]
        warned, said = self._remarks(stages[-1])
        how, seconds = str(self._models), self._elapsed()
        how += f"; {self._ranks.size} processes" if self._ranks.is_distributed else ""
        self._made = [
            build_front(settings, i, stages, self._trace, how, seconds, complete, ended, remarks)
            for i, remarks in enumerate(said)
        ]
        if self._folder is not None:
            self._folder.save_front(self._made[0])
            took = round(self._elapsed(), 3)
            self._folder.log("end" if complete else "stopped", epoch=self.epoch, seconds=took, ended=ended)
        for text in warned if self._ranks.is_main else []:  # last: a filter may turn a warning into an error
            warnings.warn(text, stacklevel=4)
        return self._made

    # Stopping cleanly.

    def __enter__(self) -> Self:
        self._stop.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.__exit__()
        self._models.close()
        try:
            alone = not self._ranks.is_distributed  # others may be elsewhere, and would wait for each other
            if error is not None and alone and self._whole and (self._train.resumes_inside or self.step == 0):
                self._save()
            if error is not None:
                if self._made and not hasattr(error, "front" if len(self._made) == 1 else "fronts"):
                    attach_fronts(error, self._made, self._path)
                if not self._made or self._path is not None:
                    note_run_kept(error, self._settings, self.epoch, self._stored_epoch, self._path)
        finally:
            made = self._made or ([] if self.finished is None else [self.finished])
            close_all(self._listeners, error, made, self._path)

    @contextlib.contextmanager
    def _kept_where_a_listener_fails(self, *, in_all: bool = True) -> Iterator[None]:
        """An error of a listener ends the run, after what was trained is stored; where all processes know of it."""
        try:
            yield
        except Exception as error:
            self._why = FAILED
            try:
                if in_all or not self._ranks.is_distributed:
                    self.fronts()
            except Exception as another:
                error.add_note(f"No front could be made of what was trained: {another!r}.")
            attach_fronts(error, self._made, self._path)
            raise

    # Pieces.

    def _has(self, split: str) -> bool:
        return split == "train" or getattr(self._settings.problem, split) is not None

    def _make_batches(self, split: str) -> Batches:
        settings = self._settings
        return make_batches(
            split,
            getattr(settings.problem, split),
            batch_size=settings.batch_size,
            device=settings.device,
            dtype=settings.dtype,
            shares=settings.shares,
        )

    def _evaluate(self, split: str) -> Scores:
        scores, failed = self._models.evaluate(split, self.number)
        self._tell_fallback(failed)
        return scores

    def _tell_fallback(self, failed: str) -> None:
        """Say what a stack could not do, if anything, once its models have done it one after another."""
        fallback = self._models.fallback
        if not failed or fallback is None:
            return
        if self._folder is not None:
            self._folder.log("fallback", epoch=self.epoch, step=self.number, what=failed, reason=fallback.reason)
        fallback.warn(failed)

    def _remarks(self, stage: Snapshot) -> tuple[list[str], list[list[str]]]:
        """What the caller should not overlook: to be warned of, and for the front of each seed."""
        settings = self._settings
        labelled = self._trace.labelled().tolist()
        history = self._trace.part(slice(None), torch.float64)
        said = final_warnings(stage, settings, history, labelled, kept_apart=self._stacked)
        sound = self.ended is not None and self.number >= FEWEST_STEPS
        found = [
            find_problems(result) if sound else [] for result in build_results(stage, settings, self._models.untrained)
        ]
        stopped = []
        if self.ended is None and self._why == INTERRUPTED:
            stopped = stopped_early(settings, self.epoch, self._path)
        told = [*said, *merge_lines(found[0] if len(found) == 1 else []), *stopped]
        return told, [[*said, *lines] for lines in found]

    def _stage(self, epochs: list[int]) -> Snapshot:
        """The models as they are now; one that is not finite on the training split goes back to its last step."""
        scores = {split: self._evaluate(split) for split in self._splits}
        losses = scores["train"].losses
        unlabelled = ~self._trace.labelled() & (self._settings.problem.train is not None)
        sound = (losses.isfinite() | unlabelled).all(-1).to(self._settings.device)
        if not bool(sound.all()):
            for group, mine in zip(self.groups, split_by_group(sound, self.groups), strict=True):
                group.freeze(mine, last_step=False)
            scores = {split: self._evaluate(split) for split in self._splits}
        return Snapshot.of(self._settings.method, self.groups, scores, epochs)

    def _report(self, scores: Scores | None) -> bool:
        """Tell the listeners and the log; for a problem without data not at every step. Whether a listener stops it."""
        if not self._listeners and self._folder is None:
            return False
        last = self.ended is not None
        if self._settings.problem.train is None and not last and time.monotonic() - self._reported < _REPORT_SECONDS:
            return False
        self._reported = time.monotonic()
        report = make_report(self._settings, self.groups, self._trace, scores, self.epoch, self.number, self._elapsed())
        if self._folder is not None:
            self._folder.log("epoch", **report.numbers())
        return notify(self._listeners, report)
