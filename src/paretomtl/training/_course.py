"""The course of a run: where it stands, what it remembers, and how it is stored and taken up again."""

from __future__ import annotations

import copy
import itertools
import time
import warnings
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any, Self

import torch
from torch import nn

from paretomtl._random import (
    model_seed,
    random_state,
    rank_seed,
    seed_everything,
    set_random_state,
)
from paretomtl._version import made_by
from paretomtl.front import Front
from paretomtl.training._batches import Batches, first_part, make_batches
from paretomtl.training._checks import check_problem, first_batch
from paretomtl.training._evaluate import Scores
from paretomtl.training._execution import Execution
from paretomtl.training._findings import FEWEST_STEPS, find, in_one, results
from paretomtl.training._first_losses import measure_first_losses, scale_in_words, settles_scale, warn_of_units
from paretomtl.training._identity import differing_start, measure_start
from paretomtl.training._models import make_modules, named_tensors
from paretomtl.training._outcome import Best, Stage, by_group, front_of
from paretomtl.training._progress import Callback, close, tell
from paretomtl.training._remarks import remarks, stopped_early
from paretomtl.training._reports import make_report
from paretomtl.training._run import CONFIG, RunFolder, taking_up
from paretomtl.training._settings import Settings
from paretomtl.training._signals import Stopping
from paretomtl.training._step import Group
from paretomtl.training._stopped import note_run_kept
from paretomtl.training._strategies import Choice
from paretomtl.training._trace import Trace

_REPORT_SECONDS = 0.5  # between reports of a problem without data, whose epochs are single steps
_TICK_SECONDS = 1.0  # between signs of life inside of an epoch
_NOTHING = object()


