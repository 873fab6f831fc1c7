"""Fixed weights: linear scalarization, random search and single tasks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal, TypeAlias, get_args

import torch
from torch import Tensor

from paretomtl._support.argument_checks import check_count, check_tasks, is_number, quote
from paretomtl.core import preferences as vectors
from paretomtl.methods.description import EARLIER
from paretomtl.methods.fixed_weights import FixedWeights, importances
from paretomtl.methods.inputs import State
from paretomtl.methods.loss_scaling import Scale

Layout: TypeAlias = Literal["interior", "corners"]
"""The rows of linear scalarization: inside the simplex, or the paper's grid with its corners."""


@dataclass(frozen=True, repr=False)
class Linear(FixedWeights):
    r"""Linear scalarization with fixed weights, by default inside the simplex (section 3.2, equation 2).

    The K rows are importances, non-negative and scaled to sum to m. A number in place of rows gives a layout on the
    simplex. The grid of the paper's search has rows at the corners, which never train some task. The default has rows
    near the corners instead.

    Args:
        scale: factors of the losses: "auto", "first", one per task, or an ideal and a worst point, as for
            :class:`~paretomtl.ParetoMTL`. Importances apply to the scaled losses: equal ones give cents and a
            cross-entropy the same weight. The weights of the scaled losses sum to m.
        layout: the rows that a number stands for. "interior" is :func:`paretomtl.preferences.interior`, in which every
            row trains every task. "corners" is the paper's grid: evenly spaced from corner to corner for two tasks;
            for more, the even preference vectors, scaled to sum to one.
        least: the smallest share of a task in "interior", at least 0 and under 1 / m; by default 0.05, and half of
            1 / m for more than ten tasks.

    Example:
        >>> from paretomtl.methods import Step
        >>> method = Linear()
        >>> state = method.init(method.spread(3, tasks=2))
        >>> method.weigh(Step(losses=torch.ones(3, 2)), state)[0]
        tensor([[1.9000, 0.1000],
                [1.0000, 1.0000],
                [0.1000, 1.9000]])
        >>> Linear(layout="corners").spread(3, tasks=2)
        tensor([[1.0000, 0.0000],
                [0.5000, 0.5000],
                [0.0000, 1.0000]], dtype=torch.float64)
    """

    scale: Scale | None = None
    layout: Layout = field(default="interior", metadata={EARLIER: "corners"})
    least: float | None = None

    name: ClassVar[str] = "linear"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.layout not in get_args(Layout):
            raise ValueError(f"'layout' must be one of {', '.join(get_args(Layout))}. Got {quote(self.layout)}.")
        if self.least is None:
            return
        if not is_number(self.least) or not 0.0 <= self.least < 0.5:
            raise ValueError(f"'least' must be at least 0 and under 1 / tasks. Got {quote(self.least)} instead.")
        if self.layout == "corners":
            raise ValueError(
                f"'least' must be None with layout='corners', whose rows leave tasks out. Got {quote(self.least)}."
            )

    def spread(self, count: int, tasks: int, *, seed: int = 0) -> Tensor:
        if self.layout == "interior":
            return vectors.interior(count, tasks, least=self.least)
        if tasks == 2 and count > 1:
            share = torch.linspace(1.0, 0.0, count, dtype=torch.float64)
            return torch.stack([share, 1 - share], -1)
        directions = vectors.even(count, tasks)
        return directions / directions.sum(-1, keepdim=True)


@dataclass(frozen=True, repr=False)
class RandomSearch(FixedWeights):
    """Linear scalarization with weights drawn uniformly from the simplex, the paper's random search (section 2)."""

    scale: Scale | None = None

    name: ClassVar[str] = "random-search"

    def spread(self, count: int, tasks: int, *, seed: int = 0) -> Tensor:
        count = check_count("count", count)
        tasks = check_tasks("tasks", tasks)
        uniform = torch.rand(count, tasks, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        share = -uniform.clamp_min(1e-12).log()
        return share / share.sum(-1, keepdim=True)


@dataclass(frozen=True, repr=False)
class SingleTask(FixedWeights):
    """One model per task, trained on its own loss alone: the paper's single-task baseline (section 6). K equals m."""

    scale: Scale | None = None

    name: ClassVar[str] = "single-task"
    separate: ClassVar[bool] = True

    @property
    def minds_units(self) -> bool:
        return False  # for one task alone, a factor is a learning rate

    def usual_count(self, tasks: int) -> int:
        return tasks

    def spread(self, count: int, tasks: int, *, seed: int = 0) -> Tensor:
        tasks = check_tasks("tasks", tasks)
        if count != tasks:
            raise ValueError(
                f"'preferences' must be the number of tasks ({tasks}) for '{self.name}'. Got {count} instead."
            )
        return torch.eye(tasks, dtype=torch.float64)

    def _init(self, preferences: Tensor) -> State:
        weights = importances(preferences)
        if not bool(((weights > 0).sum(-1) == 1).all()):
            raise ValueError(f"'preferences' must be one task each for '{self.name}'. Got {weights.tolist()} instead.")
        return {"weights": weights}
