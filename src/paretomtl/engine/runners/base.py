"""Runner: takes the steps of all groups of a run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor

from paretomtl.engine.batches.base import Batches
from paretomtl.engine.history import EpochHistory
from paretomtl.engine.measure import matches_majority
from paretomtl.engine.model_group import Group, split_by_group
from paretomtl.engine.runners.threads import ThreadPool
from paretomtl.engine.step import StepRecord, train_groups

T = TypeVar("T")


class Runner(ABC):
    """Takes the steps of all groups, and adds their losses and weights to the history.

    Args:
        groups: the models.
        train: the batches.
        history: adds up losses and weights.
        total: how many steps are planned; 0 when that is not known.
        every: how often the method is asked for new weights, in steps.
        workers: how many groups step side by side.
    """

    def __init__(
        self, groups: Sequence[Group], train: Batches, history: EpochHistory, total: int, every: int, workers: int = 1
    ) -> None:
        self.groups = groups
        self.train = train
        self.history = history
        self.total = total
        self.every = every
        self._threads = ThreadPool(workers)

    @abstractmethod
    def epoch(self, seed: int, epoch: int, start: int, number: int) -> Iterator[Any]:
        """The items of an epoch for :meth:`step`, from its step ``start`` on, when ``number`` steps are done in all."""

    @abstractmethod
    def step(self, item: Any, number: int) -> None:
        """Advance all groups by one step."""

    def finish(self, batch: Any, number: int, done: Sequence[StepRecord]) -> None:
        """Launch a step that the first models have taken already, with the groups of the others."""
        self.run_step(batch, number, weigh=number % self.every == 0, done=done)

    def run_step(
        self,
        batch: Any,
        number: int | Tensor,
        *,
        weigh: bool,
        labelled: bool | None = None,
        done: Sequence[StepRecord] = (),
    ) -> None:
        """One step of all groups on a batch, launched here and now; ``done`` is that of the first models, if any."""
        options = {"number": number, "total": self.total, "weigh": weigh, "labelled": labelled}
        records = [*done, *self._step_all(self.groups[_count_models(done) :], batch, options)]
        self.history.add(records)
        if batch is not None and len(self.groups) > 1:
            self._freeze_broken(torch.cat([part.counts for part in records]))

    def close(self) -> None:
        """End the threads that step groups side by side."""
        self._threads.close()

    @property
    def done(self) -> list[StepRecord]:
        """Records of the groups before the one that failed in a step."""
        return self._threads.records

    def _step_all(self, groups: Sequence[Group], batch: Any, options: dict[str, Any]) -> list[StepRecord]:
        """Records of one step of these groups, in their order."""
        if groups and groups[0].method.coupled:
            return train_groups(groups, batch, **options, run=self._run)
        return self._threads.step(groups, batch, **options)

    def _run(self, function: Callable[[int], T], count: int) -> list[T]:
        """The results of a function of each group, by its place."""
        return self._threads.map(function, count)

    def _freeze_broken(self, counts: Tensor) -> None:
        """Freeze models that have NaN in a task in which other active models have none: such a task has labels."""
        healthy = matches_majority(counts, torch.cat([group.active for group in self.groups]))
        for group, own in zip(self.groups, split_by_group(healthy, self.groups), strict=True):
            group.freeze(own, last_step=True)


def _count_models(records: Sequence[StepRecord]) -> int:
    """The number of models in some records."""
    return sum(len(part.losses) for part in records)
