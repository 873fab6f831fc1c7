"""Probes: methods that measure the task gradients of a run, and weigh tasks as linear scalarization does.

They come from no paper: a diagnosis trains with them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from paretomtl.methods import State
from paretomtl.methods.base import uniform
from paretomtl.methods.fixed_weights import FixedWeights
from paretomtl.methods.inputs import SafeStep
from paretomtl.methods.loss_scaling import Scale

NEGATIVE = -1e-3
"""A cosine below this counts as negative; one nearer to zero may be rounding."""


@dataclass(frozen=True, repr=False)
class Plain(FixedWeights):
    """Fixed weights whose largest is 1, instead of a sum of m: a task weighs the same in any row."""

    scale: Scale | None = None

    name: ClassVar[str] = "plain"

    @property
    def minds_units(self) -> bool:
        return False  # a diagnosis has a section on units

    def spread(self, count: int, tasks: int, *, seed: int = 0) -> Tensor:
        return uniform(count, tasks)

    def _init(self, preferences: Tensor) -> State:
        weights = super()._init(preferences)["weights"]
        return {"weights": weights / weights.amax(-1, keepdim=True)}


@dataclass(frozen=True, repr=False)
class Measure(Plain):
    r"""Equal weights; it also records the cosines of the task gradients, from the Gramian C.

    .. math:: \cos_{ij} = C_{ij} / \sqrt{C_{ii} C_{jj}}

    For each third of the run, the state sums up the cosines of the steps in which both tasks have a gradient, counts
    those steps and the ones with a negative cosine, and sums up losses and gradient norms of the steps in which a task
    has labels. If the number of steps is unknown, everything belongs to the first third.

    Example:
        >>> from paretomtl.methods import Step
        >>> method = Measure()
        >>> step = Step(torch.ones(1, 2), torch.tensor([[[4.0, -1.0], [-1.0, 1.0]]]), total=3)
        >>> weights, state = method.weigh(step, method.init(method.spread(1, tasks=2)))
        >>> method.measured(state)["cosines"][0, 0]
        tensor([[ 1.0000, -0.5000],
                [-0.5000,  1.0000]], dtype=torch.float64)
    """

    name: ClassVar[str] = "measure"
    needs_gramian: ClassVar[bool] = True

    @property
    def ends_with_plan(self) -> bool:
        return True  # it measures thirds of the plan

    def usual_count(self, tasks: int) -> int:
        return 1

    def _init(self, preferences: Tensor) -> State:
        state = super()._init(preferences)
        rows, tasks = preferences.shape
        for name in ("cosines", "negative", "pairs"):
            state[name] = torch.zeros(rows, 3, tasks, tasks, dtype=torch.float64)
        for name in ("losses", "norms", "steps"):
            state[name] = torch.zeros(rows, 3, tasks, dtype=torch.float64)
        return state | {"first": torch.zeros(rows, tasks, dtype=torch.float64)}

    def _weigh(self, step: SafeStep, state: State) -> tuple[Tensor, State]:
        norms = step.gramian.diagonal(dim1=-2, dim2=-1).clamp_min(0.0).sqrt()
        unit = torch.where(norms > 0, 1.0 / norms, 0.0)  # scaled from both sides: a product of norms may overflow
        cosines = (step.gramian * unit[..., :, None] * unit[..., None, :]).clamp(-1.0, 1.0)
        there = (norms > 0).double()
        third = step.number * 3 // max(step.total, 1)
        now = (torch.arange(3, device=norms.device) == (third if step.total else 0)).double()
        seen = {
            "cosines": cosines,
            "negative": (cosines < NEGATIVE).double(),
            "pairs": there[..., :, None] * there[..., None, :],
            "losses": step.losses,
            "norms": norms,
            "steps": step.present.double(),
        }
        after = {name: state[name] + now.reshape(3, *[1] * (new.ndim - 1)) * new[:, None] for name, new in seen.items()}
        first = torch.where((state["steps"].sum(1) == 0) & step.present, step.losses, state["first"])
        return state["weights"], {**state, **after, "first": first}

    def measured(self, state: State) -> dict[str, Tensor]:
        return {name: tensor for name, tensor in state.items() if name != "weights"}
