"""NaN in the data that makes losses NaN, unlike NaN that the model or its losses handle."""

from __future__ import annotations

import contextlib
import copy
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from paretomtl._support.random_state import isolated_randomness
from paretomtl.engine.batches.base import Batches
from paretomtl.engine.batches.indexed import ResidentBatches
from paretomtl.problems import Problem
from paretomtl.problems.per_task import TaskBatch

_PROBED = 64  # samples with NaN, and as many without: enough to see what NaN does


def missing_values(problem: Problem, name: str, split: Batches, module: nn.Module, batch: Any) -> list[str]:
    """The effect of NaN in a split on the losses of an untrained model: a sentence each for inputs and targets.

    A sample with NaN is not an error by itself. So the losses are computed twice, with NaN and without: a loss that is
    NaN in the first case only comes from it.

    Args:
        problem: with its losses.
        name: of the split.
        split: all of it is checked if it lies in memory as tensors.
        module: a model, which is not changed.
        batch: the first one, by which other data are judged.
    """
    whole = split.whole() if isinstance(split, ResidentBatches) else None
    data, where = (batch, " of its first batch") if whole is None else (whole, "")
    if isinstance(data, TaskBatch):
        return _of_tasks(problem, name, module, data)
    if problem.takes_model:  # which tensors are inputs, and which are labels, is not known
        return _of_entries(problem, name, where, module, data)
    if not isinstance(data, (tuple, list)) or len(data) < 2:
        return []
    if not all(isinstance(part, Tensor) and part.ndim for part in data) or len({len(part) for part in data}) > 1:
        return []
    inputs, *targets = data
    texts = []
    gaps = _rows_with_nan([inputs])
    if bool(gaps.any()):
        probe = _at(data, _some(gaps, ~gaps))
        tasks = _spoilt(problem, module, probe, [probe[0].nan_to_num(), *probe[1:]])
        if tasks:
            texts.append(_inputs_text(name, where, _share([inputs]), tasks))
    gaps = _rows_with_nan(targets)
    sound = ~gaps & ~_rows_with_nan([inputs])
    if bool(gaps.any()) and bool(sound.any()):
        filled = [inputs.nan_to_num(), *targets] if inputs.is_floating_point() else data
        tasks = _spoilt(problem, module, _at(filled, _some(gaps, sound)), _at(data, _some(sound)))
        if tasks:
            texts.append(
                f"'{name}' has NaN in {_share(targets)} of the targets{where}, and one is enough to make the losses of "
                f"tasks {tasks} NaN: let each loss take the samples that have its label, such as "
                "known = ~targets[:, i].isnan() and outputs[known, i], or give each task its own data set."
            )
    return texts


def _of_entries(problem: Problem, name: str, where: str, module: nn.Module, data: Any) -> list[str]:
    """The effect of NaN in each tensor of a batch of any form, by its key."""
    keys = list(data) if isinstance(data, Mapping) else range(len(data)) if isinstance(data, (tuple, list)) else ()
    parts = {key: data[key] for key in keys}
    if not all(isinstance(part, Tensor) and part.ndim for part in parts.values()):
        return []
    if len({len(part) for part in parts.values()}) > 1:
        return []
    texts = []
    for key, part in parts.items():
        gaps = _rows_with_nan([part])
        if not bool(gaps.any()):
            continue
        rows = _some(gaps, ~gaps)
        probe = {other: tensor.index_select(0, rows) for other, tensor in parts.items()}
        filled = probe | {key: probe[key].nan_to_num()}
        pair = [batch if isinstance(data, Mapping) else list(batch.values()) for batch in (probe, filled)]
        tasks = _spoilt(problem, module, *pair)
        if tasks:
            texts.append(
                f"'{name}' has NaN in {_share([part])} of batch[{key!r}]{where}, and one is enough to make the losses "
                f"of tasks {tasks} NaN. If these are labels, let each loss take the samples that have one, such as "
                f"known = ~batch[{key!r}].isnan(). If they are inputs, fill them before training."
            )
    return texts


def _of_tasks(problem: Problem, name: str, module: nn.Module, batch: TaskBatch) -> list[str]:
    """The effect of NaN in the inputs of a batch of each task."""
    pairs = [pair for pair in batch.values() if isinstance(pair, (tuple, list)) and isinstance(pair[0], Tensor)]
    inputs = [pair[0] for pair in pairs if pair[0].is_floating_point()]
    if not any(bool(part.isnan().any()) for part in inputs):
        return []

    def fill(pair: Any) -> Any:
        if not isinstance(pair, (tuple, list)) or not isinstance(pair[0], Tensor):
            return pair
        return type(pair)((pair[0].nan_to_num(), *pair[1:]))

    tasks = _spoilt(problem, module, batch, batch.map(fill))
    return [_inputs_text(name, " of its first batch", _share(inputs), tasks)] if tasks else []


def _inputs_text(name: str, where: str, share: str, tasks: Sequence[str]) -> str:
    return (
        f"'{name}' has NaN in {share} of the inputs{where}, and makes the losses of tasks {list(tasks)} NaN: fill "
        "missing values, such as by the mean of the column, before training."
    )


def _rows_with_nan(tensors: Sequence[Tensor]) -> Tensor:
    """Which samples have NaN; by sums of each, so that no second tensor of the size of the data is needed."""
    with_nan = torch.zeros(len(tensors[0]), dtype=torch.bool, device=tensors[0].device)
    for tensor in tensors:
        if tensor.is_floating_point() and tensor.numel():
            with_nan |= tensor.reshape(len(tensor), -1).sum(1).isnan()
    return with_nan


def _share(tensors: Sequence[Tensor]) -> str:
    missing = sum(int(part[_rows_with_nan([part])].isnan().sum()) for part in tensors)
    return f"{missing} of {sum(part.numel() for part in tensors)} values"


def _some(*kinds: Tensor) -> Tensor:
    """A few samples of each kind, by number."""
    return torch.cat([kind.nonzero().flatten()[:_PROBED] for kind in kinds])


def _at(data: Sequence[Tensor], numbers: Tensor) -> list[Tensor]:
    return [part.index_select(0, numbers) for part in data]


def _spoilt(problem: Problem, module: nn.Module, with_nan: Any, without: Any) -> list[str]:
    """Tasks whose losses are NaN for the first batch, but not for the second; empty if they cannot be computed."""
    with isolated_randomness(), torch.no_grad(), warnings.catch_warnings(), contextlib.suppress(Exception):
        warnings.simplefilter("ignore")
        before, after = (problem.run(copy.deepcopy(module).eval(), batch)[0].isnan() for batch in (with_nan, without))
        return [task for task, nan in zip(problem.tasks, (before & ~after).tolist(), strict=True) if nan]
    return []
