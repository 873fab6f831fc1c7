"""A run from its first step, or the one after its last checkpoint, to its fronts.

Each process of a run takes the whole step, so that optimizers, states of methods and checkpoints are the same in all of
them. The error of a callback is raised unchanged, with the front as an attribute: a warning and a returned front would
let a pruned trial count as one that succeeded.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import torch

from paretomtl._support.signals import Stopping
from paretomtl._support.splits import ranking_split
from paretomtl.engine.autotune.trial import describe_error
from paretomtl.engine.batches.base import Batches
from paretomtl.engine.error_hints import add_notes
from paretomtl.engine.evaluate import Scores
from paretomtl.engine.model_group import split_by_group
from paretomtl.engine.strategy import ExecutionPlan
from paretomtl.front import Front
from paretomtl.methods import Linear
from paretomtl.training.results.final_warnings import final_warnings, stopped_early
from paretomtl.training.results.front import Outcome, build_front
from paretomtl.training.results.sanity_checks import FEWEST_STEPS, build_results, find_problems, merge_lines
from paretomtl.training.results.snapshot import Snapshot
from paretomtl.training.run.checkpoint import Checkpoints
from paretomtl.training.run.milestones import Milestones
from paretomtl.training.run.reporting import Reporting
from paretomtl.training.run.state import RunState
from paretomtl.training.run.stopping import (
    CALLBACK,
    FAILED,
    INTERRUPTED,
    INVALID,
    UNSTORED,
    attach_fronts,
    close_all,
    early_stop,
    note_run_kept,
    out_of_time,
)
from paretomtl.training.settings.fingerprint import identify_data
from paretomtl.training.settings.identity import RunIdentity
from paretomtl.training.settings.settings import Settings
from paretomtl.training.untrained import warned_before

_NOTHING = object()


class TrainingRun:
    """A run, as the loop sees it.

    Args:
        settings: of the run.
        splits: the data.
        state: of the run, from its start or its last checkpoint.
        checkpoints: stores them.
        reporting: to listeners and the log.
        identity: of the run.
        milestones: where the models branch, and where the method changes.
        separate_graphs: whether the tasks have separate graphs.
        finished: the front of a run that was already complete.

    Attributes:
        total: how many steps are planned; 0 if unknown.
        splits: the names of the splits.
        steps: those of an epoch; None if unknown.
        identity: of the run, until training begins: it holds an untrained model.
        finished: as above.
        ended: why the run reached a planned end, in words; None while it goes on.
        stopping: whether the user wants to stop after the current step, in any process.
    """

    def __init__(
        self,
        settings: Settings,
        splits: Mapping[str, Batches],
        state: RunState,
        checkpoints: Checkpoints,
        reporting: Reporting,
        identity: RunIdentity,
        milestones: Milestones,
        *,
        separate_graphs: bool,
        finished: Front | None,
    ) -> None:
        self._settings, self._splits, self._state, self._models = settings, splits, state, state.models
        self._checkpoints, self._reporting, self._folder = checkpoints, reporting, checkpoints.folder
        self.identity: RunIdentity | None = identity
        self.finished = finished
        self._separate_graphs = separate_graphs
        self._processes, self._train = settings.shares.processes, splits["train"]
        self.total = self._train.count_steps(settings.epochs)
        self.splits, self.steps = list(splits), self._train.steps
        self._milestones = milestones
        self._count = len(settings.seeds) * len(settings.subproblems)
        self._stop = Stopping()
        self.stopping, self._why = False, INTERRUPTED
        self._whole = True
        self._fronts: list[Front] = []
        self._stored: Path | None = None
        self._unmeasured: list[str] = []
        self.ended = self._processes.broadcast(state.planned_end)

    @property
    def choice(self) -> ExecutionPlan:
        """How the models are trained."""
        return self._models.choice

    @property
    def _path(self) -> Path | None:
        return None if self._folder is None else self._folder.path

    # The loop's view: batches, and what happens around a step and an epoch.

    def batches(self) -> Iterator[Any]:
        """The remaining batches of the current epoch. No checkpoint can be stored until a step is done."""
        state = self._state
        self.identity = None  # free the memory of its model
        source = self._models.epoch(state.epoch, state.step, state.number)
        while True:
            self._whole = False
            batch = next(source, _NOTHING)
            if batch is _NOTHING:
                self._whole = True
                return
            yield batch

    def take_step(self, batch: Any) -> None:
        """Take one step of all models, after a milestone that lies before it."""
        state, milestones = self._state, self._milestones
        place = state.number, state.epoch, state.step
        if milestones.branch is not None and milestones.branch.is_before(*place):
            self._branch()
        if milestones.probe_end is not None and milestones.probe_end.is_before(*place):
            self._settle()
        if state.number in milestones.snapshots:
            state.snapshots.append(self._snapshot([state.epoch] * self._count))
        try:
            failed = self._models.step(batch, state.epoch, state.step, state.number)
        except Exception as error:
            add_notes(error, f"step {state.step + 1} of epoch {state.epoch + 1}", batch)
            raise
        if failed:
            self._warn_of_fallback(failed)
        state.history.count()
        if self._settings.schedule == "step":
            self._models.step_schedulers()
        state.step += 1
        state.number += 1
        self._whole = True
        due = self._folder is not None and self._checkpoints.due()
        self.stopping, due, late = self._processes.any(self._stop.asked, due, self._is_late())
        if self._train.resumes_inside and due:
            self._save()
        if late:
            self.ended = out_of_time(self._settings, state.epoch)
        elif self.total and self._reporting.listeners and self._reporting.tick_due():
            with self._kept_on_failure(FAILED, in_all=False):
                self._reporting.tick(state.number / self.total)

    def after_epoch(self) -> None:
        """Evaluate on validation, keep the best, report, and store a checkpoint if one is due."""
        state = self._state
        self._whole = False
        state.history.end_epoch()
        state.epoch += 1
        state.step = 0
        self._models.check_frozen()
        if self._settings.schedule == "epoch":
            self._models.step_schedulers()
        scores = None
        if "val" in self._splits:
            with self._kept_on_failure(INVALID, in_all=False):
                scores = self.evaluate("val")
            state.history.add_validation(scores.losses)
            if state.best is not None and self._models.branched_at is not None:
                state.best.consider(state.epoch, scores, state.groups, self._settings, state.history.validation())
        self._whole = True
        self.ended = self._processes.broadcast(state.planned_end)
        with self._kept_on_failure(FAILED):
            if self._processes.broadcast(lambda: self._reporting.report(scores, last=self.ended is not None)):
                self.stopping, self._why = True, CALLBACK
        due = self._folder is not None and (not self._train.resumes_inside or self._checkpoints.due())
        if self._processes.any(due)[0]:
            self._save()

    def fronts(self) -> list[Front]:
        """The front of each seed, complete or not. What fails from here on costs no model."""
        settings, state = self._settings, self._state
        if self._whole:
            self._save()
        self._whole = False  # from here on the models may be those of another epoch
        if self._models.branched_at is None:  # the run stopped before its branch
            state.branch()
        epochs = [state.epoch] * self._count
        if state.best is not None and settings.keep == "best":
            state.best.give_back(state.groups)
            epochs = state.best.epochs(state.epoch)
        for group in state.groups:
            group.release()
        final = None
        try:
            final = self._snapshot(epochs)
            known = {} if self._processes.is_distributed else identify_data(settings.problem)  # a loader has a part
            final = replace(final, probes=self._models.probe({split: batch for split, (_, batch) in known.items()}))
            texts, remarks = self._remarks(final)
        except BaseException as error:  # such as a second signal
            if final is None:  # not by the method of the run, which may have failed
                unknown = dict.fromkeys(self._splits, self._unknown)
                final = Snapshot.of(Linear(), self._models.groups, unknown, epochs)
            lines = [*self._unmeasured, f"the models are not measured and checked: {type(error).__name__}: {error}"]
            self._keep(final, {}, [lines] * len(settings.seeds), complete=False)
            raise
        data = {split: checksum for split, (checksum, _) in known.items()}
        self._keep(final, data, remarks, complete=self.ended is not None)
        is_told = self._processes.is_main and self._why in (CALLBACK, INTERRUPTED)  # otherwise an error is to be seen
        for text in texts if is_told else []:  # last: a filter may turn a warning into an error
            warnings.warn(text, stacklevel=4)
        return self._fronts

    def _keep(
        self, final: Snapshot, data: Mapping[str, str], remarks: Sequence[Sequence[str]], *, complete: bool
    ) -> None:
        """Make the front of each seed, and store it."""
        settings, state = self._settings, self._state
        ended = self.ended or early_stop(self._why, settings, state.epoch)
        strategy = str(self._models)
        strategy += f"; {self._processes.size} processes" if self._processes.is_distributed else ""
        shared = self._models.branched_at if settings.branch is not None else None
        snapshots = [*state.snapshots, final]
        outcome = Outcome(snapshots, state.history, strategy, state.seconds, complete, ended, shared, data)
        self._fronts = [build_front(settings, i, outcome, lines) for i, lines in enumerate(remarks)]
        if self._folder is not None:
            self._stored = self._folder.save_front(self._fronts[0])
        self._reporting.end(ended, complete=complete)

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
            alone = not self._processes.is_distributed  # others may be elsewhere, and would wait for each other
            if error is not None and alone and self._whole and (self._train.resumes_inside or self._state.step == 0):
                self._checkpoints.save()
            if error is not None:
                attach_fronts(error, self._fronts, self._stored)
                if not self._fronts or self._path is not None:
                    note_run_kept(error, self._settings, self._state.epoch, self._checkpoints.epoch, self._path)
        finally:
            fronts = self._fronts or ([] if self.finished is None else [self.finished])
            close_all(self._reporting.listeners, error, fronts, self._stored or self._path)

    @contextlib.contextmanager
    def _kept_on_failure(self, why: str, *, in_all: bool = True) -> Iterator[None]:
        """Let an error between two steps end the run, but store the models first, if all processes know of it."""
        try:
            yield
        except Exception as error:
            self._why = why
            try:
                if in_all or not self._processes.is_distributed:
                    self.fronts()
            except Exception as another:
                left = "is not measured" if self._fronts else "could not be made"
                error.add_note(f"The front of the models so far {left}: {another!r}.")
            raise

    # Parts.

    def _save(self) -> None:
        """Store a checkpoint; a filter may turn its warning into an error."""
        with self._kept_on_failure(UNSTORED, in_all=False):
            self._checkpoints.save()

    def _branch(self) -> None:
        """End the shared start: each model goes on as a copy of the shared one."""
        state = self._state
        state.branch()
        self._models.reopen_epoch(state.epoch, state.step, state.number)
        self._reporting.branched()

    def _settle(self) -> None:
        """End the probe: the method settles what each model is asked for. Earlier epochs no longer count as best."""
        state = self._state
        decisions = self._models.settle()
        if state.best is not None:
            state.best.forget(state.epoch)
        self._reporting.settled(decisions)

    def _is_late(self) -> bool:
        budget = self._settings.budget
        return budget is not None and self._state.seconds >= budget.seconds

    def evaluate(self, split: str) -> Scores:
        """The scores of all models on a split."""
        scores, failed = self._models.evaluate(split, self._state.number)
        if failed:
            self._warn_of_fallback(failed)
        return scores

    def _measure(self, split: str) -> Scores:
        """The scores on a split; NaN where its data or the user's code fail, which must not cost the models."""
        try:
            return self.evaluate(split)
        except Exception as error:
            if self._processes.is_distributed:  # others may not fail, and would wait for this process
                raise
            cause = " ".join([f"{describe_error(error)}.", *getattr(error, "__notes__", [])])
            text = f"losses on '{split}' could not be measured, and are NaN: {cause}"
            self._unmeasured = list(dict.fromkeys([*self._unmeasured, text]))
            return self._unknown

    @cached_property
    def _unknown(self) -> Scores:
        """Scores that could not be measured."""
        problem = self._settings.problem
        losses = torch.full((self._count, len(problem.tasks)), torch.nan, dtype=self._settings.dtype)
        return Scores(losses, {name: torch.full((self._count,), torch.nan).double() for name in problem.metrics})

    def _warn_of_fallback(self, failed: str) -> None:
        """Warn of a failed stack, once its models have done the work one after another."""
        fallback = self._models.fallback
        assert fallback is not None
        self._reporting.fallback(failed, fallback.reason)
        fallback.warn(failed)

    def _remarks(self, final: Snapshot) -> tuple[list[str], list[list[str]]]:
        """Remarks on the result: those to warn of, and those of the front of each seed."""
        settings, state = self._settings, self._state
        labelled = state.history.labelled().tolist()
        history = state.history.part(slice(None), torch.float64)
        texts = [*self._unmeasured]
        texts += final_warnings(final, settings, history, labelled, kept_apart=self._separate_graphs)
        long_enough = self.ended is not None and state.number >= FEWEST_STEPS
        shuffled = self._models.evaluate_shuffled() if long_enough else None
        problems = [
            find_problems(result) if long_enough else []
            for result in build_results(final, settings, self._models.untrained, shuffled)
        ]
        stopped = []
        if self.ended is None and self._why == INTERRUPTED:
            stopped = stopped_early(settings, state.epoch, self._path)
        before = warned_before(settings, ranking_split(list(self._splits)), self._models.untrained)
        warned = [
            *(text for text in texts if text != before),
            *merge_lines(problems[0] if len(problems) == 1 else []),
            *stopped,
        ]
        return warned, [[*texts, *lines] for lines in problems]

    def _snapshot(self, epochs: list[int]) -> Snapshot:
        """The models as they are now; one that is not finite on the training split goes back to its last step."""
        scores = {split: self._measure(split) for split in self._splits}
        losses = scores["train"].losses
        unlabelled = ~self._state.history.labelled() & (self._settings.problem.train is not None)
        unlabelled = unlabelled | (scores["train"] is self._unknown)
        finite = (losses.isfinite() | unlabelled).all(-1).to(self._settings.device)
        groups = self._models.groups
        if not bool(finite.all()):
            for group, rows in zip(groups, split_by_group(finite, groups), strict=True):
                group.freeze(rows, last_step=False)
            scores = {split: self._measure(split) for split in self._splits}
        return Snapshot.of(self._settings.method, self._models.groups, scores, epochs)
