"""Batches of a split, from tensors, a Dataset or a DataLoader."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, IterableDataset

from paretomtl._support.argument_checks import describe_value, quote
from paretomtl.engine.batches.base import Batches, OneBatch
from paretomtl.engine.batches.indexed import IndexedBatches, ResidentBatches, tensors_of
from paretomtl.engine.batches.loader import LoaderBatches
from paretomtl.engine.batches.partition import BatchPartition
from paretomtl.engine.batches.samples import read_batch
from paretomtl.engine.batches.structure import moved
from paretomtl.engine.batches.task_batches import TaskBatches
from paretomtl.problems import Data, PerTask


def make_batches(
    name: str,
    data: Data | None,
    *,
    batch_size: int,
    device: torch.device,
    dtype: torch.dtype,
    partition: BatchPartition | None = None,
) -> Batches:
    """Batches of a split; floating-point tensors are cast to ``dtype``, like the models."""
    partition = partition or BatchPartition()

    def move(batch: Any) -> Any:
        return moved(batch, device, dtype)

    if data is None:
        return OneBatch()
    if isinstance(data, PerTask):
        if partition.processes.is_distributed:
            raise ValueError(f"'{name}' must be one data set if several processes share a run. Got one per task.")
        parts = {
            task: make_batches(
                f"{name}[{task!r}]", part, batch_size=batch_size, device=device, dtype=dtype, partition=partition
            )
            for task, part in data.data.items()
        }
        return TaskBatches(name, parts, data.mode)
    if isinstance(data, DataLoader):
        return LoaderBatches(name, data, move, partition)
    if isinstance(data, IterableDataset):
        return LoaderBatches(name, DataLoader(data, batch_size=batch_size), move, partition)
    tensors = tensors_of(data)
    if tensors:
        if any(tensor.layout != torch.strided for tensor in tensors):
            raise TypeError(f"'{name}' must be dense tensors, to be indexed. Got sparse ones: call to_dense().")
        sizes = {len(tensor) if tensor.ndim else 0 for tensor in tensors}
        if len(sizes) > 1 or 0 in sizes:
            raise ValueError(_rows_differ(name, data, tensors))
        return ResidentBatches(move(data), sizes.pop(), batch_size, device, partition)
    if isinstance(data, Dataset) or is_map_style(data):
        dataset: Any = data
        if not hasattr(dataset, "__len__"):
            raise TypeError(
                f"'{name}' must be a Dataset with a length, or iterable. Got {type(data).__name__}: add __len__."
            )
        if len(dataset) == 0:
            raise ValueError(f"'{name}' must not be empty. Got a {type(data).__name__} of length 0.")
        return IndexedBatches(
            len(dataset),
            batch_size,
            torch.device("cpu"),
            lambda part: move(read_batch(name, dataset, part.tolist())),
            partition,
        )
    if isinstance(data, Iterable) and not isinstance(data, (tuple, list, Mapping)):
        return LoaderBatches(name, data, move, partition)
    raise TypeError(f"'{name}' must be tensors, a Dataset or a DataLoader. Got {describe_value(data)} instead.")


def _rows_differ(name: str, data: Any, tensors: Sequence[Tensor]) -> str:
    """An error text for tensors without rows, or with different numbers of rows."""
    labels = list(data) if isinstance(data, Mapping) else None
    shapes: Any = [list(tensor.shape) for tensor in tensors]
    counts = [shape[0] if shape else 0 for shape in shapes]
    if 0 in counts:
        remedy = "It has no rows: check the filter or the split that made it"
    else:
        named = [f"{count} in {label!r}" for label, count in zip(labels or range(len(counts)), counts, strict=True)]
        if labels is None and len(counts) == 2:
            named = [f"{counts[0]} inputs", f"{counts[1]} targets"]
        remedy = f"These are {', '.join(named)}: row i of each is one sample, so leave out the same rows of all"
    shown = shapes if labels is None else dict(zip(labels, shapes, strict=True))
    return f"'{name}' must be tensors with the same first dimension, not empty. Got {quote(shown)} instead. {remedy}."


def is_map_style(data: Any) -> bool:
    """Whether an object returns samples by number without being a Dataset of torch, as those of Hugging Face do."""
    by_number = hasattr(data, "__getitem__") and hasattr(data, "__len__")
    return by_number and not isinstance(data, (tuple, list, Mapping, Tensor))
