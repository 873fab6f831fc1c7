"""The arms of the study: what is compared with what."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from paretomtl.methods import (
    MGDA,
    Auto,
    GradNorm,
    Linear,
    Method,
    ParetoMTL,
    PNorm,
    RandomSearch,
    SingleTask,
    Uncertainty,
)

LEADING = ("linear, interior", "auto", "p-norm", "pareto-mtl, reachable")
"""The arms that are trained on every problem."""


def _spread(count: int, tasks: int) -> int:
    """As the method spreads its rows."""
    return count


def _reachable(count: int, tasks: int) -> str:
    return f"reachable:{count}"


def _equal(count: int, tasks: int) -> Tensor:
    return torch.full((count, tasks), 1.0 / tasks, dtype=torch.float64)


@dataclass(frozen=True)
class Arm:
    """A way to train a set of models.

    Attributes:
        method: the method.
        rows: its preferences, for a number of models and of tasks.
        options: of :func:`paretomtl.fit`.
        gaps: the number of models that are placed in the gaps of the others, and warm from these.
            Each seed then has its own order of the data; seeds that train as one stack share that of the first.
        own_order: whether each seed has its own order of the data without gaps, too.
        why: what it is compared for.
    """

    method: Method
    why: str
    rows: Callable[[int, int], Any] = _spread
    options: Mapping[str, Any] = field(default_factory=dict)
    gaps: int = 0
    own_order: bool = False

    def configured(self, methods: Mapping[str, Method]) -> Method:
        """The method, with the initial phase and the sum of weights of a problem's recipe."""
        known = methods.get(self.method.name)
        if isinstance(self.method, ParetoMTL) and isinstance(known, ParetoMTL):
            return replace(self.method, rescale=known.rescale, initial_steps=known.initial_steps)
        return known if isinstance(self.method, MGDA) and known is not None else self.method


ARMS: Mapping[str, Arm] = {
    "pareto-mtl": Arm(ParetoMTL(return_share=None), "as in the paper: even preference vectors"),
    "pareto-mtl, reachable": Arm(ParetoMTL(return_share=None), "the same along vectors that models reach", _reachable),
    "linear, corners": Arm(Linear(layout="corners"), "the paper's grid search: corners never train a task"),
    "linear, interior": Arm(Linear(), "the same weights, each task at least a few percent"),
    "linear, own order": Arm(Linear(), "each seed with its own order of the data: what gaps face", own_order=True),
    "linear, gaps": Arm(Linear(), "two models of these in the largest gaps, warm from a neighbour", gaps=2),
    "linear, branch": Arm(Linear(), "the first quarter shared by all models", options={"branch": 0.25}),
    "linear, average": Arm(Linear(), "averages of the weights over recent steps", options={"average": 0.05}),
    "p-norm": Arm(PNorm(), "one backward pass along the rays that models reach", _reachable),
    "auto": Arm(Auto(), "what fit takes when no method is named"),
    "random-search": Arm(RandomSearch(), "weights at random"),
    "mgda": Arm(MGDA(), "steps that improve all tasks; models differ by their start"),
    "gradnorm": Arm(GradNorm(), "one trade-off from every start"),
    "uncertainty": Arm(Uncertainty(), "one trade-off from every start"),
    "equal starts": Arm(Linear(), "equal weights from every start: what chance alone gives", _equal),
    "single-task": Arm(SingleTask(), "a network for each task, not a front: the box around what is possible"),
}
"""Each arm by the name that rows and tables have."""
