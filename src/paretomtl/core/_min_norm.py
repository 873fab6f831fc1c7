"""The min-norm point of a convex hull, for batches of problems.

The dual is solved by the method of Lawson and Hanson on lifted points, in float64. Points are lifted by the length of
the shortest one, and the gap is relative to the length of each: relative to the longest, it would be closed while a
task with a short gradient rises. A Gramian in precision eps knows a squared norm only up to eps times the terms that
cancelled in it, which is where "the origin is in the hull" begins. The Gramian therefore keeps the dtype in which it
was multiplied.
"""

from __future__ import annotations

import math
from enum import IntEnum
from typing import NamedTuple

import torch
from torch import Tensor

from paretomtl._support.argument_checks import check_floating, check_gramian, check_trailing, known_finite, may_ask
from paretomtl._support.cuda import may_launch
from paretomtl.core._min_norm_two_tasks import ENTER_TOLERANCE, PIVOT_TOLERANCE, two_task_min_norm
from paretomtl.core.min_norm_cuda import solve_by_kernel

_RATIO_TOLERANCE = 1e-12  # a coefficient under this cannot block a step
_PIVOTS, _MOST_PIVOTS = 6, 24  # times m + 1; the larger limit if the loop can be left early
_INEXACT = 1e-6  # a gap above this is not rounding
_PAIRS = 1 << 22  # the most pairs of points of all problems together
_TINY = 1e-300  # keeps a division by zero finite where its result is not used


class Solve(IntEnum):
    """How the search for a min-norm point ended, one code per problem."""

    SOLVED = 0
    """The min-norm point was found and is not the origin. No step along it raises an allowed point, up to the gap."""
    ZERO = 1
    """The origin lies in the hull, as far as the precision of the Gramian can tell."""
    FAILED = 2
    """No point was allowed, or an input was not finite; the weights are all zero."""
    INEXACT = 3
    """The pivots ran out before the gap was closed. The point is in the hull; the gap says how far it is off.

    Seen only under a compiler, for many points of nearly parallel gradients: 1 in 100 with 9 tasks and 128 points.
    """


class MinNorm(NamedTuple):
    """The min-norm point of a convex hull, for a batch of problems.

    Attributes:
        weights: ``s [..., N]`` on the simplex, zero at masked points.
        combination: ``α = Aᵀ s [..., m]``, the point as a combination of the m vectors behind the Gramian.
        squared_norm: ``αᵀ C α [...]``.
        gap: by how much ``⟨p_j, x⟩ ≥ |x|²`` fails, relative to ``|p_j| |x|``, at the worst of the allowed points:
            ``[...]``. Zero is optimal. The length of each point counts, not that of the longest. Where the status is
            ZERO, and ``|x|`` is rounding, ``Σ_j s_j Σ_i |a_ji| |g_i|``, the terms that cancelled in x, stands for it.
        status: codes of :class:`Solve`, ``[...]``, int64.
    """

    weights: Tensor
    combination: Tensor
    squared_norm: Tensor
    gap: Tensor
    status: Tensor


