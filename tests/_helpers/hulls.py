"""Hulls of stated kinds for the min-norm tests and benchmarks: (gramian, rows, allowed) in float64."""

from __future__ import annotations

import torch
from torch import Tensor

KINDS = ("plain", "rank-deficient", "duplicated", "zero", "parallel", "opposed")
SCALES = ("none", "problem", "task")


def hulls(
    kind: str, scale: str, size: int, tasks: int, points: int, *, seed: int, rounded: torch.dtype = torch.float64
) -> tuple[Tensor, Tensor, Tensor]:
    """A batch of ``size`` hulls of ``points`` points: the task gradients, and differences of preference vectors.

    Args:
        kind: what the task gradients are like, one of KINDS.
        scale: "problem" multiplies all gradients of a problem by one factor of 1e-8 … 1e8, "task" each by its own.
        rounded: the precision that the Gramian is rounded to.
    """
    g = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=g, dtype=torch.float64)

    rank = max(1, tasks // 2) if kind == "rank-deficient" else tasks + 3
    jacobian = normal(size, tasks, rank)
    if kind == "duplicated":
        jacobian[:, tasks // 2 :] = jacobian[:, : tasks - tasks // 2].clone()
    elif kind == "zero":
        jacobian[:, 0] = 0.0
        jacobian[size // 2 :] = 0.0
    elif kind == "parallel":
        jacobian = (
            normal(size, 1, rank) + 10.0 ** (-8 * torch.rand(size, 1, 1, generator=g, dtype=torch.float64)) * jacobian
        )
    elif kind == "opposed":
        jacobian[:, -1] = -jacobian[:, 0]
    if scale != "none":
        spread = (size, 1, 1) if scale == "problem" else (size, tasks, 1)
        jacobian = jacobian * 10.0 ** (16 * torch.rand(*spread, generator=g, dtype=torch.float64) - 8)
    gramian = (jacobian @ jacobian.mT).to(rounded).double()

    vectors = normal(size, points - tasks + 1, tasks).abs()
    vectors = vectors / vectors.norm(dim=-1, keepdim=True)
    differences = vectors[:, 1:] - vectors[:, :1]
    rows = torch.cat([torch.eye(tasks, dtype=torch.float64).expand(size, -1, -1), differences], dim=1)
    allowed = torch.rand(size, points, generator=g) < 0.7
    allowed[: size // 3, :tasks] = True
    allowed[size // 3 : 2 * size // 3, :tasks] = False  # the initial phase: constraints alone
    allowed[:, points // 2] |= ~allowed.any(-1)
    return gramian, rows, allowed


def gradients(size: int, tasks: int, digits: float, seed: int, *, dimensions: int | None = None) -> Tensor:
    """Random directions; lengths over ``digits`` orders of magnitude, including the shortest and the longest."""
    g = torch.Generator().manual_seed(seed)
    jacobian = torch.randn(size, tasks, dimensions or max(3, tasks), generator=g, dtype=torch.float64)
    exponents = digits * (torch.rand(size, tasks, 1, generator=g, dtype=torch.float64) - 0.5)
    exponents[:, 0], exponents[:, -1] = -digits / 2, digits / 2
    return jacobian / jacobian.norm(dim=-1, keepdim=True) * 10.0**exponents


def gradient_certificate(jacobian: Tensor, weights: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The certificate from the gradients: its violation, the length of d, and the terms that cancelled in d."""
    lengths = jacobian.norm(dim=-1)
    d = (weights[:, None] @ jacobian).squeeze(1)
    norm = d.norm(dim=-1, keepdim=True)
    violations = norm / lengths - (jacobian @ d[..., None]).squeeze(-1) / (lengths * norm)
    return violations.amax(-1), norm[:, 0], (weights * lengths).sum(-1)


def gap(gramian: Tensor, rows: Tensor, allowed: Tensor, weights: Tensor) -> Tensor:
    """``(sᵀHs − min_j (Hs)_j) / max_j H_jj`` over the allowed points, H = A C Aᵀ: zero exactly at the optimum."""
    h = rows @ gramian @ rows.mT
    hs = (h @ weights[..., None]).squeeze(-1)
    least = torch.where(allowed, hs, torch.inf).amin(-1)
    largest = torch.where(allowed, h.diagonal(dim1=-2, dim2=-1), 0.0).amax(-1)
    return ((weights * hs).sum(-1) - least) / torch.where(largest > 0, largest, 1.0)


def certificate(gramian: Tensor, rows: Tensor, allowed: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """By how much ``⟨p, x⟩ ≥ |x|²`` fails at the worst point, relative to ``|p| |x|``, and how well that is known.

    The second number, at least one, is what rounding of the Gramian is multiplied by: the terms that cancelled in x and
    in p, against their lengths.
    """
    h = rows @ gramian @ rows.mT
    lengths = h.diagonal(dim1=-2, dim2=-1).clamp_min(1e-300).sqrt()
    products = (h @ weights[..., None]).squeeze(-1)
    square = (weights * products).sum(-1, keepdim=True).clamp_min(1e-300)
    violations = (square - products) / (lengths * square.sqrt())
    terms = (rows.abs() @ gramian.diagonal(dim1=-2, dim2=-1).clamp_min(0.0).sqrt()[..., None]).squeeze(-1)
    own = (weights * terms).sum(-1, keepdim=True)
    lost = (own / square.sqrt() * torch.where(allowed, torch.maximum(terms, own) / lengths, 0.0)).amax(-1)
    return torch.where(allowed, violations, -torch.inf).amax(-1).clamp_min(0.0), lost
