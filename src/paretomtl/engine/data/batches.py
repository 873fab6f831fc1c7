"""From tensors, Datasets and DataLoaders to batches on the device, in an order that (seed, epoch) decides there."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, DistributedSampler, IterableDataset

from paretomtl._support.checks import describe_value
from paretomtl._support.random_state import order_seed, rank_seed, seed_everything
from paretomtl.engine.data.batch import (
    Batches,
    BatchPartition,
    ChangedBatchError,
    MicroBatches,
    NoData,
    count_samples,
    first_part,
    map_samples,
    map_tensors,
    samples_by_task,
    unchanged,
)
from paretomtl.engine.data.passes import warn_if_short, why_empty
from paretomtl.engine.data.samples import read_batch
from paretomtl.engine.data.task_batches import TaskBatches
from paretomtl.problems import Data, PerTask

__all__ = [
    "BatchPartition",
    "Batches",
    "ChangedBatchError",
    "MicroBatches",
    "NoData",
    "Resident",
    "count_samples",
    "first_part",
    "make_batches",
    "map_samples",
    "map_tensors",
    "samples_by_task",
    "unchanged",
]

_PROBED = 16  # samples of a Dataset by which it is recognised
_EVALUATED = 1 << 16  # samples of all models at once on a GPU, and 16 batches at most


class _Indexed(Batches):
    """Samples that can be had by number: a random order for each epoch, by (seed, epoch) and the kind of device."""

    def __init__(
        self,
        samples: int,
        batch_size: int,
        device: torch.device,
        fetch: Callable[[Tensor], Any],
        shares: BatchPartition,
    ) -> None:
        self.samples = samples
        self._shares = shares
        self.cut = not shares.whole
        self._device = device  # where the order is: beside the samples, so that no step waits for a copy of it
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
            if self._shares.whole:
                yield self._fetch(numbers)
                continue
            parts, count = self._shares.of(numbers, self._size)
            yield MicroBatches(tuple(self._fetch(part) for part in parts), tuple(len(part) * count for part in parts))

    def in_order(self, models: int = 1, *, shared: bool = False) -> Iterator[Any]:
        numbers = torch.arange(self.samples or 0, device=self._device)
        if shared:
            numbers = numbers.tensor_split(self._shares.ranks.size)[self._shares.ranks.rank]
        size = self._size
        if self._device.type != "cpu":  # nothing is kept for a backward pass: there is room for more at once
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


class Resident(_Indexed):
    """Tensors that lie on the device as a whole.

    Args:
        tensors: a tensor, or a tuple, list or dictionary of them.
        samples: how many there are.
        batch_size: of an epoch.
        device: where they are.
        shares: how batches are cut; not at all when left out.
    """

    def __init__(
        self, tensors: Any, samples: int, batch_size: int, device: torch.device, shares: BatchPartition | None = None
    ) -> None:
        super().__init__(samples, batch_size, device, self._at, shares or BatchPartition())
        self._tensors = tensors
        self.batch_size = batch_size
        self.order = torch.arange(samples, device=device)
        self._places = torch.arange(min(batch_size, samples), device=device)

    def whole(self) -> Any:
        """All of the tensors, in the order in which they were given."""
        return self._tensors

    def shuffle(self, seed: int, epoch: int) -> None:
        """Put :attr:`order` in the order of an epoch."""
        self.order.copy_(self._shuffled(seed, epoch))

    def sizes(self) -> list[int]:
        """The size of each batch of an epoch."""
        assert self.samples is not None
        assert self.steps is not None
        return [min(self.batch_size, self.samples - step * self.batch_size) for step in range(self.steps)]

    def part(self, begin: Tensor, size: int) -> Any:
        """The batch of so many samples from place ``begin`` of the order on; nothing waits to know the place."""
        return self._at(self.order.index_select(0, begin + self._places[:size]))

    def labelled(self) -> bool:
        """Whether every sample seems to have its labels: nothing but the inputs has NaN, negative or False entries."""
        parts = _tensors_of(self._tensors)
        if isinstance(self._tensors, (tuple, list)):
            parts = parts[1:]
        return not any(bool(_may_be_missing(part).any()) for part in parts)

    def _at(self, numbers: Tensor) -> Any:
        return map_tensors(lambda tensor: tensor.index_select(0, numbers), self._tensors)


class _Loaded(Batches):
    """A DataLoader of the user's own. It starts each epoch from a random state that (seed, epoch) decides.

    A step takes as many of its batches as there are micro-batches. Where several processes share a run, the loader of
    each hands out the share of that process; an epoch ends with the shortest.
    """

    resumes_inside = False

    def __init__(self, name: str, loader: Any, move: Callable[[Any], Any], shares: BatchPartition) -> None:
        self._name = name
        self._loader = loader
        self._seen = 0  # batches of the longest pass so far
        self._said_short = False
        self._move = move
        self._shares = shares
        try:
            self.steps = -(-len(loader) // shares.accumulate)
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
        yield from self.in_order() if self._shares.whole else self._cut(seed, epoch)

    def _cut(self, seed: int, epoch: int) -> Iterator[MicroBatches]:
        ranks, source = self._shares.ranks, self.in_order()
        parts = tuple(itertools.islice(source, self._shares.accumulate))
        if ranks.is_distributed:  # the order is drawn by now; dropout is to differ
            seed_everything(rank_seed(order_seed(seed, epoch), ranks.rank))
        while not ranks.any(not parts)[0]:
            yield MicroBatches(parts, tuple(count_samples(part) for part in parts))
            parts = tuple(itertools.islice(source, self._shares.accumulate))

    def in_order(self, models: int = 1, *, shared: bool = False) -> Iterator[Any]:
        number = 0
        for number, batch in enumerate(self._loader, 1):
            self._seen = max(self._seen, number)
            yield self._move(batch)
        if not number:
            raise ValueError(why_empty(self._name, self._loader, self._seen))
        self._said_short = self._said_short or warn_if_short(self._name, self._loader, number)

    def probe(self) -> Any:
        return None if self._shares.ranks.is_distributed else first_part(next(self.epoch(0, 0), None))


def make_batches(
    name: str,
    data: Data | None,
    *,
    batch_size: int,
    device: torch.device,
    dtype: torch.dtype,
    shares: BatchPartition | None = None,
) -> Batches:
    """Batches of a split; floating-point tensors are cast to ``dtype``, like the models."""
    shares = shares or BatchPartition()

    def move(tensor: Tensor) -> Tensor:
        return tensor.to(device=device, dtype=dtype if tensor.is_floating_point() else None, non_blocking=True)

    def moved(batch: Any) -> Any:
        return map_tensors(move, batch)

    if data is None:
        return NoData()
    if isinstance(data, PerTask):
        if shares.ranks.is_distributed:
            raise ValueError(f"'{name}' must be one data set where several processes share a run. Got one a task.")
        parts = {
            task: make_batches(
                f"{name}[{task!r}]", part, batch_size=batch_size, device=device, dtype=dtype, shares=shares
            )
            for task, part in data.data.items()
        }
        return TaskBatches(name, parts, data.mode)
    if isinstance(data, DataLoader):
        return _Loaded(name, data, moved, shares)
    if isinstance(data, IterableDataset):
        return _Loaded(name, DataLoader(data, batch_size=batch_size), moved, shares)
    tensors = _tensors_of(data)
    if tensors:
        if any(tensor.layout != torch.strided for tensor in tensors):
            raise TypeError(f"'{name}' must be dense tensors, for samples by number. Got sparse ones: call to_dense().")
        sizes = {len(tensor) if tensor.ndim else 0 for tensor in tensors}
        if len(sizes) > 1 or 0 in sizes:
            raise ValueError(_rows_differ(name, data, tensors))
        return Resident(moved(data), sizes.pop(), batch_size, device, shares)
    if isinstance(data, Dataset) or is_map_style(data):
        dataset: Any = data
        if not hasattr(dataset, "__len__"):
            raise TypeError(
                f"'{name}' must be a Dataset with a length, or iterable. Got {type(data).__name__}: add __len__."
            )
        if len(dataset) == 0:
            raise ValueError(f"'{name}' must not be empty. Got a {type(data).__name__} of length 0.")
        return _Indexed(
            len(dataset),
            batch_size,
            torch.device("cpu"),
            lambda part: moved(read_batch(name, dataset, part.tolist())),
            shares,
        )
    if isinstance(data, Iterable) and not isinstance(data, (tuple, list, Mapping)):
        return _Loaded(name, data, moved, shares)
    raise TypeError(f"'{name}' must be tensors, a Dataset or a DataLoader. Got {describe_value(data)} instead.")


def _rows_differ(name: str, data: Any, tensors: Sequence[Tensor]) -> str:
    """What is wrong with tensors that have no rows, or not as many each."""
    labels = list(data) if isinstance(data, Mapping) else None
    shapes: Any = [list(tensor.shape) for tensor in tensors]
    counts = [shape[0] if shape else 0 for shape in shapes]
    if 0 in counts:
        remedy = "There are no rows in it: look at the filter or the split that made it"
    else:
        named = [f"{count} in {label!r}" for label, count in zip(labels or range(len(counts)), counts, strict=True)]
        if labels is None and len(counts) == 2:
            named = [f"{counts[0]} inputs", f"{counts[1]} targets"]
        remedy = f"These are {', '.join(named)}: row i of each is one sample, so leave out the same rows of all"
    shown = shapes if labels is None else dict(zip(labels, shapes, strict=True))
    return f"'{name}' must be tensors with the same first dimension, not empty. Got {shown} instead. {remedy}."


def is_map_style(data: Any) -> bool:
    """Whether an object hands out samples by number without being a Dataset of torch, as those of Hugging Face do."""
    by_number = hasattr(data, "__getitem__") and hasattr(data, "__len__")
    return by_number and not isinstance(data, (tuple, list, Mapping, Tensor))


def _may_be_missing(labels: Tensor) -> Tensor:
    """Where labels look like none: NaN, a negative class, or False in a mask."""
    if labels.dtype == torch.bool:
        return ~labels
    return labels.isnan() if labels.is_floating_point() or labels.is_complex() else labels < 0


def _tensors_of(data: Any) -> list[Tensor]:
    """The tensors of a split that was given as tensors; none for anything else."""
    if isinstance(data, Tensor):
        return [data]
    parts: Sequence[Any] = ()
    if isinstance(data, Mapping):
        parts = list(data.values())
    elif isinstance(data, (tuple, list)):
        parts = data
    return list(parts) if parts and all(isinstance(part, Tensor) for part in parts) else []