def min_norm(
    gramian: Tensor, rows: Tensor | None = None, allowed: Tensor | None = None, *, precision: float | None = None
) -> MinNorm:
    r"""The dual of Pareto MTL (paper, equation 14): the point of least norm in a convex hull.

    The m vectors behind the Gramian :math:`C = J J^\top` are never seen. The N points of the hull are the rows of
    :math:`A J`, so that the problem is

    .. math:: \min_s\; s^\top (A C A^\top) s \quad\text{s.t.}\quad s \ge 0,\ \textstyle\sum_j s_j = 1.

    The points live in :math:`\mathbb{R}^m` whatever N is: :math:`C = L L^\top` by a pivoted Cholesky factorisation of
    the matrix scaled to unit diagonal, and the points are the rows of :math:`P = A L`. Each is lifted to :math:`e_i =
    (p_i, \varrho) / \sqrt{\|p_i\|^2 + \varrho^2}`; the non-negative least squares problem :math:`\min_{\hat s \ge 0}
    \|\sum_i \hat s_i e_i - (0, \dots, 0, 1)\|` has the same support and treats a hull that contains the origin like
    any other. The height :math:`\varrho` is the length of the shortest point, so that gradients may differ in length by
    any factor whose square fits. It is solved by the active-set method of Lawson and Hanson with rank-one updates of a
    pseudo-inverse. Every operation is batched and in float64; nothing branches on a tensor (on a CPU, outside a
    compiler, the loop ends once all problems are done). It takes at most 24 (m + 1) pivots, or 6 (m + 1) if the loop
    cannot be left early. On a CUDA device, outside a compiler, all of it is one kernel for up to 16 tasks, compiled on
    first use; the environment variable ``PARETOMTL_KERNELS=0`` turns it off.

    Args:
        gramian: ``C [..., m, m]``, symmetric positive semi-definite, possibly singular.
        rows: ``A [..., N, m]``; the identity by default (MGDA).
        allowed: ``[..., N]`` bool, the points that take part; all by default.
        precision: the relative error of the Gramian's entries, which decides what counts as zero; that of its dtype by
            default.

    Example:
        >>> import torch
        >>> result = min_norm(torch.tensor([[4.0, 0.0], [0.0, 1.0]]))  # orthogonal gradients of length 2 and 1
        >>> result.weights
        tensor([0.2000, 0.8000])
        >>> result.squared_norm
        tensor(0.8000)
        >>> Solve(int(result.status)).name
        'SOLVED'
    """
    tasks = count = check_gramian("gramian", gramian)
    if rows is not None:
        check_floating("rows", rows)
        check_trailing("rows", rows, "N", tasks)
        count = rows.shape[-2]
    if count == 0:
        raise ValueError("'rows' must hold at least one point. Got none.")
    if allowed is not None:
        if allowed.dtype != torch.bool:
            raise TypeError(f"'allowed' must be a bool tensor. Got {allowed.dtype} instead.")
        check_trailing("allowed", allowed, count)
    return solve(gramian, rows, allowed, precision)


