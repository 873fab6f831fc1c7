"""Gaps of a front: where the next model is worth most, and what to ask it for.

The two-task idea is NISE (Cohon 1978, *Multiobjective programming and planning*): between two neighbours, the next
weights are the normal of the segment that joins them. This module has the same for any number of tasks.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from paretomtl.core._dominance import nondominated
from paretomtl.core.reachable import find_reachable

LEAST_GAIN = 1e-3
"""Weights can gain nothing in a gap if the bound of their gain is under this share of its size."""
_BEATEN = 0.01  # of the size of a gap: by less, a model is beaten at its own weights by the noise of training
_ASKED = 0.1  # a row is nearer to one of before than this share of the angle of its gap: it was asked for before
_PLACES = (1 / 2, 1 / 3, 2 / 3, 1 / 4, 3 / 4)  # between two weights, where others can be tried
_LEAST_ANGLE = 1e-3  # in radians, between directions that are told apart
_SAME = 1e-9  # points nearer to each other than this share of the ranges are one


class Gap(NamedTuple):
    """A gap between two neighbours of a front, and what to ask a model for that fills it.

    Attributes:
        ends: the rows of both neighbours; a number beyond the losses is an earlier gap of the same list, which counts
            as if it were filled in its middle.
        size: the distance of both, in units of the range of each task over the front.
        near: the row of the nearest model, whose weights a model may begin with.
        middle: the losses ``[m]`` half way between both.
        importances: ``[m]``, on the simplex: between those of its ends, and normal to the gap where these tell how.
        gain: an upper bound of what weights can gain, in the units of ``size``: how far under the segment the weighted
            sum may fall; NaN if it is unknown, as where another model has a smaller weighted sum than one of the ends.
    """

    ends: tuple[int, int]
    size: float
    near: int
    middle: Tensor
    importances: Tensor
    gain: float


class GapSearch(NamedTuple):
    """The largest gaps of a front.

    Attributes:
        gaps: at most as many as asked for, the largest first.
        flat: the pairs of neighbours that were left out, as weights between theirs lead to one of them again, or as
            their direction was asked for before.
        asked: those of them that were left out because their direction, or their weights, were asked for before.
        beaten: ``(a, b)``, model b has a smaller sum than a by the weights of a. These kept a gap that would be flat.
        solutions: how many distinct models are not dominated.
        clumped: whether models with fixed weights gather at the ends, as they do on a concave front.
    """

    gaps: list[Gap]
    flat: list[tuple[int, int]]
    asked: list[tuple[int, int]]
    beaten: list[tuple[int, int]]
    solutions: int
    clumped: bool


def gabriel_edges(points: Tensor) -> list[tuple[int, int]]:
    r"""Pairs of neighbours among ``points [n, m]``: the graph of Gabriel and Sokal (1969).

    a and b are neighbours if the ball with the diameter ab holds no other point, :math:`\|a-c\|^2 + \|b-c\|^2 \ge
    \|a-b\|^2` for all c. So nothing is nearer to the middle of a pair than the pair itself. The non-dominated points
    of two tasks are neighbours exactly if they are next to each other: a point between two others sees them at an
    obtuse angle.

    Example:
        >>> gabriel_edges(torch.tensor([[0.0, 1.0], [1.0, 0.0], [0.4, 0.4]]))
        [(0, 2), (1, 2)]
    """
    if not len(points):
        return []
    apart = (points[:, None, :] - points[None, :, :]).double().square().sum(-1)
    alone = torch.stack([(apart + row).amin(-1) >= (1.0 - _SAME) * row for row in apart])  # row: squares from one point
    return [(a, b) for a, b in alone.triu(1).nonzero().tolist()]


def weights_between(one: Tensor, other: Tensor, step: Tensor) -> tuple[Tensor, float]:
    r"""The mixture of two importances that is normal to a segment (NISE), and a bound of what it can gain.

    Let a minimise :math:`\lambda_a \cdot L` and b :math:`\lambda_b \cdot L`. Then both prices are not negative,

    .. math:: p_a = \lambda_a \cdot (b - a) \ge 0, \qquad p_b = \lambda_b \cdot (a - b) \ge 0,

    and :math:`\lambda = (p_b \lambda_a + p_a \lambda_b) / (p_a + p_b)` is normal to b - a, for any number of tasks: the
    normal of the segment if there are two. As a mixture it has no share under the least of both. Every point lies above
    both supporting planes, so that :math:`\lambda \cdot L` is under its value on the segment by at most
    :math:`p_a p_b / (p_a + p_b)`. If a price is zero, one end is best for all weights in between, and nothing can be
    gained. The direction of the answer does not depend on units, nor on the lengths of the importances.

    Args:
        one: those of a, ``[m]``.
        other: those of b, ``[m]``.
        step: b - a, ``[m]``.

    Returns:
        The mixture, the mean if a price is not positive, and the bound, then 0.

    Example:
        >>> a, b = torch.tensor([0.1, 0.9]), torch.tensor([0.7, 0.3])
        >>> weights_between(torch.tensor([0.9, 0.1]), torch.tensor([0.3, 0.7]), b - a)[0]
        tensor([0.5000, 0.5000])
    """
    price, back = float(one @ step), -float(other @ step)
    if price <= 0.0 or back <= 0.0:
        return (one + other) / 2, 0.0
    return (back * one + price * other) / (price + back), price * back / (price + back)


def find_gaps(
    losses: Tensor, count: int, *, importances: Tensor | None = None, directions: Tensor | None = None
) -> GapSearch:
    """The largest gaps between the non-dominated models of a front, and what to ask ``count`` models for.

    Losses are divided by their ranges over the non-dominated models, so that units do not matter. Gaps are the
    longest edges of :func:`gabriel_edges`, the largest first. Each counts as filled in its middle before the next is
    looked for, so that the answers spread. A gap is left out where nothing can be gained: with importances, if
    :func:`weights_between` bounds the gain by nearly zero; with directions, if its own was asked for before.

    The bound holds for models that minimise their own weighted sums. If another model of the front has a smaller sum,
    it says nothing: the gap stays, with weights between those of its ends that no model of the front has.

    Args:
        losses: ``[K, m]``, scaled as in training. Rows that are not finite, dominated or equal to others do not count.
        count: how many.
        importances: ``[K, m]``, those of the models, for the losses as given; equal ones if unknown.
        directions: ``[n, m]``, unit vectors that were asked for before; None if models are asked for importances.

    Example:
        >>> losses = torch.tensor([[0.0, 1.0], [0.1, 0.4], [1.0, 0.0]])
        >>> weights = torch.tensor([[0.9, 0.1], [0.7, 0.3], [0.1, 0.9]])
        >>> gap = find_gaps(losses, 1, importances=weights).gaps[0]
        >>> gap.ends, gap.importances  # normal to (0.9, -0.4)
        ((1, 2), tensor([0.3077, 0.6923], dtype=torch.float64))
    """
    losses = losses.detach().double().cpu()
    tasks = losses.shape[-1]
    rows = _distinct_best(losses)
    points = losses[rows]
    span = points.amax(0) - points.amin(0) if len(rows) else losses.new_ones(tasks)
    span = torch.where(span > 0, span, 1.0)
    given = losses.new_ones(losses.shape) / span if importances is None else importances.double().cpu()
    shares = given[rows] * span  # in units of the ranges; they sum to one from here on
    shares = shares / shares.sum(-1, keepdim=True)
    asked = None if directions is None else directions.double().cpu()
    names, trained = list(rows), len(rows)
    sums = shares @ (points / span).T  # of each model (columns) by the weights of each (rows)
    ahead = sums.diagonal() - sums.amin(-1) if trained else sums.new_zeros(0)
    gaps: list[Gap] = []
    flat: list[tuple[int, int]] = []
    repeated: list[tuple[int, int]] = []
    beaten: dict[tuple[int, int], None] = {}  # as an ordered set
    certain = torch.ones(trained, dtype=torch.bool)  # whether a model is where its weights have led
    while len(gaps) < count:
        edges = [pair for pair in gabriel_edges(points / span) if (names[pair[0]], names[pair[1]]) not in flat]
        if not edges:
            break
        sizes = [round(float(((points[b] - points[a]) / span).norm()), 12) for a, b in edges]
        size = max(sizes)
        a, b = edges[sizes.index(size)]
        middle = (points[a] + points[b]) / 2
        share, gain = weights_between(shares[a], shares[b], (points[b] - points[a]) / span)
        known = bool(certain[[a, b]].all())
        if not known:  # where the new model will be, and so the normal, is not known yet
            share, gain = (shares[a] + shares[b]) / 2, float("nan")
        if asked is not None:
            again = not _is_new(middle / span, points[[a, b]] / span, asked / span)
            worth = not again
        else:
            losing = [k for k in (a, b) if known and float(ahead[k]) > _BEATEN * size]
            level = known and gain <= LEAST_GAIN * size
            other = _new_between(shares[[a, b]], given * span) if losing and level else None
            again = bool(losing) and level and other is None
            worth = not level or other is not None
            share = share if other is None else other
            gain = float("nan") if losing else gain  # the bound is that of models that minimise their own sums
            if other is not None:
                beaten.update(dict.fromkeys((names[k], names[int(sums[k].argmin())]) for k in losing))
        if not worth:
            flat.append((names[a], names[b]))
            repeated += flat[-1:] if again else []
            continue
        near = _nearest(middle / span, points[:trained] / span, share, shares[:trained])
        row = share / span
        gaps.append(Gap((names[a], names[b]), size, rows[near], middle, row / row.sum(), gain))
        names.append(len(losses) + len(gaps) - 1)
        points, shares = torch.cat([points, middle[None]]), torch.cat([shares, share[None]])
        certain = torch.cat([certain, certain.new_zeros(1)])
        if asked is not None:
            asked = torch.cat([asked, torch.nn.functional.normalize(middle.clamp_min(0.0), dim=0)[None]])
    clumped = importances is not None and asked is None and _are_clumped(losses, given)
    return GapSearch(gaps, flat, repeated, list(beaten), trained, clumped)


def _distinct_best(losses: Tensor) -> list[int]:
    """The rows of ``losses [K, m]`` that are finite, not dominated, and not copies of an earlier one."""
    finite = losses.isfinite().all(-1)
    best = (nondominated(torch.where(finite[:, None], losses, torch.inf)) & finite).nonzero().flatten().tolist()
    if not best:
        return []
    span = (losses[best].amax(0) - losses[best].amin(0)).clamp_min(torch.finfo(torch.float64).tiny)
    kept: list[int] = []
    for row in best:
        if not kept or float(((losses[kept] - losses[row]) / span).abs().amax(-1).min()) > _SAME:
            kept.append(row)
    return kept


def _is_new(middle: Tensor, ends: Tensor, asked: Tensor) -> bool:
    """Whether the middle of a gap differs in its direction from the rows ``[n, m]`` that were asked for before."""
    middle, ends = middle.clamp_min(0.0), ends.clamp_min(0.0)
    if not bool(middle.any()):
        return False
    width = _angle(ends[0], ends[1]) if bool(ends.any(-1).all()) else _angle(ends[0] + ends[1], middle)
    nearest = min((_angle(middle, row) for row in asked), default=torch.inf)
    return nearest > max(_ASKED * width, _LEAST_ANGLE)


def _new_between(ends: Tensor, given: Tensor) -> Tensor | None:
    """Weights between two ``[2, m]`` that differ from all given ones ``[n, m]``; None if these leave no room."""
    mixtures = [(1 - place) * ends[0] + place * ends[1] for place in _PLACES]
    return next((row for row in mixtures if _is_new(row, ends, given)), None)


def _nearest(middle: Tensor, points: Tensor, share: Tensor, shares: Tensor) -> int:
    """The model nearest to the middle of a gap; of several that are, the one with the nearest importances."""
    apart = (points - middle).norm(dim=-1)
    near: list[int] = (apart <= (1.0 + 1e-6) * apart.min()).nonzero().flatten().tolist()
    return min(near, key=lambda row: round(_angle(shares[row], share), 9))


def _angle(one: Tensor, other: Tensor) -> float:
    u, v = one / one.norm(), other / other.norm()
    return float(2.0 * torch.atan2((u - v).norm(), (u + v).norm()))


def _are_clumped(losses: Tensor, importances: Tensor) -> bool:
    return find_reachable(losses, importances).clumped
