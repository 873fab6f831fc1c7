"""The min-norm point by two oracles: DAQP, a dual active-set solver in C, and rational numbers."""

from __future__ import annotations

import itertools
from fractions import Fraction

import daqp
import numpy as np
import torch
from torch import Tensor


def daqp_point(points: Tensor) -> Tensor | None:
    """The min-norm point ``[m]`` of the hull of ``points [N, m]``; None if DAQP cycles.

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


def exact_weights(points: Tensor) -> list[Fraction]:
    """The weights of the min-norm point of the hull of ``points [N, n]``, without any rounding, for few points.

    Every subset of the points is tried: its least point solves ``H s = λ 1`` and ``Σ s = 1``, and the best one in the
    hull is the answer. Subsets that are not affinely independent have a smaller one that does as well.
    """
    p = [[Fraction(x) for x in row] for row in points.double().tolist()]
    h = [[sum((a * b for a, b in zip(one, other, strict=True)), Fraction(0)) for other in p] for one in p]
    best: tuple[Fraction, list[Fraction]] | None = None
    for size in range(1, len(p) + 1):
        for chosen in itertools.combinations(range(len(p)), size):
            rows = [[*(h[i][j] for j in chosen), Fraction(-1), Fraction(0)] for i in chosen]
            found = _solve([*rows, [*[Fraction(1)] * size, Fraction(0), Fraction(1)]])
            if found is None or min(found[:-1]) < 0 or (best is not None and found[-1] >= best[0]):
                continue
            weights = [Fraction(0)] * len(p)
            for i, weight in zip(chosen, found, strict=False):
                weights[i] = weight
            best = found[-1], weights
    assert best is not None
    return best[1]


def _solve(system: list[list[Fraction]]) -> list[Fraction] | None:
    """Gauss-Jordan elimination on an augmented matrix; None if it is singular."""
    for i in range(len(system)):
        pivot = next((k for k in range(i, len(system)) if system[k][i]), None)
        if pivot is None:
            return None
        system[i], system[pivot] = system[pivot], system[i]
        system[i] = [x / system[i][i] for x in system[i]]
        for k, row in enumerate(system):
            if k != i and row[i]:
                system[k] = [x - row[i] * y for x, y in zip(row, system[i], strict=True)]
    return [row[-1] for row in system]
