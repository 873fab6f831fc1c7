"""Pareto dominance (paper, section 3.1)."""

from __future__ import annotations

import torch
from torch import Tensor

from paretomtl._support.argument_checks import blocks, check_trailing


def dominates(a: Tensor, b: Tensor) -> Tensor:
    """Whether ``a [..., m]`` is nowhere worse than ``b [..., m]`` and somewhere better, ``[...]`` bool.

    Equal vectors do not dominate each other. A vector with a NaN dominates nothing, and every vector without one
    dominates it.

    Example:
        >>> import torch
        >>> dominates(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 3.0]))
        tensor(True)
    """
    check_trailing("a", a, "m")
    check_trailing("b", b, a.shape[-1])
    broken_a, broken_b = a.isnan().any(-1), b.isnan().any(-1)
    better = (a <= b).all(-1) & (a < b).any(-1)
    return ~broken_a & (better | broken_b)


def nondominated(losses: Tensor) -> Tensor:
    """Whether each of the K vectors in ``losses [..., K, m]`` is non-dominated, ``[..., K]`` bool.

    All copies of a non-dominated vector are non-dominated. A vector with a NaN never is. Memory grows with K, not with
    its square: vectors are compared in blocks.

    Example:
        >>> import torch
        >>> nondominated(torch.tensor([[1.0, 3.0], [2.0, 2.0], [2.0, 4.0]]))
        tensor([ True,  True, False])
    """
    check_trailing("losses", losses, "K", "m")
    broken = losses.isnan().any(-1)
    parts = [_beaten(losses, broken, block) for block in blocks(losses.shape[-2], losses.numel())]
    return ~(parts[0] if len(parts) == 1 else torch.cat(parts, -1)) & ~broken


def _beaten(losses: Tensor, broken: Tensor, block: slice) -> Tensor:
    """Which vectors of a block are dominated; task by task, because reductions over few numbers are slow."""
    no_worse = torch.ones_like(broken[..., :, None] & broken[..., None, block])
    better = torch.zeros_like(no_worse)
    for column in losses.unbind(-1):
        one, other = column[..., :, None], column[..., None, block]
        no_worse, better = no_worse & (one <= other), better | (one < other)
    return (~broken[..., :, None] & ((no_worse & better) | broken[..., None, block])).any(-2)