def solve(gramian: Tensor, rows: Tensor | None, allowed: Tensor | None, precision: float | None) -> MinNorm:
    """:func:`min_norm` of tensors that are known to fit."""
    tasks = count = gramian.shape[-1]
    batch = gramian.shape[:-2]
    if rows is not None:
        count, batch = rows.shape[-2], _broadcast(batch, rows.shape[:-2])
    if allowed is not None:
        batch = _broadcast(batch, allowed.shape[:-1])
    size = math.prod(batch)
    dtype, eps = gramian.dtype, torch.finfo(gramian.dtype).eps if precision is None else precision
    # A Gramian in precision eps knows a squared norm only up to eps times the terms that cancelled in it.
    zero_tolerance = 8 * tasks * eps
    if may_launch(gramian):
        solution = solve_by_kernel(gramian, rows, allowed, batch, zero_tolerance)
        if solution is not None:
            return MinNorm(*solution)

    if rows is None:
        rows = torch.eye(tasks, dtype=gramian.dtype, device=gramian.device)
    if allowed is None:
        allowed = torch.ones(count, dtype=torch.bool, device=gramian.device)
    if size == 1 and tasks == 2 and may_ask(gramian):
        numbers = [tensor.detach().double().reshape(-1, 2).tolist() for tensor in (gramian, rows)]
        alone = two_task_min_norm(numbers[0], numbers[1], allowed.expand(*batch, count).reshape(-1).tolist(), eps)
        if alone is not None:
            return MinNorm(
                torch.tensor(alone.weights, dtype=dtype).reshape(*batch, count),
                torch.tensor(alone.combination, dtype=dtype).reshape(*batch, tasks),
                torch.full(batch, alone.squared_norm, dtype=dtype),
                torch.full(batch, alone.gap, dtype=dtype),
                torch.full(batch, Solve.ZERO.value if alone.zero else Solve.SOLVED.value),
            )
    c = gramian.detach().double().expand(*batch, tasks, tasks).reshape(size, tasks, tasks)
    a = rows.detach().double().expand(*batch, count, tasks).reshape(size, count, tasks)
    mask = allowed.expand(*batch, count).reshape(size, count)

    usable = None  # None: all are
    if not (known_finite(c, a) and bool(mask.any(-1).all())):
        usable = c.isfinite().flatten(1).all(-1) & (a.isfinite().all(-1) | ~mask).all(-1) & mask.any(-1)
        mask = mask & usable[:, None]
        c = torch.where(usable[:, None, None], c, 0.0)
    a = torch.where(mask[..., None], a, 0.0)

    hull = _hull(c, a, mask, zero_tolerance)
    few = tasks == 2 and size * count * count <= _PAIRS
    weights, x, gap = (_segments if few else _lawson_hanson)(hull)

    squared_norm = x.square().sum(-1)
    if not known_finite(gap):  # squares beyond float64
        sound = gap.isfinite() & squared_norm.isfinite()
        usable = sound if usable is None else usable & sound
        weights, squared_norm, gap = (
            torch.where(usable.reshape(-1, *[1] * (part.ndim - 1)), part, 0.0) for part in (weights, squared_norm, gap)
        )
    terms = (weights * hull.terms).sum(-1)
    zero = squared_norm <= zero_tolerance * terms.square()
    status = torch.where(gap > _INEXACT, Solve.INEXACT.value, Solve.SOLVED.value)
    status = torch.where(zero, Solve.ZERO.value, status)
    status = status if usable is None else torch.where(usable, status, Solve.FAILED.value)
    gap = torch.where(zero, zero_tolerance**0.5 * gap, gap)
    combination = weights[:, None, :].bmm(a).squeeze(-2)
    return MinNorm(
        weights.to(dtype).reshape(*batch, count),
        combination.to(dtype).reshape(*batch, tasks),
        squared_norm.to(dtype).reshape(batch),
        gap.to(dtype).reshape(batch),
        status.reshape(batch),
    )


def _broadcast(one: torch.Size, other: torch.Size) -> torch.Size:
    return one if one == other else torch.broadcast_shapes(one, other)  # type: ignore[no-untyped-call]


class _Hull(NamedTuple):
    """A batch of B hulls of N points in m dimensions, as the solvers see them."""

    points: Tensor  # p [B, N, m]
    lengths: Tensor  # |p| [B, N], at least tiny
    units: Tensor  # p / |p| [B, N, m]
    terms: Tensor  # the sum of the lengths of the terms in p, [B, N]
    mask: Tensor  # whether p takes part, [B, N]
    zero_tolerance: float  # a squared norm below this share of its squared terms is zero

    def violations(self, x: Tensor) -> Tensor:
        """``(|x|² − ⟨p, x⟩) / |p|`` for ``x [..., B, m]``: ``[..., B, N]``; −inf where p takes no part."""
        squares = x.square().sum(-1, keepdim=True)
        violations = squares / self.lengths - (self.units @ x[..., None]).squeeze(-1)
        return torch.where(self.mask, violations, -torch.inf)

    def gap(self, worst: Tensor, x: Tensor, terms: Tensor) -> Tensor:
        """The worst of the violations relative to ``|x|``, or to the length at which x counts as zero: ``[..., B]``."""
        known = torch.maximum(x.norm(dim=-1), self.zero_tolerance**0.5 * terms)
        return worst.clamp_min(0.0) / known.clamp_min(_TINY)


def _hull(c: Tensor, a: Tensor, mask: Tensor, zero_tolerance: float) -> _Hull:
    points = a.bmm(_factor(c))
    lengths = points.norm(dim=-1).clamp_min(_TINY)
    gradients = c.diagonal(dim1=-2, dim2=-1).clamp_min(0.0).sqrt()
    terms = a.abs().bmm(gradients[..., None]).squeeze(-1)
    return _Hull(points, lengths, points / lengths[..., None], terms, mask, zero_tolerance)


