"""Data and losses by task: tasks whose labels come from different data sets."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from paretomtl._support.signatures import check_takes
from paretomtl.problems._conversion import as_tensors, is_array

if TYPE_CHECKING:
    from paretomtl.problems._problem import Metric, Problem

_MODES = ("max_size_cycle", "min_size")
_LOW = (torch.bfloat16, torch.float16)  # what autocast makes of outputs


@dataclass(frozen=True)
class PerTask:
    """A data set for each task, for tasks whose labels come from different places.

    A batch is ``{task: batch of its own data set}``. A dictionary keyed by task names stands for one of these with the
    default mode.

    Attributes:
        data: by task name: a tuple of tensors or arrays, a ``Dataset``, or a ``DataLoader``.
        mode: "max_size_cycle" ends an epoch with the longest data set, and starts shorter ones again, reshuffled;
            "min_size" ends it with the shortest. Splits that are evaluated are read to their ends, each sample once.

    Example:
        >>> ages, sexes = (torch.randn(90, 3), torch.randn(90)), (torch.randn(60, 3), torch.ones(60))
        >>> PerTask({"age": ages, "sex": sexes}, mode="min_size").mode
        'min_size'
    """

    data: Mapping[str, Any]
    mode: Literal["max_size_cycle", "min_size"] = "max_size_cycle"

    def __post_init__(self) -> None:
        if not isinstance(self.data, Mapping) or not self.data:
            raise TypeError(f"'data' must be data sets by task name. Got {type(self.data).__name__} instead.")
        if self.mode not in _MODES:
            raise ValueError(f"'mode' must be one of {list(_MODES)}. Got {self.mode!r} instead.")


class TaskBatch(dict[str, Any]):
    """A batch of each task's own data set, by task name.

    Attributes:
        samples: how many samples each counts for; 0 for one that stands in where a data set has no further batch.
    """

    def __init__(self, batches: Mapping[str, Any], samples: Mapping[str, int]) -> None:
        super().__init__(batches)
        self.samples = dict(samples)

    def map(self, function: Callable[[Any], Any]) -> TaskBatch:
        """The same with a function of each task's batch in its place."""
        return TaskBatch({task: function(batch) for task, batch in self.items()}, self.samples)

    def without_stand_ins(self) -> TaskBatch:
        """The tasks that have samples of their own in this batch."""
        return TaskBatch({task: batch for task, batch in self.items() if self.samples[task]}, self.samples)


def as_split(name: str, data: Any, tasks: Sequence[str]) -> Any:
    """What a split is trained from: tensors, a Dataset, a DataLoader, or these by task; arrays become tensors.

    Args:
        name: what error messages call it.
        data: what the user gave.
        tasks: the names of the tasks.
    """
    if hasattr(data, "iterables") and hasattr(data, "flattened"):  # Lightning's CombinedLoader
        mode: Any = getattr(data, "_mode", "max_size_cycle")
        if mode not in _MODES or not isinstance(data.iterables, Mapping):
            raise ValueError(
                f"'{name}' must be a CombinedLoader over a dictionary by task name, in one of the modes "
                f"{list(_MODES)}. Got mode {mode!r} over a {type(data.iterables).__name__} instead."
            )
        data = PerTask(data.iterables, mode)
    elif isinstance(data, Mapping) and any(_is_data_set(part) for part in data.values()):
        data = PerTask(data)
    if not isinstance(data, PerTask):
        return as_tensors(name, data)
    if set(data.data) != set(tasks):
        raise ValueError(
            f"'{name}' must have one data set for each of the tasks {list(tasks)}. Got {list(data.data)} instead."
        )
    found = {task: as_tensors(f"{name}[{task!r}]", data.data[task]) for task in tasks}
    for task, part in found.items():
        if part is None or isinstance(part, PerTask):
            raise TypeError(f"'{name}[{task!r}]' must be a data set. Got {type(part).__name__} instead.")
    return PerTask(found, data.mode)


def _is_data_set(part: Any) -> bool:
    """Whether it is a data set of its own, rather than one column of values."""
    if isinstance(part, (DataLoader, Dataset, Mapping)):
        return True
    return isinstance(part, (tuple, list)) and bool(part) and all(is_array(each) for each in part)


