"""The regions of the loss space that preference vectors cut out (paper, section 4.1)."""

from __future__ import annotations

import torch
from torch import Tensor

from paretomtl._support.argument_checks import blocks, check_floating, check_trailing, may_ask, quote

FEASIBLE_TOLERANCE = 1e-9  # a constraint value under this counts as satisfied: losses are compared after normalisation


def region_rows(preferences: Tensor) -> Tensor:
    r"""The constraint rows of every region, ``W [K, K−1, m]`` from unit vectors ``[K, m]`` (paper, equation 7).

    Row j of region k is :math:`u_j - u_k`; the zero row j = k is left out, since it would make every direction zero.

    Example:
        >>> region_rows(torch.eye(2, dtype=torch.float64))
        tensor([[[-1.,  1.]],
        <BLANKLINE>
                [[ 1., -1.]]], dtype=torch.float64)
    """
    check_floating("preferences", preferences)
    if preferences.ndim != 2:
        raise ValueError(f"'preferences' must have shape [K, m]. Got {list(preferences.shape)} instead.")
    return _rows_of(preferences, slice(0, len(preferences)))


def _rows_of(preferences: Tensor, some: slice) -> Tensor:
    """The constraint rows of some regions, ``[n, K−1, m]``."""
    count, tasks = preferences.shape
    own = torch.arange(count, device=preferences.device)[some]
    other = torch.arange(count - 1, device=preferences.device).expand(len(own), -1)
    other = other + (other >= own[:, None]).long()
    return preferences[other.reshape(-1)].reshape(len(own), count - 1, tasks) - preferences[some, None, :]


def constraint_values(rows: Tensor, losses: Tensor) -> Tensor:
    r"""How far each constraint is from holding, ``G [..., J]``: at most zero inside the region (paper, equation 7).

    :math:`G_j = W_j^\top L / \|L\|`, in float64. The division by the length removes the scale of the losses, as in the
    paper's code. Losses that are all zero count as lying on the region's own ray.

    Args:
        rows: ``W [..., J, m]``, from :func:`region_rows`.
        losses: ``L [..., m]``.
    """
    check_floating("rows", rows)
    check_floating("losses", losses)
    check_trailing("losses", losses, rows.shape[-1])
    return values_of(rows, losses)


def values_of(rows: Tensor, losses: Tensor) -> Tensor:
    """:func:`constraint_values` of tensors that are known to fit."""
    w, loss = rows.double(), losses.detach().double()
    largest = loss.abs().amax(-1, keepdim=True)
    direction = loss / largest.clamp_min(1e-300)
    direction = direction / direction.norm(dim=-1, keepdim=True).clamp_min(1.0)
    values: Tensor = (w * direction[..., None, :]).sum(-1)
    if may_ask(largest) and bool(largest.all()):  # NaN counts as true, stays NaN, and is in no region
        return values
    return torch.where(largest == 0, -slack(w), values)


def slack(rows: Tensor) -> Tensor:
    r"""Minus the constraint values on the region's own ray: :math:`1 - u_j^\top u_k = \|W_j\|^2 / 2`, ``[..., J]``."""
    return rows.square().sum(-1) / 2


def active_initial(values: Tensor) -> Tensor:
    r"""The paper's I (section 4.2.1): violated or on the boundary, :math:`G_j \ge 0`, ``[..., J]`` bool."""
    return values >= 0


def active_main(values: Tensor, rows: Tensor, epsilon: float) -> Tensor:
    r"""The paper's :math:`I_\epsilon` (equation 11), relative: :math:`G_j \ge -\epsilon (1 - u_j^\top u_k)`.

    The threshold is a share of the constraint's distance from the region's own ray, so that on the ray nothing is
    active for any :math:`\epsilon < 1`. The paper's absolute threshold can make both neighbours of a narrow region
    active at once; then the origin is in the hull, and the step is zero for any gradients.
    """
    if not 0.0 <= epsilon < 1.0:
        raise ValueError(f"'epsilon' must be at least 0 and under 1. Got {quote(epsilon)} instead.")
    return values >= -epsilon * slack(rows.double())


def in_region(preferences: Tensor, losses: Tensor) -> Tensor:
    """Whether ``losses[..., k, :]`` lies in the region of ``preferences[k]``, ``[..., K]`` bool (paper, equation 6).

    Memory grows with K, not with its square: regions are checked in blocks.

    Example:
        >>> u = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
        >>> in_region(u, torch.tensor([[0.9, 0.2], [0.8, 0.3]]))
        tensor([ True, False])
    """
    if preferences.ndim != 2 or not len(preferences) or losses.shape[-2:] != preferences.shape:
        return (constraint_values(region_rows(preferences), losses) <= FEASIBLE_TOLERANCE).all(-1)  # raises the error
    check_floating("preferences", preferences)
    parts = [
        (constraint_values(_rows_of(preferences, block), losses[..., block, :]) <= FEASIBLE_TOLERANCE).all(-1)
        for block in blocks(len(preferences), losses.numel())
    ]
    return parts[0] if len(parts) == 1 else torch.cat(parts, -1)
