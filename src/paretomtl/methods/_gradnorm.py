"""GradNorm (Chen et al. 2018): weights that give all tasks gradients of similar length."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from paretomtl._support.argument_checks import check_positive, is_number, quote
from paretomtl.methods._scaled_method import ScaledMethod
from paretomtl.methods.base import Reading, uniform
from paretomtl.methods.inputs import SafeStep, State
from paretomtl.methods.loss_scaling import Scale


@dataclass(frozen=True, repr=False)
class GradNorm(ScaledMethod):
    r"""GradNorm (Chen et al. 2018, equations 1 and 2): weights that pull the tasks' gradient norms together.

    Task i has the weighted norm :math:`G_i = w_i \|\nabla L_i\|`, whose mean is :math:`\bar G`, and the inverse
    training rate :math:`r_i = (L_i / L_i(0)) / \operatorname{mean}_j (L_j / L_j(0))`. The weights descend on
    :math:`\sum_i |G_i - \bar G r_i^{\text{asymmetry}}|` with the target held constant, then are scaled to sum to m.
    The norms are the square roots of the Gramian's diagonal, so that no second-order pass is needed.

    The slope :math:`\pm\|\nabla L_i\|` is divided by the mean norm. The original leaves that to Adam; without it, the
    learning rate would depend on the scale of the losses. New weights are used in the step that computes them; the
    original uses them in the next.

    Args:
        asymmetry: the strength of the pull towards equal training rates, the paper's α.
        learning_rate: the length of a step of the weights.
        scale: factors of the losses, as for :class:`MGDA`. Training rates have no units, but weights move too slowly to
            make up for very different units.

    Example:
        >>> from paretomtl.methods import Step
        >>> method = GradNorm(learning_rate=0.1)
        >>> step = Step(losses=torch.ones(1, 2), gramian=torch.tensor([[[4.0, 0.0], [0.0, 1.0]]]))
        >>> method.weigh(step, method.init(method.spread(1, tasks=2)))[0]  # the task with the larger gradient gives way
        tensor([[0.8966, 1.1034]])
    """

    asymmetry: float = 1.5
    learning_rate: float = 0.025
    scale: Scale | None = None

    name: ClassVar[str] = "gradnorm"
    needs_gramian: ClassVar[bool] = True
    reading: ClassVar[Reading] = "start"

    def __post_init__(self) -> None:
        if not is_number(self.asymmetry) or not math.isfinite(self.asymmetry):
            raise ValueError(f"'asymmetry' must be a finite number. Got {quote(self.asymmetry)} instead.")
        check_positive("learning_rate", self.learning_rate)
        self._check_scale()

    def spread(self, count: int, tasks: int, *, seed: int = 0) -> Tensor:
        return uniform(count, tasks)

    def _init(self, preferences: Tensor) -> State:
        return {
            "weights": torch.ones(preferences.shape, dtype=torch.float64),
            "first": torch.zeros(preferences.shape, dtype=torch.float64),  # zero: unknown
        }

    def _weigh(self, step: SafeStep, state: State) -> tuple[Tensor, State]:
        present, weights = step.present, state["weights"]
        first = torch.where((state["first"] > 0) | ~present, state["first"], step.losses.clamp_min(1e-12))
        rate = torch.where(present, step.losses.clamp_min(0.0) / first.clamp_min(1e-12), 0.0)
        rate = rate / _mean(rate, present).clamp_min(1e-12)
        norms = step.gramian.diagonal(dim1=-2, dim2=-1).clamp_min(0.0).sqrt()
        weighted = weights * norms
        target = _mean(weighted, present) * rate**self.asymmetry
        slope = torch.sign(weighted - target) * norms / _mean(norms, present).clamp_min(1e-150)
        moved = (weights - self.learning_rate * slope).clamp_min(1e-3)  # an absent task has norm 0, hence slope 0
        moved = moved * (weights.shape[-1] / moved.sum(-1, keepdim=True))
        return moved, {"weights": moved, "first": first}


def _mean(values: Tensor, present: Tensor) -> Tensor:
    """The mean over the tasks that are present, ``[K, 1]``."""
    return torch.where(present, values, 0.0).sum(-1, keepdim=True) / present.sum(-1, keepdim=True).clamp_min(1)
