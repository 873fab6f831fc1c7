"""A split in batches, and what is done to a batch whatever it consists of."""

from __future__ import annotations

import contextlib
import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from paretomtl.engine.processes import ProcessGroup
from paretomtl.problems.per_task import TaskBatch


@dataclass(frozen=True)
class MicroBatches:
    """What one process sees of the batch of a step: micro-batches, and how many samples each counts for.

    One that counts for none stands in where a batch has too few samples for all processes.
    """

    parts: tuple[Any, ...]
    samples: tuple[int, ...]


def first_part(batch: Any) -> Any:
    """A batch, or the first micro-batch of one that is cut."""
    return batch.parts[0] if isinstance(batch, MicroBatches) else batch


@dataclass(frozen=True)
class BatchPartition:
    """How the batch of a step is cut: among processes, and into micro-batches of each."""

    ranks: ProcessGroup = field(default_factory=ProcessGroup)
    accumulate: int = 1

    @property
    def whole(self) -> bool:
        """Whether it is not cut at all."""
        return not self.ranks.is_distributed and self.accumulate == 1

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


def map_tensors(function: Callable[[Tensor], Tensor], batch: Any) -> Any:
    """Apply a function to every tensor of a batch: in tuples, lists and dictionaries."""
    if isinstance(batch, Tensor):
        return function(batch)
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(map_tensors(function, part) for part in batch))
    if isinstance(batch, (tuple, list)):
        return type(batch)(map_tensors(function, part) for part in batch)
    if isinstance(batch, Mapping):
        return _like(batch, {name: map_tensors(function, part) for name, part in batch.items()})
    return batch


def _like(batch: Mapping[str, Any], parts: dict[str, Any]) -> Mapping[str, Any]:
    """Entries in a mapping of the same kind, whose attributes and methods a model may use; else in a dictionary."""
    if type(batch) is dict:
        return parts
    try:
        made: Any = copy.copy(batch)
        for name, part in parts.items():
            made[name] = part
    except Exception:  # such as a mapping that cannot be written to
        return parts
    return made  # type: ignore[no-any-return]


def map_samples(function: Callable[[Tensor], Tensor], batch: Any) -> Any:
    """Apply a function to the tensors of a batch that have its samples in their first dimension."""
    if isinstance(batch, TaskBatch):
        return batch.map(lambda part: map_samples(function, part))
    count = count_samples(batch)
    return map_tensors(lambda tensor: function(tensor) if tensor.ndim and len(tensor) == count else tensor, batch)


def count_samples(batch: Any) -> int:
    """How many samples a batch has: the first dimension of its first tensor that has one; 1 where there is none."""
    found: list[int] = []

    def note(tensor: Tensor) -> Tensor:
        found.extend(tensor.shape[:1])
        return tensor

    map_tensors(note, batch)
    return found[0] if found else 1


def samples_by_task(batch: TaskBatch) -> Tensor:
    """How many samples each task has in a batch of data by task, ``[m]`` in float64."""
    return torch.tensor(list(batch.samples.values()), dtype=torch.float64)


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
