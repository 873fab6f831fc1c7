"""A coupled method for tests: each weight is a loss's share in the losses of all models of the front."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from _helpers.networks import MLP
from paretomtl.methods import Method, Reading, State
from paretomtl.methods.base import uniform
from paretomtl.methods.inputs import SafeStep


@dataclass(frozen=True)
class Share(Method):
    """Weights ``1/2 + L_ki / Σ_j L_ji`` over the models that are not broken; the state counts these.

    Args:
        gramian: whether weights depend on the Gramian, too.
        rows: how many a front has; others are refused. None for any.
        fading: whether weights fall with the number of steps that were weighed.
    """

    gramian: bool = False
    rows: int | None = None
    fading: bool = False

    @property
    def name(self) -> str:
        return "share"

    @property
    def needs_gramian(self) -> bool:
        return self.gramian

    @property
    def coupled(self) -> bool:
        return True

    @property
    def reading(self) -> Reading:
        return "start"

    def spread(self, count: int, tasks: int, *, seed: int = 0) -> Tensor:
        return uniform(count, tasks)

    def init(self, preferences: Tensor) -> State:
        zeros = torch.zeros(len(preferences), dtype=torch.float64)
        return {"neighbours": zeros, "weighed": zeros.clone()}

    def _weigh(self, step: SafeStep, state: State) -> tuple[Tensor, State]:
        if self.rows is not None and len(step.losses) != self.rows:
            raise ValueError(
                f"all {self.rows} rows of a front must be weighed at once. Got {len(step.losses)} instead."
            )
        losses = torch.where(step.valid[:, None], step.losses, 0.0)
        weights = 0.5 + losses / losses.sum(0).clamp_min(1e-300)
        if self.gramian:  # some use of it: tasks with longer gradients count a little less
            weights = weights / (1.0 + 0.1 * step.gramian.diagonal(dim1=-2, dim2=-1))
        if self.fading:
            weights = weights / (1.0 + state["weighed"][:, None])
        neighbours = torch.zeros_like(state["neighbours"]) + step.valid.sum()
        return weights, {"neighbours": neighbours, "weighed": state["weighed"] + 1}


def expected_weights(losses: Tensor) -> Tensor:
    """The weights of one front by the formula, for losses ``[K, m]``; broken rows are NaN, and get zeros."""
    known = losses.isfinite().all(-1, keepdim=True)
    safe = torch.where(known, losses, 0.0)
    return torch.where(known, 0.5 + safe / safe.sum(0), 0.0)


class Breaking(MLP):
    """Its first output is NaN from the third step on, if its random mark says so."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("steps", torch.zeros(()))
        self.register_buffer("breaks", (torch.rand(()) < 0.5).double())

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        first, second = super().forward(x)
        broken = (self.steps >= 2) & (self.breaks > 0)
        if self.training:
            self.steps += 1
        return torch.where(broken, torch.nan, first), second
