"""The tasks that a preference favours, in the words of somebody who does not know vectors."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from paretomtl._support.text import shorten
from paretomtl.front._data import FrontData

_CLEARLY = 1.2  # times the share that a task has if all are alike


def favours(preferences: Tensor, reading: str) -> list[list[int]] | None:
    """The places of the tasks that each preference favours, the most favoured first; None without preferences.

    A direction allows a large loss where it is large, so it favours the tasks with small entries; an importance is the
    opposite. A task is favoured if its share is a fifth above that of equal shares. No task is, if all are alike.

    Args:
        preferences: ``[K, m]``.
        reading: what they mean: "direction" or "importance"; all others favour nothing.

    Example:
        >>> import torch
        >>> favours(torch.tensor([[0.1, 0.9], [0.7, 0.7]]), "direction")
        [[0], []]
        >>> favours(torch.tensor([[0.1, 0.9], [0.7, 0.7]]), "importance")
        [[1], []]
    """
    if reading not in ("direction", "importance"):
        return None
    shares = preferences.double()
    if reading == "direction":
        shares = 1.0 / shares.clamp_min(1e-12)
    shares = shares / shares.sum(-1, keepdim=True)
    clear = _CLEARLY / shares.shape[-1]
    return [[t for t in row.argsort(descending=True).tolist() if float(row[t]) > clear] for row in shares]


def model_favours(front: FrontData) -> list[list[int]] | None:
    """The places of the tasks that each model of a front favours; None without preferences.

    Directions that a probe measured are the losses that models have reached. Losses of different units would favour the
    same task in each of them, so they are compared with their mean over the models.
    """
    rows = front.preferences[list(front.subproblems)].double()
    if front.reading == "direction" and "probe" in front.measured and len(rows) > 1:
        rows = rows / rows.mean(0, keepdim=True).clamp_min(1e-12)
    return favours(rows, front.reading)


def favour_words(tasks: Sequence[str], places: Sequence[int], most: int = 24) -> str:
    """The favoured tasks in a few words; "balanced" if there are none.

    Args:
        tasks: all tasks.
        places: those that are favoured, as :func:`favours` gives them.
        most: letters of the text; a longer one is cut.

    Example:
        >>> favour_words(["a", "b", "c", "d"], [1]), favour_words(["a", "b", "c", "d"], [3, 1, 0])
        ('b', 'all but c')
    """
    if not places:
        return "balanced"
    if len(tasks) > 3 and len(places) == len(tasks) - 1:
        (other,) = set(range(len(tasks))) - set(places)
        return shorten(f"all but {tasks[other]}", most)
    return shorten(", ".join(tasks[t] for t in places[:2]), most)
