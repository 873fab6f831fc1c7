"""The min-norm point by DAQP, a dual active-set solver in C: the oracle."""

from __future__ import annotations

import daqp
import numpy as np
import torch
from torch import Tensor


def daqp_point(points: Tensor) -> Tensor | None:
    """The min-norm point ``[m]`` of the hull of ``points [N, m]``; None where DAQP cycles.

    Lifting each point p to (p, ρ) turns the hull into a cone; the residual of f = (0, …, 0, 1) after projection on that
    cone solves min ½|z − f|² s.t. e_iᵀz ≤ 0, which is strictly convex whatever the points are.
    """
    p = points.double().numpy()
    lengths = (p * p).sum(1)
    rho = np.sqrt(np.clip(lengths.min(), 1e-10 * lengths.max(), lengths.max())) or 1.0
    e = np.ascontiguousarray(np.c_[p, np.full(len(p), rho)] / np.sqrt(lengths + rho**2)[:, None])
    tasks = p.shape[1]
    f = np.zeros(tasks + 1)
    f[-1] = 1.0
    z, _, flag, _ = daqp.solve(
        np.eye(tasks + 1),
        -f,
        e,
        np.zeros(len(p)),
        np.full(len(p), -1e30),
        np.zeros(len(p), dtype=np.int32),
        primal_tol=1e-13,
        dual_tol=1e-13,
    )
    if flag != 1:
        return None
    nearest = f - z
    return torch.from_numpy(nearest[:-1] * rho / nearest[-1])
