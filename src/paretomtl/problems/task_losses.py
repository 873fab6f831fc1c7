"""Losses by task: functions of one task each, combined into one function of all losses."""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from paretomtl._support.argument_checks import describe_value
from paretomtl._support.signatures import check_takes
from paretomtl.problems.per_task import TaskBatch

_LOW = (torch.bfloat16, torch.float16)  # what autocast makes of outputs


class TaskLosses:
    """The losses of functions by task, in the form ``losses(model, batch)``.

    Each function is ``function(outputs, targets)``, or ``function(model, batch)`` if its first parameter is called
    ``model``. Outputs and targets that all tasks share are split by task: see :func:`own_part`.
    """

    def __init__(self, functions: Mapping[str, Callable[..., Any]], tasks: tuple[str, ...]) -> None:
        if set(functions) != set(tasks):
            raise ValueError(
                f"'losses' must have one function for each of the tasks {list(tasks)}. Got {list(functions)} instead."
            )
        self.functions = {task: functions[task] for task in tasks}
        for task, function in self.functions.items():
            if not callable(function):
                raise TypeError(f"'losses[{task!r}]' must be a function. Got {type(function).__name__} instead.")
            check_takes(f"losses[{task!r}]", function, "take (outputs, targets), or (model, batch)", "first", "second")

    def __call__(self, model: Callable[..., Any], batch: Any) -> dict[str, Any]:
        if isinstance(batch, TaskBatch):
            return {task: self._own(task, model, batch) for task in self.functions}
        outputs = targets = None
        if not all(map(takes_model, self.functions.values())):
            inputs, targets = split_batch(batch)
            outputs = model(inputs)
        return {
            task: function(model, batch)
            if takes_model(function)
            else function(*(own_part(each, task, list(self.functions)) for each in (outputs, targets)))
            for task, function in self.functions.items()
        }

    def arguments(self, model: Callable[..., Any], batch: Any) -> dict[str, tuple[Any, Any]]:
        """The outputs and targets of which each function ``(outputs, targets)`` gets its part, by task."""
        tasks = [task for task, function in self.functions.items() if not takes_model(function)]
        if not isinstance(batch, TaskBatch):
            inputs, targets = split_batch(batch) if tasks else (None, None)
            return dict.fromkeys(tasks, (widened(model(inputs)), targets) if tasks else (None, None))
        pairs = {task: split_batch(batch[task], task) for task in tasks if batch.samples[task]}
        return {task: (widened(model(inputs)), {task: targets}) for task, (inputs, targets) in pairs.items()}

    def _own(self, task: str, model: Callable[..., Any], batch: TaskBatch) -> Any:
        function = self.functions[task]
        if not batch.samples[task]:
            return torch.full((), torch.nan, device=_device(batch[task]))
        if takes_model(function):
            return function(model, batch[task])
        inputs, targets = split_batch(batch[task], task)
        return function(own_part(widened(model(inputs)), task, list(self.functions)), targets)


class SharedLosses(TaskLosses):
    """The losses of functions by task for data that all tasks share, in the form ``losses(outputs, targets)``."""

    def __call__(self, outputs: Any, targets: Any) -> dict[str, Any]:
        tasks = list(self.functions)
        return {
            task: function(own_part(outputs, task, tasks), own_part(targets, task, tasks))
            for task, function in self.functions.items()
        }


def make_losses(functions: Mapping[str, Callable[..., Any]], tasks: tuple[str, ...], *, by_task: bool) -> TaskLosses:
    """Combine functions by task into one function of all losses, for data ``by_task`` or shared data."""
    made = TaskLosses(functions, tasks)
    if by_task or any(map(takes_model, made.functions.values())):
        return made
    return SharedLosses(functions, tasks)


def takes_model(function: Callable[..., Any]) -> bool:
    """Whether a function of losses has the general form, ``function(model, batch)``."""
    try:
        return list(inspect.signature(function).parameters)[:1] == ["model"]
    except (TypeError, ValueError):
        return False


def split_batch(
    batch: Any, task: str | None = None, reader: str = "losses(outputs, targets)", general: str = "losses(model, batch)"
) -> tuple[Any, Any]:
    """Split a batch into inputs and targets; errors name the ``reader`` and the ``general`` form for other batches."""
    if not isinstance(batch, (tuple, list)) or len(batch) < 2:
        owner = "a batch" if task is None else f"a batch of task {task!r}"
        rule = f"{owner} must be (inputs, targets) for {reader}; for others write {general}"
        raise TypeError(f"{rule}. Got {describe_value(batch)} instead.")
    inputs, *targets = batch
    return inputs, targets[0] if len(targets) == 1 else tuple(targets)


