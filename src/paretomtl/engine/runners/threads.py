"""A pool of threads that steps groups side by side on a CPU."""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any, TypeVar

import torch

from paretomtl.engine.model_group import Group
from paretomtl.engine.step import StepRecord, train_step

T = TypeVar("T")


class ThreadPool:
    """Steps groups one after another, or ``count`` side by side, each with its share of the threads.

    What a step computes does not depend on its neighbours: with the same number of threads it is the same bit by bit.

    Args:
        count: how many groups step at a time.
    """

    def __init__(self, count: int = 1) -> None:
        self.count = count
        self.records: list[StepRecord] = []
        """Records of the groups before the one that failed in a step; empty after a step that went well."""
        self._executor = ThreadPoolExecutor(count, "paretomtl") if count > 1 else None

    def step(self, groups: Sequence[Group], batch: Any, **options: Any) -> list[StepRecord]:
        """One step of every group, in their order; an error in one of them is raised once its neighbours are done.

        The options are those of :func:`~paretomtl.engine.step.train_step`.
        """
        records: list[StepRecord] = []
        self.records = records
        self._map(lambda k: train_step(groups[k], batch, **options), len(groups), records)
        self.records = []  # a captured step must not be outlived by its tensors, or its memory cannot be captured again
        return records

    def map(self, function: Callable[[int], T], count: int) -> list[T]:
        """The results of a function of 0, 1, ... up to ``count``, so many at a time as the pool has threads."""
        return self._map(function, count, [])

    def _map(self, function: Callable[[int], T], count: int, results: list[T]) -> list[T]:
        for start in range(0, count, self.count):
            wave = range(start, min(start + self.count, count))
            if self._executor is None or len(wave) == 1:
                results.extend(function(k) for k in wave)
            else:
                results += self._side_by_side(self._executor, function, wave)
        return results

    def close(self) -> None:
        """End the threads, after the steps that they are in."""
        if self._executor is not None:
            self._executor.shutdown()

    def _side_by_side(self, executor: ThreadPoolExecutor, function: Callable[[int], T], wave: Sequence[int]) -> list[T]:
        threads = torch.get_num_threads()
        own = share_of(threads, len(wave))

        def one(k: int) -> T:
            torch.set_num_threads(own)  # of this thread, and of those that have not started yet
            return function(k)

        steps = [executor.submit(contextvars.copy_context().run, one, k) for k in wave]
        try:
            wait(steps)
        finally:
            torch.set_num_threads(threads)
        return [step.result() for step in steps]


def share_of(threads: int, count: int) -> int:
    """The number of threads for each of ``count`` models."""
    return max(1, threads // count)
