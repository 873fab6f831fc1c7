"""The state of a run: counters, models and their history; everything that a checkpoint stores.

It is the same in every process of a run, so one checkpoint is enough; only random states differ. The history holds
means over the steps of each epoch, not every step, so it stays small enough for a checkpoint.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from typing import Any

from torch import nn

from paretomtl._support.random_state import own_states, random_state, set_own_states, set_random_state
from paretomtl.engine.batches.base import Batches
from paretomtl.engine.history import EpochHistory
from paretomtl.engine.model_group import Group
from paretomtl.training.results.best_so_far import BestSoFar
from paretomtl.training.results.snapshot import Snapshot
from paretomtl.training.run.execution import Execution
from paretomtl.training.run.extend import plan_again, plan_differs
from paretomtl.training.run.stopping import planned_end
from paretomtl.training.settings.settings import Settings


class RunState:
    """The state of a run.

    Args:
        settings: of the run.
        train: the training data.
        models: the models, in groups that step together.
        history: losses and weights by epoch.

    Attributes:
        epoch: how many epochs are done.
        step: how many steps of the current epoch are done.
        number: how many steps are done in all.
        patience_from: the epoch from which the epochs of patience are counted.
        snapshots: the models before the method drops its constraints.
        best: the best epoch of each model so far; None if it is not needed.
    """

    def __init__(self, settings: Settings, train: Batches, models: Execution, history: EpochHistory) -> None:
        self._settings, self._train = settings, train
        self.models, self.history = models, history
        self.epoch = self.step = self.number = self.patience_from = 0
        self.snapshots: list[Snapshot] = []
        self.best = self._begin_best()
        self._earlier_seconds = 0.0
        self._began = time.monotonic() if settings.budget is None else settings.budget.began

    @property
    def groups(self) -> list[Group]:
        """The models, in groups that step together."""
        return self.models.groups

    @property
    def seconds(self) -> float:
        """How long training took so far, including earlier processes."""
        return self._earlier_seconds + time.monotonic() - self._began

    def planned_end(self) -> str | None:
        """Why the run reached a planned end, in words; None while it goes on. Patience begins at the branch."""
        improved = 0 if self.best is None else self.best.improved()
        improved = self.epoch if self.models.branched_at is None else improved
        return planned_end(self._settings, self.epoch, max(improved, self.patience_from))

    def branch(self) -> None:
        """Replace each shared model by K copies, which train on their own from here."""
        self.models.branch(self.number)
        self.best = self._begin_best()

    def stored(self) -> dict[str, Any]:
        """The content of a checkpoint. All processes of the run must call it."""
        states = {**random_state(), "own": own_states(self._settings.sources)}
        own, *others = self._settings.shares.processes.gather(states)
        return {
            "epoch": self.epoch,
            "step": self.step,
            "number": self.number,
            "epochs": self._settings.epochs,
            "seconds": self.seconds,
            **self.models.stored(),
            "trace": self.history.state(),
            "stages": [vars(snapshot) for snapshot in self.snapshots],
            "best": None if self.best is None else self.best.state(),
            "random": own,
            "others": others,  # random states of other processes
        }

    def load(self, stored: Mapping[str, Any], planned: int, untrained: nn.Module) -> None:
        """Restore a checkpoint.

        Args:
            stored: its content.
            planned: the planned epochs, for a checkpoint that does not say them.
            untrained: the first model, by which schedules are compared.
        """
        settings, ranks = self._settings, self._settings.shares.processes
        self.epoch, self.step, self.number = stored["epoch"], stored["step"], stored["number"]
        self._earlier_seconds = stored["seconds"]
        self.models.load(stored)
        self._follow_plan(stored.get("epochs", planned), untrained)
        self.history.load(stored["trace"])
        self.snapshots = [Snapshot(**snapshot) for snapshot in stored["stages"]]
        self.best = self._begin_best()  # the models may have branched
        if self.best is not None:
            self.best.load(stored["best"], settings.device, self.epoch)
        states = [stored["random"], *stored.get("others", [])]
        if ranks.rank < len(states):  # more processes may resume a run
            set_random_state(states[ranks.rank])
            set_own_states(settings.sources, states[ranks.rank].get("own", {}))

    def _begin_best(self) -> BestSoFar | None:
        """The best epochs, none so far; None if they are not needed."""
        keep, patience = self._settings.keep, self._settings.patience
        if keep != "best" and patience is None:
            return None
        return BestSoFar(self.groups, weights=keep == "best", since=self.epoch)

    def _follow_plan(self, planned: int, untrained: nn.Module) -> None:
        """Plan the schedule for the current epochs, if it was planned for others and that makes a difference."""
        settings = self._settings
        if not plan_differs(settings, untrained, planned, self._train.steps):
            return
        times = self.number if settings.schedule == "step" else self.epoch
        for group in self.groups:
            plan_again(group, settings.scheduler_for(self._train.count_steps(settings.epochs)), times)
        if settings.shares.processes.is_main:
            warnings.warn(
                f"the schedule was planned for {planned} epochs, and goes on as planned for {settings.epochs}: the "
                "learning rates so far are not those of a run that was planned for this many from the start.",
                stacklevel=7,
            )
