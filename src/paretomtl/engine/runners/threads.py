"""A pool of threads that steps groups side by side on a CPU."""

from __future__ import annotations

import contextvars
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

import torch

from paretomtl.engine.model_group import Group
from paretomtl.engine.step import StepRecord, train_step


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
        self.records = records = []
        for start in range(0, len(groups), self.count):
            wave = groups[start : start + self.count]
            if self._executor is None or len(wave) == 1:
                records += [train_step(group, batch, **options) for group in wave]
            else:
                records += self._side_by_side(self._executor, wave, batch, options)
        self.records = []  # a captured step must not be outlived by its tensors, or its memory cannot be captured again
        return records

    def close(self) -> None:
        """End the threads, after the steps that they are in."""
        if self._executor is not None:
            self._executor.shutdown()

    def _side_by_side(
        self, executor: ThreadPoolExecutor, wave: Sequence[Group], batch: Any, options: dict[str, Any]
    ) -> list[StepRecord]:
        threads = torch.get_num_threads()
        own = share_of(threads, len(wave))

        def one(group: Group) -> StepRecord:
            torch.set_num_threads(own)  # of this thread, and of those that have not started yet
            return train_step(group, batch, **options)

        steps = [executor.submit(contextvars.copy_context().run, one, group) for group in wave]
        try:
            wait(steps)
        finally:
            torch.set_num_threads(threads)
        return [step.result() for step in steps]


def share_of(threads: int, count: int) -> int:
    """The number of threads for each of ``count`` models."""
    return max(1, threads // count)
