"""Partition of a batch among processes and micro-batches."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from paretomtl.engine.processes import ProcessGroup


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
