"""Partition of a batch among processes and micro-batches.

``batch_size`` is that of a step, however it is split, so that a run can be resumed with another number of processes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from paretomtl.engine.processes import ProcessGroup


@dataclass(frozen=True)
class MicroBatches:
    """The share of one process in the batch of a step: micro-batches, and how many samples each counts for.

    A stand-in, which counts for none, is used if a batch has too few samples for all processes.
    """

    parts: tuple[Any, ...]
    samples: tuple[int, ...]


def first_part(batch: Any) -> Any:
    """A batch, or the first micro-batch of one that is split."""
    return batch.parts[0] if isinstance(batch, MicroBatches) else batch


@dataclass(frozen=True)
class BatchPartition:
    """Partition of the batch of a step: among processes, and into micro-batches of each."""

    processes: ProcessGroup = field(default_factory=ProcessGroup)
    accumulate: int = 1

    @property
    def whole(self) -> bool:
        """Whether it is not split at all."""
        return not self.processes.is_distributed and self.accumulate == 1

    def split(self, numbers: Tensor, batch_size: int) -> tuple[list[Tensor], bool]:
        """The micro-batches of this process as numbers of samples, and whether they count.

        A share has at least two samples, which batch normalisation needs, unless batches are smaller than that.
        """
        least = max(1, min(2, batch_size // self.processes.size))
        sharing = max(1, min(self.processes.size, len(numbers) // least))
        counts = self.processes.rank < sharing
        share = numbers.tensor_split(sharing)[self.processes.rank if counts else 0]
        return list(share.tensor_split(max(1, min(self.accumulate, len(share) // least)))), counts
