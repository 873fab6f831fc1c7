"""Batches of a user's DataLoader."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils.data import DistributedSampler

from paretomtl._support.random_state import order_seed, rank_seed, seed_everything
from paretomtl.engine.batches.base import Batches
from paretomtl.engine.batches.partition import BatchPartition, MicroBatches, first_part
from paretomtl.engine.batches.rereading import warn_if_short, why_empty
from paretomtl.engine.batches.structure import count_samples


class LoaderBatches(Batches):
    """A user's DataLoader. It starts each epoch from a random state that (seed, epoch) decides.

    A step takes as many of its batches as there are micro-batches. If several processes share a run, the loader of
    each yields the share of that process, and an epoch ends with the shortest.
    """

    resumes_inside = False

    def __init__(self, name: str, loader: Any, move: Callable[[Any], Any], partition: BatchPartition) -> None:
        self._name = name
        self._loader = loader
        self._seen = 0  # batches of the longest pass so far
        self._warned_short = False
        self._move = move
        self._partition = partition
        self.keeps_workers = bool(getattr(loader, "persistent_workers", False))
        try:
            self.steps = -(-len(loader) // partition.accumulate)
        except (TypeError, NotImplementedError):
            self.steps = None

    def epoch(self, seed: int, epoch: int, start: int = 0) -> Iterator[Any]:
        if start:
            raise ValueError("a DataLoader starts at the beginning of an epoch, not inside of it.")
        seed_everything(order_seed(seed, epoch))
        outer = getattr(self._loader, "sampler", None)
        inner = getattr(getattr(self._loader, "batch_sampler", None), "sampler", None)
        for holder in (self._loader, outer, inner):
            generator = getattr(holder, "generator", None)
            if isinstance(generator, torch.Generator):
                generator.manual_seed(order_seed(seed, epoch))
        for holder in (outer, inner):
            if isinstance(holder, DistributedSampler):
                holder.set_epoch(epoch)
        yield from self.in_order() if self._partition.whole else self._micro_batches(seed, epoch)

    def _micro_batches(self, seed: int, epoch: int) -> Iterator[MicroBatches]:
        processes, source = self._partition.processes, self.in_order()
        parts = tuple(itertools.islice(source, self._partition.accumulate))
        if processes.is_distributed:  # the order is drawn by now; dropout must differ
            seed_everything(rank_seed(order_seed(seed, epoch), processes.rank))
        while not processes.any(not parts)[0]:
            yield MicroBatches(parts, tuple(count_samples(part) for part in parts))
            parts = tuple(itertools.islice(source, self._partition.accumulate))

    def in_order(self, models: int = 1, *, shared: bool = False) -> Iterator[Any]:
        number = 0
        for number, batch in enumerate(self._loader, 1):
            self._seen = max(self._seen, number)
            yield self._move(batch)
        if not number:
            raise ValueError(why_empty(self._name, self._loader, self._seen))
        self._warned_short = self._warned_short or warn_if_short(self._name, self._loader, number)

    def probe(self) -> Any:
        return None if self._partition.processes.is_distributed else first_part(next(self.epoch(0, 0), None))
