"""Losses of untrained models, which show whether training made anything better.

A run compares its result with them, and so does a diagnosis.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from paretomtl._support.random_state import isolated_randomness, model_seed
from paretomtl._support.splits import ranking_split
from paretomtl.engine.batches.base import Batches, OneBatch
from paretomtl.engine.batches.indexed import ResidentBatches
from paretomtl.engine.device import find_device
from paretomtl.engine.evaluate import evaluate
from paretomtl.engine.models.modules import copy_modules, make_modules
from paretomtl.engine.processes import ProcessGroup
from paretomtl.engine.strategy import ExecutionPlan, Plan
from paretomtl.front import Front
from paretomtl.methods import State
from paretomtl.problems import Problem
from paretomtl.training.settings.settings import Settings

_SHARE = 0.1  # of the work of a run that the measurement may cost


def measure_untrained(
    plan: Plan,
    choice: ExecutionPlan,
    modules: Sequence[nn.Module],
    state: State,
    splits: Mapping[str, Batches],
    settings: Settings,
) -> Tensor | None:
    """Losses ``[K, m]`` of copies on the split that ranks; None if that costs too much or is not possible.

    Data must be tensors: reading a Dataset or a DataLoader once more may have side effects.
    """
    split = splits[ranking_split(list(splits))]
    if plan.partition.processes.is_distributed or not is_cheap(split, splits["train"], settings):
        return None
    bare = replace(plan, problem=replace(plan.problem, metrics={}), compiler=None, scheduler=None)
    try:
        with isolated_randomness(0), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # training will say the same
            if choice.strategy == "sequential" or choice.on_streams:
                groups = bare.sequential(copy_modules(modules), state)
            else:
                groups = bare.batched(copy_modules(modules), state, choice.most)
            return evaluate(bare.problem, groups, split).losses
    except Exception:  # nothing depends on it
        return None


def warn_of_missing_labels(settings: Settings, split: str, losses: Tensor | None) -> None:
    """Warn before training that models cannot be chosen, because a task has no losses ``[K, m]`` on this split."""
    text = warned_before(settings, split, losses)
    if text is not None and settings.shares.processes.is_main:
        warnings.warn(text, stacklevel=5)


def warned_before(settings: Settings, split: str, losses: Tensor | None) -> str | None:
    """The warning of missing labels that losses of untrained models gave before training; None without one."""
    known = losses is not None and split != "train"
    return missing_labels_text(split, settings.problem.tasks, losses) if known and losses is not None else None


def missing_labels_text(split: str, tasks: Sequence[str], losses: Tensor) -> str | None:
    """The warning of tasks without losses on a split; None if all have some, or none has any."""
    without = losses.isnan().all(0).tolist()
    if not any(without) or all(without):
        return None
    names = [task for task, none in zip(tasks, without, strict=True) if none]
    return (
        f"'{split}' has no labels for tasks {names}, or their losses are NaN there: no model can be chosen by them. "
        f"Give '{split}' labels for every task, or choose on another split."
    )


def is_cheap(split: Batches, train: Batches, settings: Settings) -> bool:
    """Whether one more evaluation on a split adds little to a run; only of tensors, which can be read at will."""
    if not all(isinstance(each, (OneBatch, ResidentBatches)) for each in (split, train)):
        return False
    passes = 1 + len(settings.problem.tasks)  # of a step; an evaluation has one
    return (split.samples or 1) <= _SHARE * settings.epochs * passes * (train.samples or 1)


def checked_untrained(stored: Any, rows: int, tasks: int) -> Tensor | None:
    """Check the losses ``[rows, tasks]`` of a checkpoint; None for one of an earlier version."""
    if stored is None:
        return None
    if not isinstance(stored, Tensor) or stored.shape != torch.Size((rows, tasks)):
        raise ValueError("the losses of untrained models have another number of rows or tasks")
    return stored


def mean_untrained_losses(
    problem: Problem, seeds: Sequence[int], batch_size: int | None, device: torch.device | str | None
) -> Tensor | None:
    """Mean losses ``[m]`` of the untrained models on the whole training split.

    The first batch does not represent a split: a few samples with large targets decide its loss.

    Returns:
        None for data that are not tensors: reading a Dataset or a DataLoader once more may have side effects.
    """
    parts = problem.train if isinstance(problem.train, (tuple, list)) else [problem.train]
    if not all(isinstance(part, Tensor) for part in parts):
        return None
    bare = replace(problem, val=None, test=None, metrics={})
    place = find_device(device, ProcessGroup())
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # training says the same
            models = make_modules(bare, [model_seed(seed, 0) for seed in seeds], place, torch.float32)
            return Front.from_models(models, bare, batch_size=batch_size, device=place).losses["train"].double().mean(0)
    except Exception:  # the first batch is used instead
        return None
