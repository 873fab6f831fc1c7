"""Reachable preferences: the loss ratios that models trained with fixed weights reach, and directions between them.

Evenly spread preference vectors ask for ratios of losses that no model may have. A few models with interior weights
show which ratios exist. On a convex front they spread over it; on a concave one they gather at its ends, because a
weighted sum has no minimum in between.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

CLUMPED = 0.4
"""Models clump if the median distance to the nearest other one is under this share of that of an even spread."""
LEAST_ENTRY = 0.03
"""The least entry of a direction of models that clump: a ratio to zero cannot be held."""
_BEYOND = 0.2  # power of the weights by which directions of broken models are moved
_DISTINCT = 2e-4  # directions nearer to each other than this ask for the same


class Reach(NamedTuple):
    """The result of a probe of K models.

    Attributes:
        directions: unit vectors ``[K, m]`` of the scaled losses; None if there are none to tell apart.
        factors: positive factors ``[m]`` of the losses, with a geometric mean of 1, under which the range between the
            ends is the same in every task; ones unless the models clump.
        crowding: the median distance to the nearest other model, as a share of that of an even spread between the ends;
            about 1 on a convex front, about 0 on a concave one, and NaN if there is no range.
    """

    directions: Tensor | None
    factors: Tensor
    crowding: float

    @property
    def clumped(self) -> bool:
        """Whether fixed weights leave most of the front empty."""
        return self.crowding < CLUMPED


def find_reachable(losses: Tensor, weights: Tensor, healthy: Tensor | None = None) -> Reach:
    r"""Directions that models can reach, from the losses of K models that were trained with fixed weights.

    The end of task i is the model with the largest weight on it. Losses are compared in units of the range between the
    ends, so that neither units nor a narrow range matter. The distance of each model to the nearest other one is
    divided by what it would be if the models lay at :math:`\sum_i \lambda_i e_i` between the ends :math:`e_i`, and the
    median of these ratios decides: one outlier or one close pair does not. Noise moves models apart; it can hide a
    clump, but never make one.

    Models that spread well keep the directions that they reached. Models that clump get directions spread between the
    ends, see :func:`spread_between`.

    Args:
        losses: ``[K, m]``, non-negative; means over enough batches that their noise is small.
        weights: ``[K, m]``, those of training.
        healthy: ``[K]`` bool; models that broke are left out. They get the direction of their weights between the ends.

    Example:
        >>> weights = torch.tensor([[0.9, 0.1], [0.5, 0.5], [0.1, 0.9]])
        >>> find_reachable(torch.tensor([[1.0, 4.0], [2.0, 2.0], [4.0, 1.0]]), weights).directions[1]
        tensor([0.7071, 0.7071], dtype=torch.float64)
        >>> clump = find_reachable(torch.tensor([[0.0, 4.0], [0.1, 3.9], [4.0, 0.0]]), weights)
        >>> clump.clumped, clump.directions[1]
        (True, tensor([0.7071, 0.7071], dtype=torch.float64))
    """
    losses, weights = losses.detach().double().cpu(), weights.detach().double().cpu()
    tasks = losses.shape[-1]
    good = losses.isfinite().all(-1) & (losses >= 0).all(-1) & losses.any(-1)
    if healthy is not None:
        good = good & healthy.cpu()
    ones = torch.ones(tasks, dtype=torch.float64)
    if int(good.sum()) < 2:
        return Reach(None, ones, float("nan"))
    shares = weights / weights.sum(-1, keepdim=True)
    chosen = torch.where(good[:, None], shares, -1.0).argmax(0)
    ends = losses[chosen]
    low, high = ends.amin(0), ends.amax(0)
    span = high - low
    places = _places(shares)
    crowding = float("nan")
    if len(set(chosen.tolist())) == tasks and bool((span > 1e-9 * high).all()):
        crowding = _crowding((losses - low) / span, places, (ends - low) / span, good)
    factors = ones
    if crowding < CLUMPED:
        factors = (span.log().mean() - span.log()).exp()
    between = spread_between(ends * factors, places)
    directions = lift_zeros(between) if crowding < CLUMPED and between is not None else None
    if directions is None:
        reached = torch.nn.functional.normalize(losses, dim=-1)
        # The neighbour of a broken end takes its place, so that its own is beyond that.
        beyond = reached if between is None else torch.nn.functional.normalize(between * shares**-_BEYOND, dim=-1)
        directions = torch.where(good[:, None], reached, beyond)
    return Reach(directions if _are_distinct(directions) else None, factors, crowding)


def spread_between(ends: Tensor, places: Tensor) -> Tensor | None:
    r"""Directions between the ends of a front, ``[K, m]`` unit vectors; None if an end has no direction.

    For two tasks, the angle of row k is :math:`\sum_i \lambda_{ki} \varphi_i` with the angles :math:`\varphi_i` of the
    ends: evenly spaced places give evenly spaced angles. For more tasks, row k is the direction of
    :math:`\sum_i \lambda_{ki} e_i / \|e_i\|`.

    Args:
        ends: losses of the model that favours each task, ``[m, m]``.
        places: ``λ [K, m]``, rows on the simplex; a corner is an end.

    Example:
        >>> spread_between(torch.tensor([[1.0, 3.0], [3.0, 1.0]]), torch.tensor([[0.5, 0.5], [0.0, 1.0]]))
        tensor([[0.7071, 0.7071],
                [0.9487, 0.3162]], dtype=torch.float64)
    """
    ends, places = ends.detach().double(), places.double()
    if not bool((ends.isfinite() & (ends >= 0)).all()) or not bool(ends.any(-1).all()):
        return None
    if len(ends) == 2:
        angles = places @ torch.atan2(ends[:, 1], ends[:, 0])
        rows = torch.stack([angles.cos(), angles.sin()], -1)
    else:
        rows = torch.nn.functional.normalize(places @ torch.nn.functional.normalize(ends, dim=-1), dim=-1)
    return rows.clamp_min(0.0)


def lift_zeros(directions: Tensor) -> Tensor:
    """Unit vectors without zeros: small entries are raised smoothly, so that directions that differ still do.

    Example:
        >>> lift_zeros(torch.tensor([[1.0, 0.0]]))
        tensor([[0.9996, 0.0300]])
    """
    return torch.nn.functional.normalize((directions.square() + LEAST_ENTRY**2).sqrt(), dim=-1)


def _places(shares: Tensor) -> Tensor:
    """Weights ``[K, m]`` stretched so that the least one is zero: rows near a corner move into it."""
    least = min(float(shares.min()), (1.0 - 1e-6) / shares.shape[-1])
    return (shares - least) / (1.0 - shares.shape[-1] * least)


def _crowding(points: Tensor, places: Tensor, ends: Tensor, good: Tensor) -> float:
    """The median over models of the distance to the nearest other one, over that of an even spread."""
    even = _nearest((places @ ends)[good])
    known = even > 0
    return float((_nearest(points[good])[known] / even[known]).median()) if bool(known.any()) else float("nan")


def _nearest(points: Tensor) -> Tensor:
    distances = torch.cdist(points, points, compute_mode="donot_use_mm_for_euclid_dist")
    return distances.fill_diagonal_(torch.inf).amin(-1)


def _are_distinct(rows: Tensor) -> bool:
    return bool((_nearest(rows) > _DISTINCT).all()) if rows.isfinite().all() else False
