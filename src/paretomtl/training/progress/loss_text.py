"""The losses of all models in a line of progress."""

from __future__ import annotations

import math
from collections.abc import Sequence

_MANY = 30  # numbers in a line; more are given as ranges


def losses_in_words(tasks: Sequence[str], rows: Sequence[tuple[int, list[float]]]) -> str:
    """The losses of each subproblem; if there are many, the range in each task.

    Example:
        >>> losses_in_words(["a", "b"], [(0, [0.5, 2.0]), (1, [0.25, 4.0])])
        ' 0: 0.5 2  1: 0.25 4'
        >>> losses_in_words(["a", "b"], [(k, [0.5 + k, 2.0]) for k in range(20)])
        ' of 20 models: a 0.5 to 19.5, b 2 to 2'
    """
    if len(rows) * len(tasks) <= _MANY:
        return " " + "  ".join(f"{k}: " + " ".join(f"{value:.3g}" for value in row) for k, row in rows)
    columns = zip(*(row for _, row in rows), strict=True)
    return f" of {len(rows)} models: {', '.join(map(_range, tasks, columns))}"


def _range(task: str, values: Sequence[float]) -> str:
    finite = [value for value in values if math.isfinite(value)]
    return f"{task} {min(finite):.3g} to {max(finite):.3g}" if finite else f"{task} not finite"
