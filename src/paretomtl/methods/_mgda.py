"""MGDA, the multiple-gradient descent algorithm, as in MOO-MTL (Sener and Koltun 2018)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from paretomtl._support.argument_checks import check_flag
from paretomtl.core import Solve, released_direction
from paretomtl.methods._scaled_method import ScaledMethod
from paretomtl.methods.base import Reading, uniform
from paretomtl.methods.inputs import SafeStep, State
from paretomtl.methods.loss_scaling import Scale


@dataclass(frozen=True, repr=False)
class MGDA(ScaledMethod):
    r"""MGDA (Désidéri 2012), as MOO-MTL uses it (Sener and Koltun 2018; paper, equation 16).

    The weights are those of the min-norm point of the task gradients. They lie on the simplex, and the step lowers all
    tasks or is zero (Lemma 1). The K rows are only K starts.

    Args:
        rescale: scale the weights to sum to m, so that learning rates compare with those of fixed weights.
        scale: factors of the losses: "auto", "first", one per task, or an ideal and a worst point, as for
            :class:`~paretomtl.ParetoMTL`. The weights are those of the scaled losses, times the factors.

    Example:
        >>> from paretomtl.methods import Step
        >>> method = MGDA()
        >>> step = Step(losses=torch.ones(1, 2), gramian=torch.tensor([[[4.0, 0.0], [0.0, 1.0]]]))
        >>> method.weigh(step, method.init(method.spread(1, tasks=2)))[0]
        tensor([[0.2000, 0.8000]])
    """

    rescale: bool = False
    scale: Scale | None = None

    name: ClassVar[str] = "mgda"
    needs_gramian: ClassVar[bool] = True
    reading: ClassVar[Reading] = "start"

    def __post_init__(self) -> None:
        check_flag("rescale", self.rescale)
        self._check_scale()

    def spread(self, count: int, tasks: int, *, seed: int = 0) -> Tensor:
        return uniform(count, tasks)

    def _init(self, preferences: Tensor) -> State:
        return {"critical": torch.zeros(len(preferences), dtype=torch.bool)}

    def _weigh(self, step: SafeStep, state: State) -> tuple[Tensor, State]:
        dual = released_direction(step.gramian, present=step.present, precision=step.precision)
        weights = dual.combination * step.losses.shape[-1] if self.rescale else dual.combination
        return weights, {"critical": dual.status == Solve.ZERO.value}

    def status(self, state: State, losses: Tensor | None = None) -> list[str]:
        return ["critical" if critical else "trained" for critical in state["critical"].tolist()]
