"""The true front of a problem, if it is known."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from paretomtl._support.argument_checks import check_count, check_trailing
from paretomtl.core.preferences import lattice


@dataclass(frozen=True)
class TrueFront:
    """The true front of a problem whose Pareto set is the image of the simplex.

    Attributes:
        tasks: the number of tasks m.
        point: maps weights on the simplex ``[n, m]`` to the losses ``[n, m]`` of Pareto optimal points, and all of the
            simplex onto the whole front.
    """

    tasks: int
    point: Callable[[Tensor], Tensor]

    def front(self, count: int) -> Tensor:
        """At least ``count`` points of the front, ``[n, m]``, from a lattice on the simplex.

        Example:
            >>> from paretomtl.problems import quadratic
            >>> quadratic().truth.front(3)  # two parabolas, one unit apart from the origin each
            tensor([[0.0000, 2.0000],
                    [0.5000, 0.5000],
                    [2.0000, 0.0000]], dtype=torch.float64)
        """
        count = check_count("count", count)
        divisions = 1
        while math.comb(divisions + self.tasks - 1, self.tasks - 1) < count:
            divisions += 1
        return self.point(lattice(divisions, self.tasks))

    def distance(self, losses: Tensor) -> Tensor:
        """An upper bound of the Euclidean distance of each loss vector ``[n, m]`` to the front, ``[n]``.

        A pattern search in the weights finds the nearest point. It starts at the best point of a lattice. Each step
        tries all moves from one weight to another and a small lattice around the point, and takes the best. If none is
        better, it halves the moves.
        """
        check_trailing("losses", losses, self.tasks)
        wanted = losses.double()[:, None, :]
        row = torch.arange(len(losses))
        grid = lattice({2: 40, 3: 10}.get(self.tasks, 3), self.tasks)
        around = grid - 1.0 / self.tasks
        eye = torch.eye(self.tasks, dtype=torch.float64)
        giver = eye.repeat_interleave(self.tasks, 0)
        moves = eye.repeat(self.tasks, 1) - giver
        least: Tensor
        least, start = (self.point(grid) - wanted).norm(dim=-1).min(-1)
        best = grid[start][:, None, :]
        size = torch.full((len(losses), 1, 1), 0.5, dtype=torch.float64)
        for _ in range(600):
            shifted = (best + size * around).clamp_min(0.0)
            moved = best + moves * torch.minimum((best @ giver.T).mT, size)
            weights = torch.cat([shifted / shifted.sum(-1, keepdim=True), moved], 1)
            distance = (self.point(weights.reshape(-1, self.tasks)).reshape(weights.shape) - wanted).norm(dim=-1)
            nearest, index = distance.min(-1)
            better = nearest < least
            best = torch.where(better[:, None, None], weights[row, index][:, None, :], best)
            least = torch.minimum(least, nearest)
            size = torch.where(better[:, None, None], size, size / 2)
            if bool((size < 1e-10).all()):
                break
        return least


class Point(nn.Module):
    """A point of R^d as a model: starts uniformly in ``[−half, half]^d``, and outputs its coordinates."""

    def __init__(self, dimension: int, half: float = 0.5) -> None:
        super().__init__()
        self.x = nn.Parameter((2 * torch.rand(dimension) - 1) * half)

    def forward(self) -> Tensor:
        return self.x


class PerDevice:
    """Constants of a problem's losses, moved once to each device and precision: a copy at every step would block."""

    def __init__(self, *constants: Tensor) -> None:
        self._constants = constants
        self._moved: dict[tuple[torch.device, torch.dtype], tuple[Tensor, ...]] = {}

    def __call__(self, device: torch.device, dtype: torch.dtype) -> tuple[Tensor, ...]:
        if (device, dtype) not in self._moved:
            self._moved[device, dtype] = tuple(c.to(device=device, dtype=dtype) for c in self._constants)
        return self._moved[device, dtype]

    def __getstate__(self) -> dict[str, object]:
        return {"_constants": self._constants, "_moved": {}}  # another process may have other devices
