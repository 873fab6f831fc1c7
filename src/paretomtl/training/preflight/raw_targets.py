"""Targets in large units, such as euros a year: an untrained model outputs about 0, and may never get there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from paretomtl.engine.batches.structure import map_tensors
from paretomtl.problems import Problem

_LARGE = 1000.0  # the mean square from which targets are large
_NEAR = 0.2  # relative: how near the first loss is to that of an output of 0


def raw_targets(problem: Problem, batch: Any, losses: Sequence[float]) -> str | None:
    """A warning of tasks whose first loss is that of an output of 0 on large targets; None if there are none.

    Args:
        problem: the problem; with ``losses(model, batch)`` any tensor of the batch may be a target.
        batch: the first one.
        losses: of an untrained model on it.
    """
    if batch is None:
        return None
    try:
        columns = list(_columns(batch if problem.takes_model else problem.split_batch(batch)[1]))
    except (TypeError, ValueError, RuntimeError):  # targets of another kind: nothing depends on this warning
        return None
    tasks = [task for task, loss in zip(problem.tasks, losses, strict=True) if any(_is_raw(c, loss) for c in columns)]
    if not tasks:
        return None
    values = ", ".join(f"{task} {losses[problem.tasks.index(task)]:.3g}" for task in tasks)
    return (
        f"targets of tasks {tasks} are in large units: first losses ({values}) are those of an output of 0, which a "
        "model may never leave. Standardise such targets: subtract their mean, and divide by their deviation."
    )


def _columns(targets: Any) -> Iterator[Tensor]:
    """The known values of each column of the floating-point targets."""
    found: list[Tensor] = []
    map_tensors(lambda tensor: found.append(tensor) or tensor, targets)  # type: ignore[func-returns-value]
    for tensor in found:
        if tensor.layout == torch.strided and tensor.is_floating_point() and tensor.ndim and tensor.numel():
            for column in tensor.detach().double().reshape(len(tensor), -1).T[:100]:
                yield column[column.isfinite()]


def _is_raw(column: Tensor, loss: float) -> bool:
    """Whether a loss is the mean square, or the mean size, of a column of large numbers."""
    if not len(column) or float(column.square().mean()) < _LARGE:
        return False
    sizes = torch.stack([column.square().mean(), column.abs().mean()])
    return bool(((loss / sizes - 1.0).abs() < _NEAR).any())