def own_part(value: Any, task: str, tasks: list[str]) -> Any:
    """The part of a value for a task: its entry in a dictionary or in a tuple of one part per task; else the whole."""
    if isinstance(value, Mapping) and task in value:
        return value[task]
    if isinstance(value, (tuple, list)) and len(value) == len(tasks):
        return value[tasks.index(task)]
    return value


def runs_otherwise(
    function: Callable[..., Any], outputs: Any, targets: Any, task: str, tasks: list[str]
) -> bool | None:
    """Whether a function of a task returns another number if outputs or targets are split otherwise.

    A tuple of one part per task may belong together, and a tensor may have a column for each task. False says that the
    function fails on these, so that what it gets must be meant. None says that it makes no difference.
    """
    pairs = itertools.product(_readings(outputs, task, tasks), _readings(targets, task, tasks))
    values = list[float | None]()
    for first, second in pairs:
        try:
            values.append(float(function(first, second)))
        except Exception:
            values.append(None)
    own, *others = values
    if own is None or not any(other is not None for other in others):
        return False
    return True if any(other is not None and other != own and other == other for other in others) else None


def _readings(value: Any, task: str, tasks: list[str]) -> list[Any]:
    """The part of a value for a task, and what else may be meant."""
    own = own_part(value, task, tasks)
    if own is not value:
        return [own] if isinstance(value, Mapping) else [own, value]
    if isinstance(value, Tensor) and value.ndim > 1 and len(tasks) in (value.shape[1], value.shape[-1]):
        return [value, value.select(1 if value.shape[1] == len(tasks) else -1, tasks.index(task))]
    return [value]


def labelled_share(batch: Any, tasks: Sequence[str], *, columns: bool) -> Tensor | float:
    """The share of each task's labels in a batch that are not NaN, ``[m]``; 1 where labels are not told by task.

    It is also 1 for a task whose labels are all NaN: a loss that it has in spite of that does not depend on them.
    ``columns`` says that all parts of a tuple but the first are targets.
    """
    parts: Any = batch
    if isinstance(batch, TaskBatch):
        parts = {task: own[1] for task, own in batch.items() if isinstance(own, (tuple, list)) and len(own) == 2}
    elif isinstance(batch, (tuple, list)) and (len(batch) == 2 or (columns and len(batch) > 2)):
        parts = split_batch(batch)[1]
        parts = parts.unbind(1) if isinstance(parts, Tensor) and parts.shape[1:] == (len(tasks),) else parts
    if isinstance(parts, (tuple, list)) and len(parts) == len(tasks):
        parts = dict(zip(tasks, parts, strict=True))
    labels = [parts.get(task) for task in tasks] if isinstance(parts, Mapping) else []
    if not any(isinstance(part, Tensor) and part.is_floating_point() for part in labels):
        return 1.0
    one = torch.ones((), dtype=torch.float64, device=_device(labels))
    shares = [part.isnan().logical_not().double().mean() if isinstance(part, Tensor) else one for part in labels]
    known = torch.stack(shares)
    return torch.where(known > 0, known, 1.0)


def loss_functions(losses: Any) -> dict[str, Any]:
    """The user's loss functions without the arguments of a partial, by their names in messages."""
    if isinstance(losses, TaskLosses):
        return {f"losses[{task!r}]": _unwrapped(function) for task, function in losses.functions.items()}
    return {"losses": _unwrapped(losses)}


def _unwrapped(function: Any) -> Any:
    return _unwrapped(function.func) if isinstance(function, functools.partial) else function


def widened(outputs: Any) -> Any:
    """Outputs in float32 or better: the mean of a loss in bfloat16 has only two correct digits."""
    if isinstance(outputs, Tensor):
        return outputs.float() if outputs.dtype in _LOW else outputs
    if type(outputs) in (tuple, list):
        return type(outputs)(widened(part) for part in outputs)
    return {key: widened(part) for key, part in outputs.items()} if type(outputs) is dict else outputs


def _device(batch: Any) -> torch.device | None:
    if isinstance(batch, Tensor):
        return batch.device
    parts = list(batch.values()) if isinstance(batch, Mapping) else batch if isinstance(batch, (tuple, list)) else ()
    return next((device for part in parts if (device := _device(part)) is not None), None)
