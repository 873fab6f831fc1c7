from __future__ import annotations

import math
from enum import IntEnum
from typing import NamedTuple

import torch
from torch import Tensor

from paretomtl._cuda import may_launch
from paretomtl.core._min_norm_kernel import solve_by_kernel
from paretomtl.core._plane import ENTER_TOLERANCE, PIVOT_TOLERANCE, plane_min_norm
from paretomtl.core._shapes import check_floating, check_gramian, check_trailing, known_finite, may_ask

_RATIO_TOLERANCE = 1e-12  # a coefficient under this cannot block a step
_PAIRS = 1 << 22  # so many pairs of points at most, for all problems together
_TINY = 1e-300  # keeps a division by zero finite where its result is not used


class Solve(IntEnum):
    """How the search for a min-norm point ended, one code per problem."""

    SOLVED = 0
    """The min-norm point was found and is not the origin."""
    ZERO = 1
    """The origin lies in the hull, as far as the precision of the Gramian can tell."""
    FAILED = 2
    """No point was allowed, or an input was not finite; the weights are all zero."""


class MinNorm(NamedTuple):
    """The min-norm point of a convex hull, for a batch of problems.

    Attributes:
        weights: ``s [..., N]`` on the simplex, zero at masked points.
        combination: ``α = Aᵀ s [..., m]``, the point as a combination of the m vectors behind the Gramian.
        squared_norm: ``αᵀ C α [...]``.
        gap: ``(sᵀHs − min_j (Hs)_j) / max_j H_jj [...]`` over allowed points, ``H = A C Aᵀ``. Zero is optimal.
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
    any other. It is solved by the active-set method of Lawson and Hanson with a pseudo-inverse that is updated by rank
    one. Every operation is batched and in float64; nothing branches on a tensor (on a CPU, outside a compiler, the
    loop leaves once all problems are done). At most 6m + 6 pivots are made. On a CUDA device, outside a compiler, all
    of it is one kernel for up to 16 tasks, compiled at its first use; the environment variable ``PARETOMTL_KERNELS=0``
    turns it off.

    Args:
        gramian: ``C [..., m, m]``, symmetric positive semi-definite, possibly singular.
        rows: ``A [..., N, m]``; the identity when left out (MGDA).
        allowed: ``[..., N]`` bool, the points that take part; all when left out.
        precision: the relative error of the Gramian's entries, which decides what counts as zero; that of its dtype
            when left out.

    Example:
        >>> import torch
        >>> found = min_norm(torch.tensor([[4.0, 0.0], [0.0, 1.0]]))  # orthogonal gradients of length 2 and 1
        >>> found.weights
        tensor([0.2000, 0.8000])
        >>> found.squared_norm
        tensor(0.8000)
        >>> Solve(int(found.status)).name
        'SOLVED'
    """
    tasks = check_gramian("gramian", gramian)
    count, batch = tasks, gramian.shape[:-2]
    if rows is not None:
        check_floating("rows", rows)
        check_trailing("rows", rows, "N", tasks)
        count, batch = rows.shape[-2], _broadcast(batch, rows.shape[:-2])
    if count == 0:
        raise ValueError("'rows' must hold at least one point. Got none.")
    if allowed is not None:
        if allowed.dtype != torch.bool:
            raise TypeError(f"'allowed' must be a bool tensor. Got {allowed.dtype} instead.")
        check_trailing("allowed", allowed, count)
        batch = _broadcast(batch, allowed.shape[:-1])
    size = math.prod(batch)
    dtype, eps = gramian.dtype, torch.finfo(gramian.dtype).eps if precision is None else precision
    # A Gramian in precision eps knows a squared norm only up to eps times the terms that cancelled in it.
    zero_tolerance = 8 * tasks * eps
    if may_launch(gramian):
        found = solve_by_kernel(gramian, rows, allowed, batch, zero_tolerance)
        if found is not None:
            return MinNorm(*found)

    if rows is None:
        rows = torch.eye(tasks, dtype=gramian.dtype, device=gramian.device)
    if allowed is None:
        allowed = torch.ones(count, dtype=torch.bool, device=gramian.device)
    if size == 1 and tasks == 2 and may_ask(gramian):
        numbers = [tensor.detach().double().reshape(-1, 2).tolist() for tensor in (gramian, rows)]
        alone = plane_min_norm(numbers[0], numbers[1], allowed.expand(*batch, count).reshape(-1).tolist(), eps)
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

    usable = None  # all are
    if not (known_finite(c, a) and bool(mask.any(-1).all())):
        usable = c.isfinite().flatten(1).all(-1) & (a.isfinite().all(-1) | ~mask).all(-1) & mask.any(-1)
        mask = mask & usable[:, None]
        c = torch.where(usable[:, None, None], c, 0.0)
    a = torch.where(mask[..., None], a, 0.0)

    points = a.bmm(_factor(c))
    few = tasks == 2 and size * count * count <= _PAIRS
    weights, x, gap = (_segments if few else _lawson_hanson)(points, mask)

    lengths = c.diagonal(dim1=-2, dim2=-1).clamp_min(0.0).sqrt()
    terms = (weights * a.abs().bmm(lengths[..., None]).squeeze(-1)).sum(-1)
    squared_norm = x.square().sum(-1)
    zero = squared_norm <= zero_tolerance * terms.square()
    status = zero.long() if usable is None else torch.where(usable, zero.long(), Solve.FAILED.value)
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


