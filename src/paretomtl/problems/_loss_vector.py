"""The result of a function of losses as one vector."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from paretomtl._support.argument_checks import describe_value, quote


def as_vector(losses: Any, tasks: tuple[str, ...]) -> Tensor:
    """The losses ``[m]``, from a tensor, a dictionary by task name, or a list or tuple of scalars.

    Scalars are stacked as the last step, so that NaN stays with its own task.
    """
    count = len(tasks)
    if isinstance(losses, Mapping):
        if set(losses) != set(tasks):
            raise ValueError(
                f"'losses' must return one loss for each of the tasks {list(tasks)}, NaN where a task has no "
                f"labels. Got {list(losses)} instead."
            )
        losses = torch.stack([_scalar(losses[task], task) for task in tasks])
    elif isinstance(losses, (list, tuple)):
        if len(losses) != count:
            raise ValueError(
                f"'losses' must return {count} losses, one for each of the tasks {list(tasks)}. Got a "
                f"{type(losses).__name__} of {len(losses)} instead."
            )
        losses = torch.stack([_scalar(loss, task) for loss, task in zip(losses, tasks, strict=True)])
    if not isinstance(losses, Tensor):
        raise TypeError(
            f"'losses' must return a tensor of shape [{count}], a list of {count} scalar tensors, or a dictionary by "
            f"task name. Got {describe_value(losses)} instead{_remedy(losses)}."
        )
    if losses.shape != (count,):
        raise ValueError(
            f"'losses' must return shape [{count}], one per task. Got {list(losses.shape)} instead"
            f"{_shape_remedy(losses, count)}."
        )
    if not losses.is_floating_point():
        raise TypeError(
            f"'losses' must return a floating-point tensor. Got {losses.dtype} instead: counts have no gradient."
        )
    return losses


def _scalar(loss: Any, task: str) -> Tensor:
    if not isinstance(loss, Tensor) or loss.numel() != 1:
        more = ": take its mean over samples" if isinstance(loss, Tensor) and loss.numel() > 1 else _remedy(loss)
        raise TypeError(
            f"'losses' must return tensors of one number each. Got {describe_value(loss)} for {quote(task)}{more}."
        )
    return loss.reshape(())


def _remedy(losses: Any) -> str:
    if isinstance(losses, (int, float)):
        return ", which has no gradient: leave out .item() and float(), and return tensors"
    return ", so a return statement is missing" if losses is None else ""


def _shape_remedy(losses: Tensor, count: int) -> str:
    if losses.ndim == 0:
        return ": return the losses of all tasks, torch.stack([first, second]), and not their sum"
    if losses.ndim == 2 and losses.shape[-1] == count:
        return ": take the mean over samples, such as losses.mean(0)"
    return ""
