"""Data by task: tasks whose labels come from different data sets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from torch.utils.data import DataLoader, Dataset

from paretomtl._support.argument_checks import quote
from paretomtl.problems._conversion import as_tensors, is_array

_MODES = ("max_size_cycle", "min_size")


@dataclass(frozen=True)
class PerTask:
    """A data set for each task, for tasks whose labels come from different sources.

    A batch is ``{task: batch of its own data set}``. A dictionary keyed by task names is short for this class with the
    default mode.

    Attributes:
        data: by task name: a tuple of tensors or arrays, a ``Dataset``, or a ``DataLoader``.
        mode: "max_size_cycle" ends an epoch with the longest data set, and restarts shorter ones, reshuffled;
            "min_size" ends it with the shortest. Evaluation reads every sample of a split once, whatever the mode.

    Example:
        >>> import torch
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
            raise ValueError(f"'mode' must be one of {list(_MODES)}. Got {quote(self.mode)} instead.")


class TaskBatch(dict[str, Any]):
    """A batch of each task's own data set, by task name.

    Attributes:
        samples: how many samples each counts for; 0 for a placeholder where a data set has no further batch.
    """

    def __init__(self, batches: Mapping[str, Any], samples: Mapping[str, int]) -> None:
        super().__init__(batches)
        self.samples = dict(samples)

    def map(self, function: Callable[[Any], Any]) -> TaskBatch:
        """Apply a function to each task's batch."""
        return TaskBatch({task: function(batch) for task, batch in self.items()}, self.samples)

    def without_stand_ins(self) -> TaskBatch:
        """The batch without placeholders: only tasks that have samples in it."""
        return TaskBatch({task: batch for task, batch in self.items() if self.samples[task]}, self.samples)


def as_split(name: str, data: Any, tasks: Sequence[str]) -> Any:
    """Convert a split to tensors, a Dataset, a DataLoader, or these by task.

    Args:
        name: the name of the split, for error messages.
        data: as the user gave it.
        tasks: the names of the tasks.
    """
    if hasattr(data, "iterables") and hasattr(data, "flattened"):  # Lightning's CombinedLoader
        mode: Any = getattr(data, "_mode", "max_size_cycle")
        if mode not in _MODES or not isinstance(data.iterables, Mapping):
            raise ValueError(
                f"'{name}' must be a CombinedLoader over a dictionary by task name, in one of the modes "
                f"{list(_MODES)}. Got mode {quote(mode)} over a {type(data.iterables).__name__} instead."
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
    by_task = {task: as_tensors(f"{name}[{task!r}]", data.data[task]) for task in tasks}
    for task, part in by_task.items():
        if part is None or isinstance(part, PerTask):
            raise TypeError(f"'{name}[{task!r}]' must be a data set. Got {type(part).__name__} instead.")
    return PerTask(by_task, data.mode)


def _is_data_set(part: Any) -> bool:
    """Whether it is a whole data set, rather than one column of values."""
    if isinstance(part, (DataLoader, Dataset, Mapping)):
        return True
    return isinstance(part, (tuple, list)) and bool(part) and all(is_array(each) for each in part)