def _factor(c: Tensor) -> Tensor:
    """L with ``C = L Lᵀ``: pivoted Cholesky of the matrix scaled to unit diagonal; missing rank gives zero columns."""
    tasks = c.shape[-1]
    scale = c.diagonal(dim1=-2, dim2=-1).clamp_min(0.0).sqrt()
    inverse = torch.where(scale > 0, 1.0 / scale, 0.0)
    if tasks == 2:
        cosine = (c[:, 0, 1] * inverse[:, 0] * inverse[:, 1]).clamp(-1.0, 1.0)
        square = (1.0 - cosine) * (1.0 + cosine)
        sine = torch.where(square > tasks * PIVOT_TOLERANCE, square, 0.0).sqrt()
        zero = torch.zeros_like(sine)
        first, second = scale.unbind(-1)
        return torch.stack([first, zero, cosine * second, sine * second], -1).reshape(-1, 2, 2)
    rest = c * inverse[..., :, None] * inverse[..., None, :]
    columns = []
    for _ in range(tasks):
        pivot, index = rest.diagonal(dim1=-2, dim2=-1).max(-1, keepdim=True)
        column = rest.gather(-1, index[..., None].expand(-1, tasks, 1)).squeeze(-1)
        column = torch.where(pivot > tasks * PIVOT_TOLERANCE, column * pivot.clamp_min(_TINY).rsqrt(), 0.0)
        rest = rest - column[..., :, None] * column[..., None, :]
        columns.append(column)
    return torch.stack(columns, -1) * scale[..., None]


def _segments(hull: _Hull) -> tuple[Tensor, Tensor, Tensor]:
    """The result of :func:`_lawson_hanson` in the plane, in few operations: the best segment between two points.

    If some point is still below the line through the foot, there are two reasons. Either the origin lies inside the
    triangle of the three points, and its barycentric weights are the answer. Or lengths could not distinguish two
    segments, because they differ by the square of the violation. Then the first segment that crosses the line from the
    origin to the foot is the right one.
    """
    points, mask = hull.points, hull.mask
    size, count, _ = points.shape
    first, second = points[:, :, None], points[:, None]
    along = first - second
    squares = along.square().sum(-1)
    share = ((first * along).sum(-1) / torch.where(squares > 0, squares, 1.0)).clamp(0.0, 1.0)
    # Only from the shorter end: from the longer one, its weight 1 − share would be rounding noise.
    usable = mask[:, :, None] & mask[:, None] & (hull.lengths[:, :, None] <= hull.lengths[:, None])
    heights = torch.where(usable, (first - share[..., None] * along).square().sum(-1), torch.inf)
    ends, shares, foot, terms = _lowest(hull, share, heights)
    worst, below = hull.violations(foot).max(1, keepdim=True)
    gap = hull.gap(worst[:, 0], foot, terms)
    if may_ask(points) and not bool((worst[:, 0] > ENTER_TOLERANCE * terms).any()):
        return points.new_zeros(size, count).scatter_add(1, ends, shares), foot, gap

    corners = torch.cat([ends, below], 1)
    three = points.gather(1, corners[..., None].expand(-1, -1, 2))
    after, before = three.roll(-1, 1), three.roll(1, 1)
    areas = _cross(after, before)
    total = areas.sum(-1, keepdim=True)
    some = total != 0
    total = torch.where(some, total, 1.0)
    barycentric = (areas / total).clamp_min(0.0)
    barycentric = barycentric / barycentric.sum(-1, keepdim=True).clamp_min(_TINY)
    centre = (barycentric[..., None] * three).sum(1)
    # Refined once: in a flat triangle, the areas are mostly rounding noise.
    barycentric = (barycentric - _cross(centre[:, None], after - before) / total).clamp_min(0.0)
    centre = (barycentric[..., None] * three).sum(1)
    terms = (barycentric * hull.terms.gather(1, corners)).sum(-1)
    inside = torch.where(some[:, 0], hull.gap(hull.violations(centre).amax(1), centre, terms), torch.inf)

    towards = foot / foot.norm(dim=-1, keepdim=True).clamp_min(_TINY)
    ahead, aside = points.bmm(towards[..., None]), _cross(towards[:, None], points)[..., None]
    width = aside - aside.mT
    crossing = (ahead.mT * aside - ahead * aside.mT) / torch.where(width == 0, 1.0, width)
    opposite = usable & (aside * aside.mT <= 0) & (width != 0)
    other_ends, other_shares, other, terms = _lowest(hull, share, torch.where(opposite, crossing, torch.inf))
    beside = torch.where(opposite.flatten(1).any(1), hull.gap(hull.violations(other).amax(1), other, terms), torch.inf)

    weights, point = points.new_zeros(size, count).scatter_add(1, ends, shares), foot
    for better, where, what, x in ((inside, corners, barycentric, centre), (beside, other_ends, other_shares, other)):
        replaced = (better < gap)[:, None]
        weights = torch.where(replaced, torch.zeros_like(weights).scatter_add(1, where, what), weights)
        point, gap = torch.where(replaced, x, point), torch.minimum(gap, better)
    return weights, point, gap