class TaskLosses:
    """The losses of functions by task, in the form ``losses(model, batch)``.

    Each function is ``function(outputs, targets)``, or ``function(model, batch)`` if its first parameter is called
    ``model``. Outputs and targets that all tasks share are handed out by task: see :func:`own_part`.
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

    def _own(self, task: str, model: Callable[..., Any], batch: TaskBatch) -> Any:
        function = self.functions[task]
        if not batch.samples[task]:
            return torch.full((), torch.nan, device=_device(batch[task]))
        if takes_model(function):
            return function(model, batch[task])
        inputs, targets = split_batch(batch[task], task)
        return function(own_part(_widened(model(inputs)), task, list(self.functions)), targets)


class SharedLosses(TaskLosses):
    """The same for data that all tasks share, in the form ``losses(outputs, targets)``."""

    def __call__(self, outputs: Any, targets: Any) -> dict[str, Any]:
        tasks = list(self.functions)
        return {
            task: function(own_part(outputs, task, tasks), own_part(targets, task, tasks))
            for task, function in self.functions.items()
        }


def make_losses(functions: Mapping[str, Callable[..., Any]], tasks: tuple[str, ...], *, by_task: bool) -> TaskLosses:
    """Functions by task as one function of all losses, of data ``by_task`` or of data that all share."""
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
    """Inputs and targets of a batch, for a ``reader`` of these; ``general`` is the form for other batches."""
    if not isinstance(batch, (tuple, list)) or len(batch) < 2:
        owner = "a batch" if task is None else f"a batch of task {task!r}"
        rule = f"{owner} must be (inputs, targets) for {reader}; for others write {general}"
        raise TypeError(f"{rule}. Got {describe(batch)} instead.")
    inputs, *targets = batch
    return inputs, targets[0] if len(targets) == 1 else tuple(targets)


def own_part(value: Any, task: str, tasks: list[str]) -> Any:
    """What belongs to a task: its entry of a dictionary or of a tuple with one part for each task; else the whole."""
    if isinstance(value, Mapping) and task in value:
        return value[task]
    if isinstance(value, (tuple, list)) and len(value) == len(tasks):
        return value[tasks.index(task)]
    return value


def describe(found: Any) -> str:
    """What was found, in few words."""
    if isinstance(found, Tensor):
        return f"a tensor of shape {list(found.shape)}"
    if isinstance(found, (tuple, list)):
        return f"a {type(found).__name__} of {len(found)}"
    if isinstance(found, Mapping):
        return f"a {type(found).__name__} with keys {list(found)[:6]}"
    return type(found).__name__


def loss_functions(losses: Any) -> dict[str, Any]:
    """The functions that users wrote for the losses, by what messages call them."""
    if isinstance(losses, TaskLosses):
        return {f"losses[{task!r}]": function for task, function in losses.functions.items()}
    return {"losses": losses}


def measure(problem: Problem, metric: Metric, first: Any, second: Any) -> Any:
    """A metric of outputs and targets, or of a model and batches; one of a task sees what belongs to the task.

    Like losses, the metric of a task takes a model and batches if its first parameter is called ``model``.
    """
    if metric.task is None:
        return metric.function(first, second)
    task, tasks = metric.task, list(problem.tasks)
    if not problem.takes_model:
        return metric.function(own_part(first, task, tasks), own_part(second, task, tasks))
    if takes_model(metric.function):
        own_batches = [batch.get(task) if isinstance(batch, TaskBatch) else batch for batch in second]
        return metric.function(first, [own for own in own_batches if own is not None])
    outputs, targets = [], []
    with torch.no_grad():
        for batch in second:
            own = batch.get(task) if isinstance(batch, TaskBatch) else batch
            if own is not None:
                inputs, wanted = split_batch(own, task, "a metric (outputs, targets)", "function(model, batches)")
                outputs.append(own_part(_widened(first(inputs)), task, tasks))
                targets.append(wanted if isinstance(batch, TaskBatch) else own_part(wanted, task, tasks))
    return metric.function(_concatenate(outputs), _concatenate(targets))


def _concatenate(parts: list[Any]) -> Any:
    if isinstance(parts[0], Tensor):
        return torch.cat(parts)
    if isinstance(parts[0], Mapping):
        return {key: _concatenate([part[key] for part in parts]) for key in parts[0]}
    return tuple(_concatenate(list(column)) for column in zip(*parts, strict=True))


def _widened(outputs: Any) -> Any:
    """Outputs in float32 or better: the mean of a loss in bfloat16 is good to two digits only."""
    if isinstance(outputs, Tensor):
        return outputs.float() if outputs.dtype in _LOW else outputs
    if type(outputs) in (tuple, list):
        return type(outputs)(_widened(part) for part in outputs)
    return {key: _widened(part) for key, part in outputs.items()} if type(outputs) is dict else outputs


def _device(batch: Any) -> torch.device | None:
    if isinstance(batch, Tensor):
        return batch.device
    parts = list(batch.values()) if isinstance(batch, Mapping) else batch if isinstance(batch, (tuple, list)) else ()
    return next((found for part in parts if (found := _device(part)) is not None), None)
