"""What a function of losses returned, as one vector."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from paretomtl.problems.per_task import describe


def as_vector(found: Any, tasks: tuple[str, ...]) -> Tensor:
    """The losses ``[m]``, from a tensor, a dictionary by task name, or a list or tuple of scalars.

    What is not a tensor is stacked here, last of all, so that NaN stays with its own task.
    """
    count = len(tasks)
    if isinstance(found, Mapping):
        if set(found) != set(tasks):
            raise ValueError(
                f"'losses' must return one loss for each of the tasks {list(tasks)}, NaN where a task has no "
                f"labels. Got {list(found)} instead."
            )
        found = torch.stack([_scalar(found[task], task) for task in tasks])
    elif isinstance(found, (list, tuple)):
        if len(found) != count:
            raise ValueError(
                f"'losses' must return {count} losses, one for each of the tasks {list(tasks)}. Got a "
                f"{type(found).__name__} of {len(found)} instead."
            )
        found = torch.stack([_scalar(loss, task) for loss, task in zip(found, tasks, strict=True)])
    if not isinstance(found, Tensor):
        raise TypeError(
            f"'losses' must return a tensor of shape [{count}], a list of {count} scalar tensors, or a dictionary by "
            f"task name. Got {describe(found)} instead{_remedy(found)}."
        )
    if found.shape != (count,):
        raise ValueError(
            f"'losses' must return shape [{count}], one per task. Got {list(found.shape)} instead"
            f"{_shape_remedy(found, count)}."
        )
    if not found.is_floating_point():
        raise TypeError(
            f"'losses' must return a floating-point tensor. Got {found.dtype} instead: counts have no gradient."
        )
    return found


def _scalar(loss: Any, task: str) -> Tensor:
    if not isinstance(loss, Tensor) or loss.numel() != 1:
        more = ": take its mean over samples" if isinstance(loss, Tensor) and loss.numel() > 1 else _remedy(loss)
        raise TypeError(f"'losses' must return tensors of one number each. Got {describe(loss)} for {task!r}{more}.")
    return loss.reshape(())


def _remedy(found: Any) -> str:
    if isinstance(found, (int, float)):
        return ", which has no gradient: leave out .item() and float(), and return tensors"
    return ", so a return statement is missing" if found is None else ""


def _shape_remedy(found: Tensor, count: int) -> str:
    if found.ndim == 0:
        return ": return the losses of all tasks, torch.stack([first, second]), and not their sum"
    if found.ndim == 2 and found.shape[-1] == count:
        return ": take the mean over samples, such as losses.mean(0)"
    return ""