def _cross(one: Tensor, other: Tensor) -> Tensor:
    return one[..., 0] * other[..., 1] - one[..., 1] * other[..., 0]


def _lowest(hull: _Hull, share: Tensor, heights: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The segment of least height: its ends, their shares and its foot, all ``[B, 2]``, and its terms ``[B]``."""
    count = heights.shape[-1]
    best = heights.flatten(1).argmin(1, keepdim=True)
    share = share.flatten(1).gather(1, best)
    ends = torch.cat([best // count, best % count], 1)
    shares = torch.cat([1.0 - share, share], 1) * hull.mask.any(-1, keepdim=True)
    two = hull.points.gather(1, ends[..., None].expand(-1, -1, 2))
    return ends, shares, two[:, 0] - share * (two[:, 0] - two[:, 1]), (shares * hull.terms.gather(1, ends)).sum(-1)


def _lawson_hanson(hull: _Hull) -> tuple[Tensor, Tensor, Tensor]:
    """Weights ``[B, N]``, point ``[B, m]`` and gap ``[B]`` of the min-norm points."""
    points, mask = hull.points, hull.mask
    size, count, tasks = points.shape
    lengths = hull.lengths[..., None]
    # The height is the length of the shortest point: from higher up, much shorter points would look the same.
    height = torch.where(mask[..., None], lengths, torch.inf).amin(1, keepdim=True)
    height = torch.minimum(torch.where(height > _TINY, height, torch.inf), lengths.amax(1, keepdim=True))
    height = torch.where(height > _TINY, height, 1.0)
    norms = (lengths.square() + height.square()).sqrt()
    lifted = torch.cat([points, height.expand(-1, count, 1)], -1) * torch.where(mask[..., None], 1.0 / norms, 0.0)

    # One slot per support point: lifted row, row of the pseudo-inverse, index. Vectors are columns [B, ., 1].
    slots = torch.arange(tasks + 2, device=points.device)[:, None]
    support = points.new_zeros(size, tasks + 2, tasks + 1)
    inverse = support
    index = torch.full((size, tasks + 2, 1), -1, device=points.device)
    target = points.new_zeros(tasks + 1, 1)
    target[-1] = 1.0
    entering = index[:, :1]
    pending = torch.zeros_like(entering, dtype=torch.bool)
    infinity, zero, one, minus_one = (points.new_full((), value) for value in (torch.inf, 0.0, 1.0, -1.0))
    no_point = index.new_full((), -1)
    may_leave = may_ask(points)
    iterates: list[tuple[Tensor, Tensor, Tensor]] = []

    limit = (_MOST_PIVOTS if may_leave else _PIVOTS) * (tasks + 1)
    for pivot in range(limit + 1):
        coefficients = inverse[..., -1:]
        residual = torch.baddbmm(target, support.mT, coefficients, alpha=-1)
        iterates.append((inverse, residual, index))
        if pivot == limit:
            break
        slope = lifted.bmm(residual)
        entering = torch.where(pending, entering, slope.argmax(1, keepdim=True))
        gain = slope.gather(1, entering)
        active = gain > ENTER_TOLERANCE
        if may_leave and not active.any():
            break
        point = lifted.gather(1, entering.expand(-1, 1, tasks + 1))
        share = inverse.bmm(point.mT)
        left = torch.baddbmm(point.mT, support.mT, share, alpha=-1)
        # A second pass of orthogonalisation: without it tasks of very different scales lose two digits.
        correction = inverse.bmm(left)
        share = share + correction
        left = torch.baddbmm(left, support.mT, correction, alpha=-1).mT
        left_squared = left.bmm(left.mT).clamp_min(_TINY)

        # The entering point pushes others out of the support: drop the first one to reach zero before it enters.
        step, blocking = torch.where(share > _RATIO_TOLERANCE, coefficients / share, infinity).min(1, keepdim=True)
        # Drop it in a tie, up to rounding: otherwise it would stay with a negative coefficient.
        drop = step * left_squared < torch.add(gain, coefficients.amax(1, keepdim=True), alpha=ENTER_TOLERANCE)
        dropped = inverse.gather(1, blocking.expand(-1, 1, tasks + 1))
        overlap = inverse.bmm(dropped.mT)
        along = torch.where(drop, dropped, left / left_squared)
        removed = torch.where(drop, overlap / overlap.gather(1, blocking).clamp_min(_TINY), share)
        here = slots == torch.where(drop, blocking, index.argmin(1, keepdim=True))
        removed = torch.where(here, torch.where(drop, one, minus_one), removed)
        inverse = torch.baddbmm(inverse, removed * active, along, alpha=-1)
        here = here & active
        support = torch.where(here, torch.where(drop, zero, point), support)
        index = torch.where(here, torch.where(drop, no_point, entering), index)
        pending = drop

    return _best_iterate(hull, norms[..., 0], iterates)


def _best_iterate(
    hull: _Hull, norms: Tensor, iterates: list[tuple[Tensor, Tensor, Tensor]]
) -> tuple[Tensor, Tensor, Tensor]:
    """The iterate of least gap: late pivots are rounding noise and may spoil a good answer.

    Coefficients are refined once, because the inverse separates nearly parallel points only roughly. One long gradient
    makes constraints nearly parallel, for example.
    """
    points = hull.points
    size, _, tasks = points.shape
    inverse, residual, index = (torch.stack(parts) for parts in zip(*iterates, strict=True))
    coefficients = inverse[..., -1] + (inverse @ residual).squeeze(-1)
    index = index.squeeze(-1)
    at = index.clamp_min(0)
    coefficients = torch.where(index >= 0, coefficients.clamp_min(0.0), 0.0)
    weights = coefficients / norms.expand(len(iterates), -1, -1).gather(-1, at)
    total = weights.sum(-1, keepdim=True)
    weights = weights / total.clamp_min(_TINY)
    chosen = points.expand(len(iterates), -1, -1, -1).gather(-2, at[..., None].expand(-1, -1, -1, tasks))
    x = (weights[..., None] * chosen).sum(-2)
    terms = (weights * hull.terms.expand(len(iterates), -1, -1).gather(-1, at)).sum(-1)
    gap = hull.gap(hull.violations(x).amax(-1), x, terms)
    least, best = torch.where(total.squeeze(-1) > 0, gap, torch.inf).min(0)
    row = torch.arange(size, device=points.device)
    spread = torch.zeros_like(norms).scatter_add(-1, at[best, row], weights[best, row])
    any_allowed = hull.mask.any(-1)
    spread = torch.where(any_allowed[:, None], spread, 0.0)
    x = torch.where(any_allowed[:, None], x[best, row], 0.0)
    return spread, x, torch.where(any_allowed, least, 0.0)
