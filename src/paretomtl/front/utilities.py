"""Utilities: what a user may want of the losses, drawn at random, and the scale on which losses have no units.

All functions take losses in float64. A utility is a cost here: lower is better, as for losses.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import torch
from torch import Tensor

from paretomtl._support.argument_checks import blocks, check_count, check_seed, quote
from paretomtl.core import nondominated

Kind: TypeAlias = Literal["both", "linear", "tchebycheff"]
"""The utilities to draw: weighted sums, weighted maxima, or both in turn."""

UTILITIES = 1000
"""How many are drawn by default: the mean over them is then exact to about a thirtieth of its spread."""


@dataclass(frozen=True)
class Scale:
    """The affine change of each loss that maps the best one to 0 and the worst one of a trade-off to 1.

    Attributes:
        ideal: ``[m]``.
        sides: ``[m]``, positive; infinite for a task that does not count, because all its losses are the same.
    """

    ideal: Tensor
    sides: Tensor

    def apply(self, losses: Tensor) -> Tensor:
        """Scaled losses ``[..., m]``."""
        return (losses - self.ideal) / self.sides


def scale_of(losses: Tensor, within: Tensor | None = None) -> Scale:
    """The scale of the losses ``[n, m]`` of all fronts that are compared: finite, n at least 1.

    The ideal point has the smallest loss of each task. The other end is the nadir, the largest loss among non-dominated
    rows. Where that is the ideal, as in a front with one non-dominated model, it is the largest loss of any row.

    Args:
        losses: on one split.
        within: a reference point ``[m]``. Rows beyond it have no part in the nadir, unless all are: a model that never
            trained a task can have any loss in it.
    """
    near = losses if within is None else losses[(losses < within).all(-1)]
    near = near if len(near) else losses
    ideal = losses.amin(0)
    worst = near[nondominated(near)].amax(0)
    for rows in (near, losses):
        worst = torch.where(worst > ideal, worst, rows.amax(0))
    return Scale(ideal, torch.where(worst > ideal, worst - ideal, torch.inf))


@dataclass(frozen=True)
class Utilities:
    """N utilities of m scaled losses l. Both kinds are c where every loss is c.

    Attributes:
        weights: ``[N, m]``, on the simplex.
        linear: ``[N]`` bool: Σ_i w_i l_i if true, else max_i w_i l_i / max_i w_i.
    """

    weights: Tensor
    linear: Tensor

    def of(self, losses: Tensor) -> Tensor:
        """The utilities of scaled losses ``[K, m]``, as ``[K, N]``; lower is better."""
        values = losses @ self.weights.T
        tops = self.weights[~self.linear]
        tops = tops / tops.amax(-1, keepdim=True)
        for part in blocks(len(losses), tops.numel()):
            values[part, ~self.linear] = (losses[part, None, :] * tops).amax(-1)
        return values


def draw_utilities(count: int, tasks: int, kind: Kind = "both", seed: int = 0) -> Utilities:
    """Draw utilities whose weights are uniform on the simplex, from a generator of their own.

    Args:
        count: N.
        tasks: m.
        kind: "both" has linear ones at even places, and Tchebycheff at odd ones.
        seed: the same seed always gives the same utilities.

    Example:
        >>> drawn = draw_utilities(4, tasks=3)
        >>> drawn.linear.tolist(), drawn.of(torch.full((1, 3), 0.5).double()).tolist()
        ([True, False, True, False], [[0.5, 0.5, 0.5, 0.5]])
    """
    count = check_count("utilities", count)
    if kind not in get_args(Kind):
        raise ValueError(f"'kind' must be one of {', '.join(get_args(Kind))}. Got {quote(kind)} instead.")
    seed = check_seed("seed", seed)
    uniform = torch.rand(count, tasks, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    share = -uniform.clamp_min(torch.finfo(torch.float64).tiny).log()  # exponential: its shares are uniform
    weights = share / share.sum(-1, keepdim=True)
    turns = torch.arange(count) % 2 == 0
    return Utilities(weights, turns if kind == "both" else torch.full_like(turns, kind == "linear"))