def _factor(c: Tensor) -> Tensor:
    """L with ``C = L Lᵀ``: pivoted Cholesky of the matrix scaled to unit diagonal; lost rank gives zero columns."""
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


def _segments(points: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The same as :func:`_lawson_hanson` in the plane, in few operations: the best of all segments between two points.

    If some point is still below the line through its foot, then the triangle of the three has its least point on none
    of its sides: the origin lies inside of it, and its barycentric weights are the answer.
    """
    size, count, _ = points.shape
    first, second = points[:, :, None], points[:, None]
    along = first - second
    squares = along.square().sum(-1)
    share = ((first * along).sum(-1) / torch.where(squares > 0, squares, 1.0)).clamp(0.0, 1.0)
    lengths = (first - share[..., None] * along).square().sum(-1)
    best = torch.where(mask[:, :, None] & mask[:, None], lengths, torch.inf).flatten(1).argmin(1, keepdim=True)
    share = share.flatten(1).gather(1, best)
    ends = torch.cat([best // count, best % count], 1)
    two = points.gather(1, ends[..., None].expand(-1, -1, 2))
    foot = two[:, 0] - share * (two[:, 0] - two[:, 1])
    products = torch.where(mask, points.bmm(foot[..., None]).squeeze(-1), torch.inf)
    least, below = products.min(1, keepdim=True)
    gap = foot.square().sum(-1) - least.squeeze(-1)
    reach = points.square().sum(-1).amax(1)
    reach = torch.where(reach > 0, reach, 1.0)
    some = mask.any(-1, keepdim=True)  # without any, all points are zero, hence the foot, and the gap is −inf
    if may_ask(points) and not bool((gap > ENTER_TOLERANCE * reach).any()):
        shares = torch.cat([1.0 - share, share], 1) * some
        return points.new_zeros(size, count).scatter_add(1, ends, shares), foot, gap.clamp_min(0.0) / reach

    corners = torch.cat([ends, below], 1)
    three = points.gather(1, corners[..., None].expand(-1, -1, 2))
    after, before = three.roll(-1, 1), three.roll(1, 1)
    areas = after[..., 0] * before[..., 1] - after[..., 1] * before[..., 0]
    barycentric = (areas * areas.sum(-1, keepdim=True).sign()).clamp_min(0.0)
    total = barycentric.sum(-1, keepdim=True)
    barycentric = barycentric / total.clamp_min(_TINY)
    centre = (barycentric[..., None] * three).sum(1)
    products = torch.where(mask, points.bmm(centre[..., None]).squeeze(-1), torch.inf)
    centre_gap = torch.where(total.squeeze(-1) > 0, centre.square().sum(-1) - products.amin(1), torch.inf)

    inside = (centre_gap < gap)[:, None]
    shares = torch.cat([1.0 - share, share, torch.zeros_like(share)], 1)
    shares = torch.where(inside, barycentric, shares) * some
    gap = torch.minimum(gap, centre_gap).clamp_min(0.0) / reach
    return points.new_zeros(size, count).scatter_add(1, corners, shares), torch.where(inside, centre, foot), gap


def _lawson_hanson(points: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Weights ``[B, N]``, point ``[B, m]`` and relative gap ``[B]`` of the min-norm point of ``points [B, N, m]``."""
    size, count, tasks = points.shape
    lengths = points.square().sum(-1, keepdim=True)
    reach = lengths.amax(1, keepdim=True)
    least = torch.where(mask[..., None], lengths, torch.inf).amin(1, keepdim=True)
    lift = torch.minimum(torch.maximum(least, 1e-10 * reach), reach)
    lift = torch.where(lift > 0, lift, 1.0)
    norms = (lengths + lift).sqrt()
    lifted = torch.cat([points, lift.sqrt().expand(-1, count, 1)], -1) * torch.where(mask[..., None], 1.0 / norms, 0.0)

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
    nobody = index.new_full((), -1)
    may_leave = may_ask(points)
    iterates: list[tuple[Tensor, Tensor]] = []

    for _ in range(6 * tasks + 6):
        coefficients = inverse[..., -1:]
        residual = torch.baddbmm(target, support.mT, coefficients, alpha=-1)
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

        # The entering point pushes others out of the support: the first one to reach zero is dropped before it enters.
        step, blocking = torch.where(share > _RATIO_TOLERANCE, coefficients / share, infinity).min(1, keepdim=True)
        drop = step * left_squared < gain
        dropped = inverse.gather(1, blocking.expand(-1, 1, tasks + 1))
        overlap = inverse.bmm(dropped.mT)
        along = torch.where(drop, dropped, left / left_squared)
        removed = torch.where(drop, overlap / overlap.gather(1, blocking).clamp_min(_TINY), share)
        here = slots == torch.where(drop, blocking, index.argmin(1, keepdim=True))
        removed = torch.where(here, torch.where(drop, one, minus_one), removed)
        inverse = torch.baddbmm(inverse, removed * active, along, alpha=-1)
        here = here & active
        support = torch.where(here, torch.where(drop, zero, point), support)
        index = torch.where(here, torch.where(drop, nobody, entering), index)
        pending = drop
        iterates.append((inverse[..., -1], index[..., 0]))

    return _best_iterate(points, mask, norms[..., 0], reach[:, 0, 0], iterates)


def _best_iterate(
    points: Tensor, mask: Tensor, norms: Tensor, reach: Tensor, iterates: list[tuple[Tensor, Tensor]]
) -> tuple[Tensor, Tensor, Tensor]:
    """The iterate of least gap: late pivots are rounding noise and may spoil a good answer."""
    tasks = points.shape[-1]
    if not iterates:  # every problem was masked out
        return torch.zeros_like(norms), torch.zeros_like(points[:, 0]), torch.zeros_like(reach)
    coefficients = torch.stack([c for c, _ in iterates])
    indices = torch.stack([i for _, i in iterates])
    at = indices.clamp_min(0)
    weights = torch.where(indices >= 0, coefficients.clamp_min(0.0), 0.0) / norms.expand(len(iterates), -1, -1).gather(
        -1, at
    )
    total = weights.sum(-1, keepdim=True)
    weights = weights / total.clamp_min(_TINY)
    chosen = points.expand(len(iterates), -1, -1, -1).gather(-2, at[..., None].expand(-1, -1, -1, tasks))
    x = (weights[..., None] * chosen).sum(-2)
    products = (points @ x[..., None]).squeeze(-1)
    gap = x.square().sum(-1) - torch.where(mask, products, torch.inf).amin(-1)
    gap = torch.where(total.squeeze(-1) > 0, gap, torch.inf)
    least, best = gap.min(0)
    row = torch.arange(points.shape[0], device=points.device)
    spread = torch.zeros_like(norms).scatter_add(-1, at[best, row], weights[best, row])
    relative = torch.where(reach > 0, least.clamp_min(0.0) / reach.clamp_min(_TINY), 0.0)
    any_allowed = mask.any(-1)
    spread = torch.where(any_allowed[:, None], spread, 0.0)
    x = torch.where(any_allowed[:, None], x[best, row], 0.0)
    return spread, x, torch.where(any_allowed, relative, 0.0)
