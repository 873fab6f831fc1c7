"""Uncertainty weighting (Kendall et al. 2018): weights from learned variances of the tasks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from paretomtl._support.argument_checks import check_flag, check_positive, quote
from paretomtl.methods._scaled_method import ScaledMethod
from paretomtl.methods.base import Reading, uniform
from paretomtl.methods.inputs import SafeStep, State
from paretomtl.methods.loss_scaling import Scale

Kind = Literal["classification", "regression"]


@dataclass(frozen=True, repr=False)
class Uncertainty(ScaledMethod):
    r"""Uncertainty weighting (Kendall, Gal and Cipolla 2018, equations 7 and 10): weights from learned log-variances.

    With :math:`s_i = \log \sigma_i^2`, the total loss is :math:`\sum_i b_i e^{-s_i} L_i + \tfrac12 s_i`, where b is ½
    for a regression (a Gaussian likelihood) and 1 for a classification (a scaled softmax). Its slope :math:`\tfrac12 -
    b_i e^{-s_i} L_i` is known in closed form, so the log-variances take their gradient step here, without autograd and
    without the user's optimizer. The weights are :math:`b_i e^{-s_i}`, used in the step that updates them.

    Args:
        kinds: "classification" or "regression", for all tasks or one per task.
        learning_rate: the length of a step of the log-variances.
        normalize: scale the weights to sum to m, so that learning rates compare with those of fixed weights.
        scale: factors of the losses, as for :class:`MGDA`; log-variances begin at zero, which suits losses of about 1.

    Example:
        >>> from paretomtl.methods import Step
        >>> method = Uncertainty(kinds="regression", learning_rate=0.5)
        >>> step = Step(losses=torch.tensor([[3.0, 1.0]]))
        >>> method.weigh(step, method.init(method.spread(1, tasks=2)))[0]  # the larger loss is the less certain one
        tensor([[0.7551, 1.2449]])
    """

    kinds: Kind | tuple[Kind, ...] = "classification"
    learning_rate: float = 0.025
    normalize: bool = True
    scale: Scale | None = None

    name: ClassVar[str] = "uncertainty"
    needs_gramian: ClassVar[bool] = False
    reading: ClassVar[Reading] = "start"

    def __post_init__(self) -> None:
        kinds = self.kinds if isinstance(self.kinds, (tuple, list)) else (self.kinds,)
        for kind in kinds:
            if kind not in ("classification", "regression"):
                raise ValueError(f'\'kinds\' must be "classification" or "regression". Got {quote(kind)} instead.')
        check_positive("learning_rate", self.learning_rate)
        check_flag("normalize", self.normalize)
        self._check_scale()

    def spread(self, count: int, tasks: int, *, seed: int = 0) -> Tensor:
        return uniform(count, tasks)

    def _init(self, preferences: Tensor) -> State:
        count, tasks = preferences.shape
        kinds = (self.kinds,) * tasks if isinstance(self.kinds, str) else self.kinds
        if len(kinds) != tasks:
            raise ValueError(f"'kinds' must have one entry per task ({tasks}). Got {len(kinds)} instead.")
        factor = torch.tensor([1.0 if kind == "classification" else 0.5 for kind in kinds], dtype=torch.float64)
        return {
            "factor": factor.expand(count, -1).clone(),
            "log_variance": torch.zeros(count, tasks, dtype=torch.float64),
        }

    def _weigh(self, step: SafeStep, state: State) -> tuple[Tensor, State]:
        s, factor = state["log_variance"], state["factor"]
        slope = 0.5 - factor * torch.exp(-s) * step.losses
        # A zero loss would drive its log-variance to minus infinity; a huge one would throw it far out in one step.
        moved = (s - self.learning_rate * slope.clamp(-10.0, 10.0)).clamp(-10.0, 10.0)
        s = torch.where(step.present, moved, s)
        weights = factor * torch.exp(-s)
        if self.normalize:
            weights = weights * (weights.shape[-1] / weights.sum(-1, keepdim=True))
        return weights, {"factor": factor, "log_variance": s}
