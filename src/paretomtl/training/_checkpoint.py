"""Checkpoints of a run: what is stored, when, and how a run is taken up again, for longer perhaps."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import nn

from paretomtl._support.random_state import random_state, set_random_state
from paretomtl.engine.data.batches import Batches
from paretomtl.engine.history import EpochHistory
from paretomtl.engine.plan import ExecutionPlan
from paretomtl.engine.processes import ProcessGroup
from paretomtl.engine.step import Group
from paretomtl.front import Front
from paretomtl.runs.checkpoint_file import explain_mismatch
from paretomtl.runs.folder import RunFolder
from paretomtl.training import _extend as extend
from paretomtl.training._execution import Execution
from paretomtl.training._stopping import planned_end
from paretomtl.training.fingerprint import differing_start, measure_start
from paretomtl.training.preflight.loss_units import FirstLosses, scale_in_words, settles_scale
from paretomtl.training.results.best_so_far import BestSoFar
from paretomtl.training.results.snapshot import Snapshot
from paretomtl.training.settings import Settings


class Resumable:
    """The part of a run that its folder knows: all that :class:`Course` needs to go on from a checkpoint.

    Attributes:
        epoch: how many epochs are done.
        step: how many steps of the current epoch are done.
        number: how many steps are done in all.
        total: how many steps are planned; 0 when that is not known.
        finished: the front of a run that was complete already.
    """

    epoch: int
    step: int
    number: int
    total: int
    finished: Front | None
    _settings: Settings
    _ranks: ProcessGroup
    _folder: RunFolder | None
    _pause: float
    _splits: dict[str, Batches]
    _train: Batches
    _models: Execution
    _untrained: nn.Module | None
    _trace: EpochHistory
    _stages: list[Snapshot]
    _best: BestSoFar | None
    _counted: int
    _seconds: float
    _began: float
    _saved: float
    _stored_epoch: int
    _first_losses: FirstLosses

    @property
    def groups(self) -> list[Group]:
        """The models, in groups that step together."""
        return self._models.groups

    @property
    def choice(self) -> ExecutionPlan:
        """How the models are trained."""
        return self._models.choice

    @property
    def _path(self) -> Path | None:
        return None if self._folder is None else self._folder.path

    def scaling(self) -> dict[str, str]:
        """For a log: what ``scale="auto"`` did; nothing for other scales."""
        settled = settles_scale(self._settings.method)
        return {"scaling": scale_in_words(self._first_losses[0])} if settled else {}

    def config(self, settings: Settings) -> dict[str, Any]:
        """What must be the same for a run of these settings to be resumed."""
        assert self._untrained is not None
        return settings.config(self._untrained, self.groups[0], self._splits, self._steps_of(settings.epochs))

    def start(self, config: Mapping[str, Any]) -> dict[str, Any] | None:
        """What the first model gives before it is trained; None where the data differ from draw to draw."""
        assert self._untrained is not None
        return measure_start(self._settings.problem, self._untrained, self._train, config)

    def _planned_end(self) -> str | None:
        improved = 0 if self._best is None else self._best.improved()
        return planned_end(self._settings, self.epoch, max(improved, self._counted))

    def _open(self, folder: RunFolder, stored: dict[str, Any] | None, config: dict[str, Any]) -> None:
        """Start the folder of a new run, or take up the one in it."""
        if stored is None:
            state = self._state()
            self._ranks.broadcast(lambda: self._begin(folder, state, config))
            return
        settings, longer = self._settings, extend.asks_for_more(stored, self._settings)
        before = {**self.config(extend.stored_plan(stored, settings)), "start": config["start"]} if longer else config
        folder.check(stored, before, differing_start(stored.get("start"), config["start"], settings.precision))
        front = None if self._ranks.is_distributed else folder.load_front(settings.problem)
        if front is not None and front.complete and not longer:
            self.finished = front
            return
        found = self._ranks.broadcast(folder.load_checkpoint)
        if found is not None:
            with explain_mismatch(folder.checkpoint_path):
                self._load(found, planned=settings.plan)
        self._counted = extend.counted_from(stored)
        if longer and self._planned_end() is not None and self.epoch < settings.epochs:
            self._counted = self.epoch  # patience ended the run, which is asked to go on
        if longer:
            again = extend.longer_config(stored, config, settings, self._counted)
            self._ranks.broadcast(lambda: folder.extend(again, settings.problem))
        if self._folder is not None:
            folder.log("resume", epoch=self.epoch, step=self.number, epochs=settings.epochs, **settings.legend())

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
        if self._folder is None and not self._ranks.is_distributed:
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
            "epochs": self._settings.epochs,
            "seconds": self._elapsed(),
            **self._models.stored(),
            "trace": self._trace.state(),
            "stages": [vars(stage) for stage in self._stages],
            "best": None if self._best is None else self._best.state(),
            "random": mine,
            "others": others,  # random states of other processes
        }

    def _load(self, state: dict[str, Any], planned: int) -> None:
        """Go back to a checkpoint; ``planned`` are the epochs of one that does not say for how many it was written."""
        settings = self._settings
        self.epoch, self.step, self.number = state["epoch"], state["step"], state["number"]
        self._stored_epoch = self.epoch
        self._seconds = state["seconds"]
        self._models.load(state)
        self._follow_plan(state.get("epochs", planned))
        self._trace.load(state["trace"])
        self._stages = [Snapshot(**stage) for stage in state["stages"]]
        if self._best is not None:
            self._best.load(state["best"], settings.device, self.epoch)
        states = [state["random"], *state.get("others", [])]
        if self._ranks.rank < len(states):  # a run may be taken up by more processes
            set_random_state(states[self._ranks.rank])

    def _follow_plan(self, planned: int) -> None:
        """Plan the schedule for the epochs at hand, where it was planned for others and that makes a difference."""
        settings, module = self._settings, self._untrained
        assert module is not None
        if not extend.plan_differs(settings, module, planned, self._train.steps):
            return
        times = self.number if settings.schedule == "step" else self.epoch
        for group in self.groups:
            extend.plan_again(group, settings.scheduler_for(self.total), times)
        if self._ranks.is_main:
            warnings.warn(
                f"the schedule was planned for {planned} epochs, and goes on as planned for {settings.epochs}: the "
                "learning rates so far are not those of a run that was begun for so many.",
                stacklevel=7,
            )

    def _steps_of(self, epochs: int) -> int:
        """How many steps so many epochs have; 0 where that is not known."""
        return 0 if self._train.steps is None else self._train.steps * epochs

    def _elapsed(self) -> float:
        return self._seconds + time.monotonic() - self._began
