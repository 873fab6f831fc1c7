"""Samples that can be read by number, in an order that (seed, epoch) decides.

Samples are shuffled on the device that holds them, so a GPU draws another order than a CPU from the same seed. To
compare devices, train on one batch of all samples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from paretomtl._support.random_state import order_seed
from paretomtl.engine.batches.base import Batches
from paretomtl.engine.batches.partition import BatchPartition, MicroBatches
from paretomtl.engine.batches.structure import map_tensors

_PROBED = 16  # samples that identify a Dataset
_EVALUATED = 1 << 16  # samples of all models at once on a GPU, and 16 batches at most


class IndexedBatches(Batches):
    """Samples that can be read by number: a random order for each epoch, by (seed, epoch) and the kind of device."""

    def __init__(
        self,
        samples: int,
        batch_size: int,
        device: torch.device,
        fetch: Callable[[Tensor], Any],
        partition: BatchPartition,
    ) -> None:
        self.samples = samples
        self._partition = partition
        self.in_micro_batches = not partition.whole
        self._device = device  # of the order: that of the samples, so that no step waits for a copy of it
        self._size = batch_size
        self._fetch = fetch
        # A last batch of one sample is left out of training: batch normalisation cannot take it.
        self.steps = max(1, -(-(samples - 1) // batch_size)) if batch_size > 1 else samples

    def epoch(self, seed: int, epoch: int, start: int = 0) -> Iterator[Any]:
        assert self.samples is not None
        assert self.steps is not None
        order = self._shuffled(seed, epoch)
        for number in range(start, self.steps):
            numbers = order[number * self._size : (number + 1) * self._size]
            if not self.in_micro_batches:
                yield self._fetch(numbers)
                continue
            parts, count = self._partition.split(numbers, self._size)
            yield MicroBatches(tuple(self._fetch(part) for part in parts), tuple(len(part) * count for part in parts))

    def in_order(self, models: int = 1, *, shared: bool = False) -> Iterator[Any]:
        numbers = torch.arange(self.samples or 0, device=self._device)
        if shared:
            numbers = numbers.tensor_split(self._partition.processes.size)[self._partition.processes.rank]
        size = self._size
        if self._device.type != "cpu":  # no activations are kept, so more samples fit
            size *= max(1, min(16, _EVALUATED // (size * models)))
        for start in range(0, len(numbers), size):
            yield self._fetch(numbers[start : start + size])

    def probe(self) -> Any:
        assert self.samples is not None
        count = min(self.samples, _PROBED)
        return self._fetch(torch.arange(count, device=self._device) * self.samples // count)

    def _shuffled(self, seed: int, epoch: int) -> Tensor:
        generator = torch.Generator(self._device).manual_seed(order_seed(seed, epoch))
        return torch.randperm(self.samples or 0, generator=generator, device=self._device)


class ResidentBatches(IndexedBatches):
    """Tensors that lie entirely on the device.

    Args:
        tensors: a tensor, or a tuple, list or dictionary of them.
        samples: how many there are.
        batch_size: of an epoch.
        device: where they are.
        partition: how batches are split; by default they are not.
    """

    def __init__(
        self, tensors: Any, samples: int, batch_size: int, device: torch.device, partition: BatchPartition | None = None
    ) -> None:
        super().__init__(samples, batch_size, device, self._at, partition or BatchPartition())
        self._tensors = tensors
        self.batch_size = batch_size
        self.order = torch.arange(samples, device=device)
        self._places = torch.arange(min(batch_size, samples), device=device)

    def whole(self) -> Any:
        """All of the tensors, in their original order."""
        return self._tensors

    def shuffle(self, seed: int, epoch: int) -> None:
        """Shuffle :attr:`order` for an epoch, in place."""
        self.order.copy_(self._shuffled(seed, epoch))

    def sizes(self) -> list[int]:
        """The size of each batch of an epoch."""
        assert self.samples is not None
        assert self.steps is not None
        return [min(self.batch_size, self.samples - step * self.batch_size) for step in range(self.steps)]

    def part(self, begin: Tensor, size: int) -> Any:
        """The batch of ``size`` samples from position ``begin`` of the order on; the device is not waited for."""
        return self._at(self.order.index_select(0, begin + self._places[:size]))

    def labelled(self) -> bool:
        """Whether every sample seems to have labels: no tensor but the inputs has NaN, negative or False entries."""
        parts = tensors_of(self._tensors)
        if isinstance(self._tensors, (tuple, list)):
            parts = parts[1:]
        return not any(bool(_may_be_missing(part).any()) for part in parts)

    def with_shuffled_inputs(self) -> IndexedBatches | None:
        """The same samples, each with the inputs of another; None if inputs are not the first of several tensors."""
        assert self.samples is not None
        if not isinstance(self._tensors, (tuple, list)) or len(self._tensors) < 2:
            return None
        inputs, *targets = self._tensors
        order = torch.randperm(self.samples, generator=torch.Generator().manual_seed(0)).to(inputs.device)

        def fetch(numbers: Tensor) -> Any:
            return (inputs.index_select(0, order[numbers]), *(part.index_select(0, numbers) for part in targets))

        return IndexedBatches(self.samples, self.batch_size, self._device, fetch, self._partition)

    def _at(self, numbers: Tensor) -> Any:
        return map_tensors(lambda tensor: tensor.index_select(0, numbers), self._tensors)


def _may_be_missing(labels: Tensor) -> Tensor:
    """Where labels seem to be missing: NaN, a negative class, or False in a mask."""
    if labels.dtype == torch.bool:
        return ~labels
    return labels.isnan() if labels.is_floating_point() or labels.is_complex() else labels < 0


def tensors_of(data: Any) -> list[Tensor]:
    """The tensors of a split that was given as tensors; none for anything else."""
    if isinstance(data, Tensor):
        return [data]
    parts: Sequence[Any] = ()
    if isinstance(data, Mapping):
        parts = list(data.values())
    elif isinstance(data, (tuple, list)):
        parts = data
    return list(parts) if parts and all(isinstance(part, Tensor) for part in parts) else []
