"""From tensors, Datasets and DataLoaders to batches on the device, in an order that (seed, epoch) decides there."""

from __future__ import annotations

import contextlib
import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, DistributedSampler, IterableDataset, default_collate

from paretomtl._random import order_seed, rank_seed, seed_everything
from paretomtl.problems import Data
from paretomtl.training._ranks import Ranks

_PROBED = 16  # samples of a Dataset by which it is recognised
_EVALUATED = 1 << 16  # samples of all models at once on a GPU, and 16 batches at most


@dataclass(frozen=True)
class Cut:
    """What one process sees of the batch of a step: micro-batches, and how many samples each counts for.

    One that counts for none stands in where a batch has too few samples for all processes.
    """

    parts: tuple[Any, ...]
    samples: tuple[int, ...]


def first_part(batch: Any) -> Any:
    """A batch, or the first micro-batch of one that is cut."""
    return batch.parts[0] if isinstance(batch, Cut) else batch


@dataclass(frozen=True)
class Shares:
    """How the batch of a step is cut: among processes, and into micro-batches of each."""

    ranks: Ranks = field(default_factory=Ranks)
    accumulate: int = 1

    @property
    def whole(self) -> bool:
        """Whether it is not cut at all."""
        return not self.ranks.several and self.accumulate == 1

    def of(self, numbers: Tensor, batch_size: int) -> tuple[list[Tensor], bool]:
        """The micro-batches of this process as numbers of samples, and whether they count.

        A share has two samples at least, which batch normalisation wants, unless batches are smaller than that.
        """
        least = max(1, min(2, batch_size // self.ranks.size))
        sharing = max(1, min(self.ranks.size, len(numbers) // least))
        counts = self.ranks.rank < sharing
        share = numbers.tensor_split(sharing)[self.ranks.rank if counts else 0]
        return list(share.tensor_split(max(1, min(self.accumulate, len(share) // least)))), counts


class Batches(ABC):
    """One split, cut into batches.

    Attributes:
        steps: how many batches an epoch has; None when that is not known before the end.
        samples: how many samples there are; None when that is not known.
        resumes_inside: whether an epoch can be taken up in its middle.
        cut: whether the batches of an epoch are cut into parts.
    """

    steps: int | None
    samples: int | None = None
    resumes_inside: bool = True
    cut: bool = False

    @abstractmethod
    def epoch(self, seed: int, epoch: int, start: int = 0) -> Iterator[Any]:
        """The batches of a training epoch, from number ``start`` on."""

    @abstractmethod
    def in_order(self, models: int = 1, *, shared: bool = False) -> Iterator[Any]:
        """All samples once, for the evaluation of so many models at once; ``shared`` by all processes."""

    @abstractmethod
    def probe(self) -> Any:
        """A batch of few samples, by which the data are recognised; None where there are none, or only some here."""


class NoData(Batches):
    """A problem without data: an epoch is one step without a batch."""

    steps = 1

    def epoch(self, seed: int, epoch: int, start: int = 0) -> Iterator[Any]:
        yield from [None][start:]

    def in_order(self, models: int = 1, *, shared: bool = False) -> Iterator[Any]:
        yield None

    def probe(self) -> Any:
        return None


class _Indexed(Batches):
    """Samples that can be had by number: a random order for each epoch, by (seed, epoch) and the kind of device."""

    def __init__(
        self, samples: int, batch_size: int, device: torch.device, fetch: Callable[[Tensor], Any], shares: Shares
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
            yield Cut(tuple(self._fetch(part) for part in parts), tuple(len(part) * count for part in parts))

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
        self, tensors: Any, samples: int, batch_size: int, device: torch.device, shares: Shares | None = None
    ) -> None:
        super().__init__(samples, batch_size, device, self._at, shares or Shares())
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

    def __init__(self, loader: DataLoader[Any], move: Callable[[Any], Any], shares: Shares) -> None:
        self._loader = loader
        self._move = move
        self._shares = shares
        try:
            self.steps = -(-len(loader) // shares.accumulate)
        except TypeError:
            self.steps = None

    def epoch(self, seed: int, epoch: int, start: int = 0) -> Iterator[Any]:
        if start:
            raise ValueError("a DataLoader starts at the beginning of an epoch, not inside of it.")
        seed_everything(order_seed(seed, epoch))
        inner = getattr(self._loader.batch_sampler, "sampler", None)
        for holder in (self._loader, self._loader.sampler, inner):
            generator = getattr(holder, "generator", None)
            if isinstance(generator, torch.Generator):
                generator.manual_seed(order_seed(seed, epoch))
        for holder in (self._loader.sampler, inner):
            if isinstance(holder, DistributedSampler):
                holder.set_epoch(epoch)
        yield from self.in_order() if self._shares.whole else self._cut(seed, epoch)

    def _cut(self, seed: int, epoch: int) -> Iterator[Cut]:
        ranks, source = self._shares.ranks, self.in_order()
        parts = tuple(itertools.islice(source, self._shares.accumulate))
        if ranks.several:  # the order is drawn by now; dropout is to differ
            seed_everything(rank_seed(order_seed(seed, epoch), ranks.rank))
        while not ranks.any(not parts)[0]:
            yield Cut(parts, tuple(count_samples(part) for part in parts))
            parts = tuple(itertools.islice(source, self._shares.accumulate))

    def in_order(self, models: int = 1, *, shared: bool = False) -> Iterator[Any]:
        for batch in self._loader:
            yield self._move(batch)

    def probe(self) -> Any:
        return None if self._shares.ranks.several else first_part(next(self.epoch(0, 0), None))


def make_batches(
    name: str,
    data: Data | None,
    *,
    batch_size: int,
    device: torch.device,
    dtype: torch.dtype,
    shares: Shares | None = None,
) -> Batches:
    """Batches of a split; floating-point tensors are cast to ``dtype``, like the models."""
    shares = shares or Shares()

    def move(tensor: Tensor) -> Tensor:
        return tensor.to(device=device, dtype=dtype if tensor.is_floating_point() else None, non_blocking=True)

    def moved(batch: Any) -> Any:
        return map_tensors(move, batch)

    if data is None:
        return NoData()
    if isinstance(data, DataLoader):
        return _Loaded(data, moved, shares)
    if isinstance(data, IterableDataset):
        return _Loaded(DataLoader(data, batch_size=batch_size), moved, shares)
    tensors = _tensors_of(data)
    if tensors:
        sizes = {len(tensor) if tensor.ndim else 0 for tensor in tensors}
        if len(sizes) > 1 or 0 in sizes:
            shapes = [list(tensor.shape) for tensor in tensors]
            raise ValueError(
                f"'{name}' must be tensors with the same first dimension, not empty. Got {shapes} instead."
            )
        return Resident(moved(data), sizes.pop(), batch_size, device, shares)
    if isinstance(data, Dataset):
        dataset: Any = data
        if not hasattr(dataset, "__len__"):
            raise TypeError(
                f"'{name}' must be a Dataset with a length, or iterable. Got {type(data).__name__} instead."
            )
        if len(dataset) == 0:
            raise ValueError(f"'{name}' must not be empty. Got a {type(data).__name__} of length 0.")
        return _Indexed(
            len(dataset),
            batch_size,
            torch.device("cpu"),
            lambda part: moved(default_collate([dataset[i] for i in part.tolist()])),
            shares,
        )
    raise TypeError(f"'{name}' must be tensors, a Dataset or a DataLoader. Got {type(data).__name__} instead.")


def map_tensors(function: Callable[[Tensor], Tensor], batch: Any) -> Any:
    """Apply a function to every tensor of a batch: in tuples, lists and dictionaries."""
    if isinstance(batch, Tensor):
        return function(batch)
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(map_tensors(function, part) for part in batch))
    if isinstance(batch, (tuple, list)):
        return type(batch)(map_tensors(function, part) for part in batch)
    if isinstance(batch, Mapping):
        return {name: map_tensors(function, part) for name, part in batch.items()}
    return batch


def count_samples(batch: Any) -> int:
    """How many samples a batch has: the first dimension of its first tensor that has one; 1 where there is none."""
    found: list[int] = []

    def note(tensor: Tensor) -> Tensor:
        found.extend(tensor.shape[:1])
        return tensor

    map_tensors(note, batch)
    return found[0] if found else 1


class ChangedBatchError(ValueError):
    """A batch was written to."""


@contextlib.contextmanager
def unchanged(batch: Any, who: str = "model' and 'losses") -> Iterator[None]:
    """Refuse operations within that write to the tensors of a batch, which other models are still to see."""
    before = _versions(batch)
    yield
    if _versions(batch) != before:
        raise ChangedBatchError(
            f"'{who}' must not change a batch in place: all models of a front see the same one. Got a batch that was "
            "written to: write x = x / 255 for x /= 255, and clone what an indexed assignment is to change."
        )


def _versions(batch: Any) -> list[int]:
    """How often each tensor of a batch was written to; what was made in inference mode does not count it."""
    found: list[int] = []

    def note(tensor: Tensor) -> Tensor:
        found.append(0 if tensor.is_inference() else tensor._version)
        return tensor

    map_tensors(note, batch)
    return found


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
