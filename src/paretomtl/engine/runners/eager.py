"""Steps whose operations are launched one by one: by this thread, or for several groups side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from paretomtl.engine.batches.base import Batches
from paretomtl.engine.history import EpochHistory
from paretomtl.engine.model_group import Group
from paretomtl.engine.runners.threads import ThreadPool
from paretomtl.engine.step import Run, StepInput, StepRecord, run_in_order, train_step


class EagerRunner:
    """Takes the steps of all groups, and adds their losses and weights to the history.

    Args:
        groups: the models.
        train: the batches.
        history: adds up losses and weights.
        total: how many steps are planned; 0 when that is not known.
        every: how often the method is asked for new weights, in steps.
        workers: how many groups step side by side, in threads.

    Attributes:
        done: records of the models that have taken the current step; empty between steps, unless one failed.
    """

    def __init__(
        self,
        groups: Sequence[Group],
        train: Batches,
        history: EpochHistory,
        total: int,
        every: int = 1,
        workers: int = 1,
    ) -> None:
        self.groups = groups
        self.train = train
        self.history = history
        self.total = total
        self.every = every
        self.done: list[StepRecord] = []
        self._threads = ThreadPool(workers) if workers > 1 else None

    def epoch(self, seed: int, epoch: int, start: int, number: int) -> Iterator[Any]:
        """The items of an epoch for :meth:`step`, from its step ``start`` on, when ``number`` steps are done in all."""
        return self.train.epoch(seed, epoch, start)

    def step(self, item: Any, number: int) -> None:
        """Advance all models by one step, after ``number`` of them; those in :attr:`done` have taken it already."""
        self.launch(StepInput(item, number, self.total, number % self.every == 0))

    def launch(self, given: StepInput) -> None:
        """Launch one step of all groups."""
        self.history.add(train_step(self.groups, given, self._run, self.done))
        self.done = []  # tensors that outlive a captured step keep its memory from being captured again

    @property
    def _run(self) -> Run:
        """How a function of each group is called."""
        return run_in_order if self._threads is None else self._threads.map

    def close(self) -> None:
        """End the threads that step groups side by side."""
        if self._threads is not None:
            self._threads.close()
