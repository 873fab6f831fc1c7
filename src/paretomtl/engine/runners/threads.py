"""A thread pool in which groups step side by side on a CPU."""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TypeVar

import torch

T = TypeVar("T")


class ThreadPool:
    """Threads that make ``count`` calls at a time, such as steps of groups, each with its share of torch's threads.

    The result of a step does not depend on its neighbours: with the same number of threads it is the same bit by bit.

    Args:
        count: how many at a time.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self._executor = ThreadPoolExecutor(count, "paretomtl")

    def map(self, function: Callable[[int], T], count: int, results: list[T]) -> list[T]:
        """Add the results of a function of 0, 1, ... up to ``count`` to a list, in this order, and return it.

        An error in one call is raised once its neighbours are done.
        """
        for start in range(0, count, self.count):
            wave = range(start, min(start + self.count, count))
            if len(wave) == 1:
                results.append(function(start))
            else:
                results += self._side_by_side(function, wave)
        return results

    def close(self) -> None:
        """End the threads, after the steps that they are in."""
        self._executor.shutdown()

    def _side_by_side(self, function: Callable[[int], T], wave: Sequence[int]) -> list[T]:
        threads = torch.get_num_threads()
        own = share_of(threads, len(wave))

        def one(k: int) -> T:
            torch.set_num_threads(own)  # of this thread, and of those that have not started yet
            return function(k)

        steps = [self._executor.submit(contextvars.copy_context().run, one, k) for k in wave]
        try:
            wait(steps)
        finally:
            torch.set_num_threads(threads)
        return [step.result() for step in steps]


def share_of(threads: int, count: int) -> int:
    """The number of threads for each of ``count`` models."""
    return max(1, threads // count)
