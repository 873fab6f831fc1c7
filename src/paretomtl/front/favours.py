"""The tasks that a preference favours, in the words of somebody who does not know vectors."""

from __future__ import annotations

from torch import Tensor

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
