"""Batches of a split: the interface that the engine uses."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any


class Batches(ABC):
    """One split in batches.

    Attributes:
        steps: how many batches an epoch has; None if that is not known before the end.
        samples: how many samples there are; None when that is not known.
        resumes_inside: whether an epoch can be resumed in its middle.
        in_micro_batches: whether each batch of an epoch comes in micro-batches.
        keeps_workers: whether processes that live longer than an epoch read the samples.
    """

    steps: int | None
    samples: int | None = None
    resumes_inside: bool = True
    in_micro_batches: bool = False
    keeps_workers: bool = False

    def count_steps(self, epochs: int) -> int:
        """How many steps these epochs have; 0 where that is not known."""
        return 0 if self.steps is None else self.steps * epochs

    @abstractmethod
    def epoch(self, seed: int, epoch: int, start: int = 0) -> Iterator[Any]:
        """The batches of a training epoch, from number ``start`` on."""

    @abstractmethod
    def in_order(self, models: int = 1, *, shared: bool = False) -> Iterator[Any]:
        """All samples once, to evaluate ``models`` models at a time; ``shared`` splits them among all processes."""

    @abstractmethod
    def probe(self) -> Any:
        """A small batch that identifies the data; None without data, or if this process has only some of them."""


class OneBatch(Batches):
    """An epoch of one step; without a batch, for a problem without data."""

    steps = 1

    def __init__(self, batch: Any = None) -> None:
        self._batch = batch

    def epoch(self, seed: int, epoch: int, start: int = 0) -> Iterator[Any]:
        yield from [self._batch][start:]

    def in_order(self, models: int = 1, *, shared: bool = False) -> Iterator[Any]:
        yield self._batch

    def probe(self) -> Any:
        return self._batch
