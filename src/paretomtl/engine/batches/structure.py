"""Operations on a batch, whatever it is made of: tuples, lists, dictionaries, batches by task."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from paretomtl.problems.per_task import TaskBatch


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


def moved(batch: Any, device: torch.device, dtype: torch.dtype) -> Any:
    """A batch on a device, with its floating-point tensors in a dtype."""
    return map_tensors(
        lambda tensor: tensor.to(device=device, dtype=dtype if tensor.is_floating_point() else None, non_blocking=True),
        batch,
    )


def _like(batch: Mapping[str, Any], parts: dict[str, Any]) -> Mapping[str, Any]:
    """Put entries in a mapping of the same type, whose methods a model may use; otherwise in a dictionary."""
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
    """The number of samples in a batch: the first dimension of its first tensor that has one; 1 where there is none."""
    sizes: list[int] = []

    def note(tensor: Tensor) -> Tensor:
        sizes.extend(tensor.shape[:1])
        return tensor

    map_tensors(note, batch)
    return sizes[0] if sizes else 1


def samples_by_task(batch: TaskBatch) -> Tensor:
    """The number of samples of each task in a batch of data by task, ``[m]`` in float64."""
    return torch.tensor(list(batch.samples.values()), dtype=torch.float64)


class ChangedBatchError(ValueError):
    """A batch was written to."""


@contextlib.contextmanager
def unchanged(batch: Any, who: str = "model' and 'losses") -> Iterator[None]:
    """Refuse in-place writes to the tensors of a batch within, because other models still need it."""
    before = _versions(batch)
    yield
    if _versions(batch) != before:
        raise ChangedBatchError(
            f"'{who}' must not change a batch in place: all models of a front see the same one. Got a batch that was "
            "written to: write x = x / 255 for x /= 255, and clone a tensor before an indexed assignment."
        )


def _versions(batch: Any) -> list[int]:
    """The number of writes to each tensor of a batch; tensors made in inference mode do not count them."""
    versions: list[int] = []

    def note(tensor: Tensor) -> Tensor:
        versions.append(0 if tensor.is_inference() else tensor._version)
        return tensor

    map_tensors(note, batch)
    return versions
