"""Measurements of a diagnosis: losses, gradients and cosines of joint and separate training."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

_STEPS = 1000  # for a problem without data, whose epochs are single steps
_EPOCHS = 5  # for a problem without a recipe
_LEAST = 3  # epochs: after one or two, hardly any task has been learnt


@dataclass(frozen=True, repr=False, eq=False)
class Measurements:
    """Measurements for m tasks and S seeds, which the rules of a diagnosis judge.

    :class:`paretomtl.Diagnosis` describes each of them.
    """

    problem: str
    tasks: tuple[str, ...]
    epochs: int
    seeds: tuple[int, ...]
    split: str
    cosines: Tensor
    cosines_by_seed: Tensor
    negative: Tensor
    norms: Tensor
    first: Tensor
    last: Tensor
    learnt: Tensor
    joint: Tensor
    alone: Tensor
    models: int
    broken: int
    seconds: float
    without_data: bool = False
    planned: int | None = None
    ends: Tensor | None = None
    factors: tuple[float, ...] | None = None

    @property
    def units(self) -> Tensor:
        """The factors of the losses ``[m]``; ones for unscaled losses."""
        factors = (1.0,) * len(self.tasks) if self.factors is None else self.factors
        return torch.tensor(factors, dtype=torch.float64)

    @property
    def whole(self) -> bool:
        """Whether models were trained for all epochs of the problem's recipe."""
        return self.planned is not None and self.epochs >= self.planned

    @property
    def longer(self) -> bool:
        """Whether models were trained longer than a first diagnosis does."""
        return self.epochs > usual_length(self.planned, without_data=self.without_data)

    @property
    def late_cosines(self) -> Tensor:
        """For each pair, the cosines of the last third that has any, ``[m, m]``."""
        return _late(self.cosines)

    @property
    def late_cosines_by_seed(self) -> Tensor:
        """The same for each seed, ``[S, m, m]``."""
        return _late(self.cosines_by_seed)

    @property
    def ratios(self) -> Tensor:
        """The joint loss over that of a separate network, means over seeds, ``[m]``; NaN if that is not meaningful."""
        joint, alone = self.joint.mean(0), self.alone.mean(0)
        return torch.where((alone > 0) & (joint >= 0), joint / alone, torch.nan)

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """All pairs of tasks, those whose gradients agree least first."""
        m, late = len(self.tasks), self.late_cosines.nan_to_num(2.0)
        return sorted(((i, j) for i in range(m) for j in range(i + 1, m)), key=lambda pair: float(late[pair]))


def usual_length(planned: int | None, *, without_data: bool) -> int:
    """The epochs of a first diagnosis, from those of the recipe; steps for a problem without data."""
    if without_data:
        return _STEPS
    return _EPOCHS if planned is None else min(planned, max(_LEAST, round(planned / 10)))


def _late(cosines: Tensor) -> Tensor:
    first, *others = cosines.unbind(-3)
    for third in others:
        first = torch.where(third.isnan(), first, third)
    return first
