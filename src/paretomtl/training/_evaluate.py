"""Losses and metrics of all models on a whole split."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from paretomtl.problems import Problem
from paretomtl.training._batches import Batches, count_samples, map_tensors
from paretomtl.training._models import Models, Single
from paretomtl.training._step import Group


@dataclass(frozen=True)
class Scores:
    """Losses ``[K, m]`` and metrics ``[K]`` each, on the CPU."""

    losses: Tensor
    metrics: dict[str, Tensor]


@torch.no_grad()
def evaluate(problem: Problem, groups: Sequence[Group], batches: Batches) -> Scores:
    """Every model in eval mode on every sample once.

    The loss of a task is the mean over the batches in which it has labels, each counted by its samples; NaN if there is
    none.
    """
    parts = [_evaluate(problem, group, batches) for group in groups]
    return Scores(
        torch.cat([part.losses for part in parts]),
        {name: torch.cat([part.metrics[name] for part in parts]) for name in problem.metrics},
    )


def _evaluate(problem: Problem, group: Group, batches: Batches) -> Scores:
    models = group.models
    sums = counts = torch.zeros(())
    outputs: list[Any] = []
    targets: list[Any] = []
    collects = bool(problem.metrics) and not problem.takes_model
    with models.evaluating():
        for batch in batches.in_order():
            with group.precision():
                losses, found = models.forward(batch)
            losses = losses.detach().double().reshape(models.count, -1)
            here = losses.isnan().logical_not() * count_samples(batch)
            sums = sums + torch.where(here > 0, losses * here, 0.0)
            counts = counts + here
            if collects:
                outputs.append(map_tensors(Tensor.detach, found))
                targets.append(problem.split_batch(batch)[1] if batch is not None else ())
        mean = (sums / counts).to(next(iter(models.trained.values())).dtype).cpu()
        metrics = {name: torch.full((models.count,), torch.nan, dtype=torch.float64) for name in problem.metrics}
        for k in range(models.count if problem.metrics else 0):
            if problem.takes_model:
                arguments: tuple[Any, Any] = (_one_of(models, k), list(batches.in_order()))
            else:
                arguments = (_concatenate([_one_output(models, part, k) for part in outputs]), _concatenate(targets))
            for name, metric in problem.metrics.items():
                metrics[name][k] = _measure(name, metric.function, arguments)
    return Scores(mean, metrics)


def _measure(name: str, function: Callable[[Any, Any], Any], arguments: tuple[Any, Any]) -> float:
    """One number; NaN with a warning where the metric fails, since the models are worth more than it."""
    try:
        return float(function(*arguments))
    except Exception as error:
        warnings.warn(f"metric '{name}' raised {type(error).__name__}: {error}. Its value is NaN.", stacklevel=2)
        return float("nan")


def _one_output(models: Models, outputs: Any, k: int) -> Any:
    return outputs if isinstance(models, Single) else map_tensors(lambda tensor: tensor[k], outputs)


def _one_of(models: Models, k: int) -> nn.Module:
    """Model k as an ordinary module."""
    if isinstance(models, Single):
        return models.module
    module = copy.deepcopy(models.module)
    module.load_state_dict({name: tensor[k] for name, tensor in models.tensors().items()}, strict=False)
    return module


def _concatenate(parts: Sequence[Any]) -> Any:
    """The batches' tensors, one after another, in the structure of a batch."""
    first = parts[0]
    if isinstance(first, Tensor):
        return torch.cat([part if part.ndim else part[None] for part in parts])
    if isinstance(first, dict):
        return {name: _concatenate([part[name] for part in parts]) for name in first}
    if isinstance(first, (tuple, list)):
        return tuple(_concatenate(list(column)) for column in zip(*parts, strict=True))
    return list(parts)
