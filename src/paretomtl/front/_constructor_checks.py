"""Checks of the arguments of a front's constructors: losses, metrics, preferences and names."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from paretomtl._support.argument_checks import as_numbers, as_rows, check_names, quote
from paretomtl._support.splits import SPLITS
from paretomtl.core import preferences as vectors
from paretomtl.front.limits import MAX_SOLUTIONS

_LOSSES_OF = {
    "best_trials": ": write [trial.values for trial in study.best_trials], negated where the study maximises",
    "F": ": write result.F",
}
"""How losses are read from what other programs return, by an attribute: studies of Optuna, results of pymoo."""


def task_names(tasks: Any) -> tuple[str, ...]:
    """The names of the tasks: at least two, all different."""
    if isinstance(tasks, (str, set, frozenset)) or not isinstance(tasks, Iterable):
        raise TypeError(f"'tasks' must be a list of names. Got {quote(tasks)} instead.")
    names = tuple(tasks)
    for task in names:
        if not isinstance(task, str):
            raise TypeError(f"'tasks' must be names. Got {quote(task)} instead.")
    check_names(names)
    if len(set(names)) < len(names):
        raise ValueError(f"'tasks' must be distinct names. Got {quote(list(names))} instead.")
    return names


def check_splits(given: Mapping[Any, Any]) -> None:
    """Refuse a dictionary of losses whose keys are not splits."""
    unknown = [split for split in given if split not in SPLITS]
    if unknown or not given:
        shown = repr(unknown[0]) if unknown else "none"
        raise ValueError(f"'losses' must be by split, {', '.join(map(repr, SPLITS))}. Got {shown} instead.")


def loss_table(given: Any, split: str, tasks: Sequence[str]) -> Tensor:
    """Losses ``[K, m]`` in float64, from anything that has rows."""
    rule = f"'losses' must be rows of {len(tasks)} numbers, one for each task"
    if hasattr(given, "columns"):
        missing = [task for task in tasks if task not in given.columns]
        if missing:
            known = list(given.columns)
            raise ValueError(f"'losses' must have a column for each task. Got {known}, without {missing[0]!r}.")
        given = given[list(tasks)].to_numpy()
    lists = given.tolist() if hasattr(given, "tolist") else given
    if isinstance(lists, (str, Mapping)) or not isinstance(lists, Iterable):
        found = [remedy for name, remedy in _LOSSES_OF.items() if hasattr(given, name)]
        raise TypeError(f"{rule}. Got {type(given).__name__} on {split} instead{found[0] if found else ''}.")
    rows = []
    for k, row in enumerate(lists):
        values = as_numbers(row)
        if values is None or len(values) != len(tasks):
            kind = TypeError if values is None else ValueError
            raise kind(f"{rule}. Got {quote(row)} in row {k} on {split} instead.")
        rows.append(values)
    if not rows:
        raise ValueError(f"{rule}, not empty. Got none on {split}.")
    if len(rows) > MAX_SOLUTIONS:
        raise ValueError(
            f"'losses' must have at most {MAX_SOLUTIONS:,} rows, the most models in a front. Got {len(rows):,} instead."
        )
    return torch.tensor(rows, dtype=torch.float64)


def check_finite(split: str, table: Tensor, tasks: Sequence[str], names: Any) -> None:
    """Refuse losses that are not finite; the error names the row and the task."""
    wrong = (~table.isfinite()).nonzero()
    if not len(wrong):
        return
    k, task = wrong[0].tolist()
    called = f" ({names[k]!r})" if isinstance(names, (list, tuple)) and k < len(names) else ""
    raise ValueError(
        f"'losses' must be finite. Got {float(table[k, task])} for {tasks[task]!r} in row {k}{called} on {split}: "
        "leave that model out of losses, metrics, names and preferences."
    )


def metrics_by_split(
    given: Any, splits: Sequence[str], tasks: Sequence[str], count: int
) -> dict[str, dict[str, Tensor]]:
    """Metrics by split and name, ``[K]`` each."""
    if given is None:
        return {}
    if hasattr(given, "columns"):
        given = {name: given[name] for name in given.columns}
    if not isinstance(given, Mapping):
        raise TypeError(f"'metrics' must be a dictionary by name, or by split. Got {type(given).__name__} instead.")
    by_split = bool(given) and all(isinstance(part, Mapping) or hasattr(part, "columns") for part in given.values())
    if not by_split:
        if given and len(splits) > 1:
            raise ValueError(
                f"'metrics' must be by split, as losses are: {{{splits[0]!r}: {{name: values}}}}. Got {list(given)}."
            )
        given = {splits[0]: given}
    unknown = [split for split in given if split not in splits]
    if unknown:
        raise ValueError(f"'metrics' must be on splits that losses are on, {list(splits)}. Got {unknown[0]!r} instead.")
    tables = {}
    for split in splits:
        part = given.get(split, {})
        columns = {name: part[name] for name in part.columns} if hasattr(part, "columns") else part
        tables[split] = {name: _metric(name, values, split, tasks, count) for name, values in columns.items()}
    return {split: columns for split, columns in tables.items() if columns}


def _metric(name: Any, values: Any, split: str, tasks: Sequence[str], count: int) -> Tensor:
    if not isinstance(name, str):
        raise TypeError(f"'metrics' must have names. Got {quote(name)} instead.")
    if name in tasks:
        raise ValueError(f"'metrics' must not have names of tasks, which stand for losses. Got {quote(name)}.")
    numbers = as_numbers(values)
    if numbers is None:
        raise TypeError(
            f"'metrics' must be numbers, one for each model. Got {quote(values)} for {quote(name)} on {split} instead."
        )
    if len(numbers) != count:
        rule = f"one number for each of the {count} models"
        raise ValueError(f"'metrics' must have {rule}. Got {len(numbers)} for {quote(name)} on {split} instead.")
    return torch.tensor(numbers, dtype=torch.float64)


def better_by_name(given: Any, metrics: Mapping[str, Mapping[str, Tensor]]) -> dict[str, str]:
    """Whether higher or lower is better, for each metric.

    There is no default: a wrong guess would choose the worst model and report it as the best.
    """
    names = list(dict.fromkeys(name for part in metrics.values() for name in part))
    directions = given if isinstance(given, Mapping) else dict.fromkeys(names, given)
    unknown = [name for name in directions if name not in names]
    if unknown:
        raise ValueError(f"'better' must be for metrics, {names}. Got {unknown[0]!r} instead.")
    for name in names:
        if directions.get(name) not in ("higher", "lower"):
            rule = f"'better' must say \"higher\" or \"lower\" for each metric, such as {{{name!r}: 'higher'}}"
            raise ValueError(f"{rule}. Got {directions.get(name)!r} for {quote(name)} instead.")
    return {name: directions[name] for name in names}


def preference_rows(given: Any, reading: str | None, count: int, tasks: int) -> tuple[Tensor, str]:
    """The rows ``[K, m]`` and their reading; ``[K, 0]`` and "none" if none are given.

    Rows of NaN or zeros could be mistaken for preferences somewhere.
    """
    if given is None:
        if reading is not None:
            raise ValueError(f"'reading' must come with 'preferences'. Got {quote(reading)} without any.")
        return torch.zeros(count, 0, dtype=torch.float64), "none"
    if reading not in ("direction", "importance"):
        rule = "'reading' must say what 'preferences' mean, \"direction\" (a large part allows a large loss) or "
        raise ValueError(f'{rule}"importance" (a large part asks for a small loss). Got {quote(reading)} instead.')
    rows = as_rows("preferences", given)
    if rows.shape != (count, tasks):
        raise ValueError(f"'preferences' must have shape [{count}, {tasks}]. Got {list(rows.shape)} instead.")
    if reading == "direction":
        return vectors.validate(rows), reading
    for k, row in enumerate(rows.tolist()):
        if not all(math.isfinite(value) and value >= 0 for value in row) or not any(row):
            raise ValueError(f"'preferences' must be numbers, not negative and not all zero. Got {row} in row {k}.")
    return rows, reading


def distinct_names(given: Any, count: int) -> tuple[str, ...]:
    """A name for each model; empty if none are given."""
    if given is None:
        return ()
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise TypeError(f"'names' must be a list of strings. Got {quote(given)} instead.")
    names = tuple(given)
    for name in names:
        if not isinstance(name, str) or not name.strip():
            raise TypeError(f"'names' must be non-empty strings. Got {quote(name)} instead.")
    if len(names) != count:
        raise ValueError(f"'names' must be one for each of the {count} models. Got {len(names)} instead.")
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"'names' must be distinct. Got {quote(twice)} twice.")
    return names


def reference_point(given: Any, tasks: int) -> tuple[float, ...] | None:
    """A finite number for each task, or None."""
    if given is None:
        return None
    point = as_numbers(given)
    if point is None or len(point) != tasks or not all(map(math.isfinite, point)):
        raise ValueError(f"'reference' must have one finite number per task ({tasks}). Got {quote(given)} instead.")
    return tuple(point)
