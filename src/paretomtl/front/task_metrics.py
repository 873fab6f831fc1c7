"""The metric of a task: the first one whose name begins with that of the task."""

from __future__ import annotations

from collections.abc import Sequence


def task_metrics(tasks: Sequence[str], metrics: Sequence[str]) -> dict[str, str]:
    """The metric of each task that has one; a metric belongs to the longest name that it begins with.

    Example:
        >>> task_metrics(["left", "left eye"], ["left eye accuracy", "sum"])
        {'left eye': 'left eye accuracy'}
    """
    found: dict[str, str] = {}
    for metric in metrics:
        owners = [task for task in tasks if metric.startswith(f"{task} ")]
        if owners:
            found.setdefault(max(owners, key=len), metric)
    return found
