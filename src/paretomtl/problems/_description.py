"""A problem in a few lines: its parts, and the shapes of its data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from torch import Tensor
from torch.utils.data import DataLoader

from paretomtl.problems.per_task import PerTask
from paretomtl.problems.task_losses import TaskLosses, takes_model


def describe_problem(problem: Mapping[str, Any]) -> str:
    """The ``repr`` of a problem, from its attributes by name: one line for each part that was given."""
    losses = problem["losses"]
    by_task = isinstance(losses, TaskLosses)
    functions = {task: _name(each) for task, each in losses.functions.items()} if by_task else _name(losses)
    lines = {"model": _name(problem["model"]), "losses": functions, "tasks": list(problem["tasks"])}
    if by_task and not all(map(takes_model, losses.functions.values())):
        lines["split"] = _describe_parts(problem["train"], len(problem["tasks"]))
    for split in ("train", "val", "test"):
        if problem[split] is not None:
            lines[split] = describe_data(problem[split])
    if metrics := problem["metrics"]:
        lines["metrics"] = ", ".join(f"{name} ({metric.better} is better)" for name, metric in metrics.items())
    for name in ("shared", "representation", "reference"):
        value = problem[name]
        if value is not None:
            lines[name] = _name(value) if callable(value) else value
    if problem["counts"] is not None:
        lines["counts"] = _name(problem["counts"])
    if problem["truth"] is not None:
        lines["truth"] = "known"
    recipe = _describe_recipe(problem["recipe"])
    if recipe:
        lines["recipe"] = recipe
    return "\n".join([f"Problem {problem['name']!r}", *(f"  {name}: {value}" for name, value in lines.items())])


def _describe_parts(train: Any, tasks: int) -> str:
    """Which part of outputs and targets each function of a task gets; targets are known if data are tensors."""
    by_name = f"by task name in a dictionary, by place in a tuple of {tasks}, else whole"
    targets = "by data set" if isinstance(train, PerTask) else by_name
    if isinstance(train, (tuple, list)):
        targets = "by place" if len(train) == tasks + 1 else "whole"
    return f"outputs {by_name}; targets {targets}" if targets != by_name else f"outputs and targets {by_name}"


def describe_data(data: Any) -> str:
    """A split in a few words: shapes and dtypes of tensors, types and lengths of everything else."""
    if isinstance(data, Tensor):
        return f"{list(data.shape)} {str(data.dtype).removeprefix('torch.')}"
    if isinstance(data, PerTask):
        parts = "; ".join(f"{task}: {describe_data(part)}" for task, part in data.data.items())
        return f"by task ({data.mode}): {parts}"
    if isinstance(data, Mapping):
        return "{" + ", ".join(f"{name!r}: {describe_data(part)}" for name, part in data.items()) + "}"
    if isinstance(data, (tuple, list)):
        return "(" + ", ".join(describe_data(part) for part in data) + ")"
    kind = type(data).__name__
    if isinstance(data, DataLoader):
        source = describe_data(data.dataset)
        return f"{kind} of {source}, {_length(data, 'batches')}"
    return f"{kind}, {_length(data, 'samples')}"


def _length(data: Any, unit: str) -> str:
    try:
        return f"{len(data):,} {unit}"
    except (TypeError, NotImplementedError):
        return "length unknown"


def _describe_recipe(recipe: Any) -> str:
    parts = []
    for each in fields(recipe):
        value = getattr(recipe, each.name)
        if value is not None and value != each.default and value != {}:
            shown = list(value) if isinstance(value, Mapping) else _name(value) if callable(value) else value
            parts.append(f"{each.name}={shown}")
    return ", ".join(parts)


def _name(function: Any) -> str:
    return str(getattr(function, "__qualname__", None) or type(function).__name__).replace("<locals>.", "")
