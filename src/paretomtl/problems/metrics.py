"""Metrics of a split: one number from outputs and targets, or from a model and batches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from paretomtl.problems._problem import Metric, Problem
from paretomtl.problems.per_task import TaskBatch
from paretomtl.problems.task_losses import own_part, split_batch, takes_model, widened


def measure(problem: Problem, metric: Metric, first: Any, second: Any) -> Any:
    """Evaluate a metric of outputs and targets, or of a model and batches; one with a task sees only that task's part.

    Like losses, the metric of a task takes a model and batches if its first parameter is called ``model``, and may take
    gradients.
    """
    value = problem.with_own_gradients(id(metric.function), _measure, problem, metric, first, second)
    return value.detach() if isinstance(value, Tensor) else value


def _measure(problem: Problem, metric: Metric, first: Any, second: Any) -> Any:
    if metric.task is None:
        return metric.function(first, second)
    task, tasks = metric.task, list(problem.tasks)
    if not problem.takes_model:
        return metric.function(own_part(first, task, tasks), own_part(second, task, tasks))
    if takes_model(metric.function):
        own_batches = [batch.get(task) if isinstance(batch, TaskBatch) else batch for batch in second]
        return metric.function(first, [own for own in own_batches if own is not None])
    outputs, targets = [], []
    for batch in second:
        own = batch.get(task) if isinstance(batch, TaskBatch) else batch
        if own is not None:
            inputs, wanted = split_batch(own, task, "a metric (outputs, targets)", "function(model, batches)")
            outputs.append(own_part(widened(first(inputs)), task, tasks))
            targets.append(wanted if isinstance(batch, TaskBatch) else own_part(wanted, task, tasks))
    return metric.function(_concatenate(outputs), _concatenate(targets))


def _concatenate(parts: list[Any]) -> Any:
    if isinstance(parts[0], Tensor):
        return torch.cat(parts)
    if isinstance(parts[0], Mapping):
        return {key: _concatenate([part[key] for part in parts]) for key in parts[0]}
    return tuple(_concatenate(list(column)) for column in zip(*parts, strict=True))