class Course:
    """A run from its start, or from its last checkpoint, to its fronts.

    Attributes:
        epoch: how many epochs are done.
        step: how many steps of the current epoch are done.
        number: how many steps are done in all.
        total: how many steps are planned; 0 when that is not known.
        stopping: whether the user wants to stop after the current step, in any process.
        finished: the front of a run that was complete already.
    """

    def __init__(
        self, settings: Settings, folder: RunFolder | None, resume: bool, pause: float, listeners: list[Callback]
    ) -> None:
        made_by()  # before anybody changes the source of a long run
        self._settings = settings
        self._ranks = settings.shares.ranks
        self._folder = folder if self._ranks.leads else None
        self._pause = pause
        self._listeners = listeners
        problem = settings.problem
        stored = None if folder is None else self._ranks.from_first(lambda: folder.open(resume=resume))
        self._splits = {name: self._make_batches(name) for name in ("train", "val", "test") if self._has(name)}
        self._train = self._splits["train"]
        seeds = [model_seed(seed, k) for seed in settings.seeds for k in settings.subproblems]
        modules = make_modules(problem, seeds, settings.device, settings.dtype)
        self._ranks.follow_first([tensor.detach() for module in modules for tensor in named_tensors(module).values()])
        source = iter(self._train.epoch(settings.seeds[0], 0))
        first = first_batch("train", source)
        self._stacked = check_problem(settings, modules, self._splits, first_part(first))
        self._first_losses = measure_first_losses(settings, modules, itertools.chain([first], source))
        del source  # processes of a DataLoader end
        warn_of_units(settings, self._first_losses)

        self.total = 0 if self._train.steps is None else self._train.steps * settings.epochs
        self.epoch = self.step = self.number = 0
        self._stored_epoch = 0
        self._stop = Stopping()
        self.stopping = False
        self.finished: Front | None = None
        taken = None
        if folder is not None and stored is not None and "taken" in stored:
            with taking_up(folder.path / CONFIG):
                taken = Choice.of(stored["taken"])
        self._untrained: nn.Module | None = copy.deepcopy(modules[0])
        self._trace = Trace(len(modules), len(problem.tasks), settings.device)
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
        self._stages: list[Stage] = []
        self._best = Best(self.groups) if settings.keep == "best" else None
        self._seconds = 0.0
        self._began = self._saved = self._reported = self._ticked = time.monotonic()
        self._whole = True
        self._count = len(modules)
        apart = self._ranks.rank if problem.train is not None else 0  # without data, all do the same
        seed_everything(rank_seed(settings.seeds[0], apart))
        if folder is not None or self._ranks.several:
            config = self.config(settings)
            self._ranks.check_same(config)
            if folder is not None:
                self._open(folder, stored, {**config, "start": self._ranks.from_first(lambda: self.start(config))})

    @property
    def groups(self) -> list[Group]:
        """The models, in groups that step together."""
        return self._models.groups

    @property
    def choice(self) -> Choice:
        """How the models are trained."""
        return self._models.choice

    def config(self, settings: Settings) -> dict[str, Any]:
        """What must be the same for a run of these settings to be resumed."""
        assert self._untrained is not None
        return settings.config(self._untrained, self.groups[0], self._splits, self.total)

    def start(self, config: Mapping[str, Any]) -> dict[str, Any] | None:
        """What the first model gives before it is trained; None where the data differ from draw to draw."""
        assert self._untrained is not None
        return measure_start(self._settings.problem, self._untrained, self._train, config)

    def scaling(self) -> dict[str, str]:
        """For a log: what ``scale="auto"`` did; nothing for other scales."""
        settled = settles_scale(self._settings.method)
        return {"scaling": scale_in_words(self._first_losses[0])} if settled else {}

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
        if self.number in self._settings.method.snapshots(self.total):
            self._stages.append(self._stage([self.epoch] * self._count))
        self._tell_fallback(self._models.step(batch, self.epoch, self.step, self.number))
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
            for listener in self._listeners:
                if hasattr(listener, "tick"):
                    listener.tick(self.number / self.total, self._elapsed())

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
        self._ranks.from_first(lambda: self._report(scores))
        at_its_end = not self._train.resumes_inside and self._folder is not None
        if self._ranks.any(at_its_end or self._due())[0]:
            self._save()

    def fronts(self) -> list[Front]:
        """The result: of the whole run, or of what there is of it."""
        settings = self._settings
        complete = self.epoch == settings.epochs
        self._save()
        self._whole = False  # from here on the models may be those of another epoch
        epochs = [self.epoch] * self._count
        if self._best is not None:
            self._best.give_back(self.groups)
            epochs = self._best.epochs(self.epoch)
        stages = [*self._stages, self._stage(epochs)]
        said = self._warn(stages[-1])
        how, seconds = str(self._models), self._elapsed()
        how += f"; {self._ranks.size} processes" if self._ranks.several else ""
        fronts = [
            front_of(settings, i, stages, self._trace, how, seconds, complete, remarks)
            for i, remarks in enumerate(said)
        ]
        if self._folder is not None:
            self._folder.save_front(fronts[0])
            self._folder.log("end" if complete else "stopped", epoch=self.epoch, seconds=round(self._elapsed(), 3))
        return fronts

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
            alone = not self._ranks.several  # others may be elsewhere, and would wait for each other
            if error is not None and alone and self._whole and (self._train.resumes_inside or self.step == 0):
                self._save()
            if error is not None:
                where = None if self._folder is None else self._folder.path
                note_run_kept(error, self._settings, self.epoch, self._stored_epoch, where)
        finally:
            close(self._listeners)

    # Checkpoints.

    def _open(self, folder: RunFolder, stored: dict[str, Any] | None, config: dict[str, Any]) -> None:
        """Start the folder of a new run, or take up the one in it."""
        if stored is None:
            state = self._state()
            self._ranks.from_first(lambda: self._begin(folder, state, config))
            return
        folder.check(stored, config, differing_start(stored.get("start"), config["start"], self._settings.precision))
        front = None if self._ranks.several else folder.load_front(self._settings.problem)
        if front is not None and front.complete:
            self.finished = front
            return
        found = self._ranks.from_first(folder.load_checkpoint)
        if found is not None:
            with taking_up(folder.checkpoint_path):
                self._load(found)
        if self._folder is not None:
            folder.log("resume", epoch=self.epoch, step=self.number, **self._settings.legend())

    def _begin(self, folder: RunFolder, state: dict[str, Any], config: dict[str, Any]) -> None:
        try:
            folder.save_checkpoint(state)
            folder.begin({**config, "taken": vars(self.choice)})
        except OSError as error:
            raise ValueError(f"'out' must have room for a run. {error}.") from None
        folder.log("start", **self._settings.legend(), **vars(self.choice), **self.scaling())

    def _due(self) -> bool:
        return self._folder is not None and time.monotonic() - self._saved >= self._pause

    def _save(self) -> None:
        """Store a checkpoint; where that fails, say so and go on: the last one is still there."""
        if self.step and not self._train.resumes_inside:
            return
        if self._folder is None and not self._ranks.several:
            return
        try:
            state = self._state()
            if self._folder is not None:
                self._folder.save_checkpoint(state)
                self._stored_epoch = self.epoch
        except (OSError, RuntimeError) as error:  # a full disk, or a device that is gone
            first = (str(error).splitlines() or [""])[0]
            warnings.warn(f"no checkpoint could be stored: {first}. The last one is still there.", stacklevel=2)
        self._saved = time.monotonic()

    def _state(self) -> dict[str, Any]:
        mine, *others = self._ranks.gather(random_state())
        return {
            "epoch": self.epoch,
            "step": self.step,
            "number": self.number,
            "seconds": self._elapsed(),
            **self._models.stored(),
            "trace": self._trace.state(),
            "stages": [vars(stage) for stage in self._stages],
            "best": None if self._best is None else self._best.state(),
            "random": mine,
            "others": others,  # random states of other processes
        }

    def _load(self, state: dict[str, Any]) -> None:
        self.epoch, self.step, self.number = state["epoch"], state["step"], state["number"]
        self._stored_epoch = self.epoch
        self._seconds = state["seconds"]
        self._models.load(state)
        self._trace.load(state["trace"])
        self._stages = [Stage(**stage) for stage in state["stages"]]
        if self._best is not None:
            self._best.load(state["best"], self._settings.device, self.epoch)
        states = [state["random"], *state.get("others", [])]
        if self._ranks.rank < len(states):  # a run may be taken up by more processes
            set_random_state(states[self._ranks.rank])

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

    def _warn(self, stage: Stage) -> list[list[str]]:
        """Say what the caller should not overlook; return it for the front of each seed."""
        settings = self._settings
        labelled = self._trace.labelled().tolist()
        history = self._trace.part(slice(None), torch.float64)
        said = remarks(stage, settings, history, labelled, kept_apart=self._stacked)
        sound = self.epoch == settings.epochs and self.number >= FEWEST_STEPS
        found = [find(result) if sound else [] for result in results(stage, settings, self._models.untrained)]
        where = None if self._folder is None else self._folder.path
        told = [*said, *in_one(found[0] if len(found) == 1 else []), *stopped_early(settings, self.epoch, where)]
        for text in told if self._ranks.leads else []:
            warnings.warn(text, stacklevel=5)
        return [[*said, *lines] for lines in found]

    def _stage(self, epochs: list[int]) -> Stage:
        """The models as they are now; one that is not finite on the training split goes back to its last step."""
        scores = {split: self._evaluate(split) for split in self._splits}
        losses = scores["train"].losses
        unlabelled = ~self._trace.labelled() & (self._settings.problem.train is not None)
        sound = (losses.isfinite() | unlabelled).all(-1).to(self._settings.device)
        if not bool(sound.all()):
            for group, mine in zip(self.groups, by_group(sound, self.groups), strict=True):
                group.take_out(mine, last_step=False)
            scores = {split: self._evaluate(split) for split in self._splits}
        return Stage.of(self._settings.method, self.groups, scores, epochs)

    def _report(self, scores: Scores | None) -> None:
        """Tell the listeners and the log; for a problem without data not at every step."""
        if not self._listeners and self._folder is None:
            return
        last = self.epoch == self._settings.epochs
        if self._settings.problem.train is None and not last and time.monotonic() - self._reported < _REPORT_SECONDS:
            return
        self._reported = time.monotonic()
        report = make_report(self._settings, self.groups, self._trace, scores, self.epoch, self.number, self._elapsed())
        if self._folder is not None:
            self._folder.log("epoch", **report.numbers())
        tell(self._listeners, report)

    def _elapsed(self) -> float:
        return self._seconds + time.monotonic() - self._began
