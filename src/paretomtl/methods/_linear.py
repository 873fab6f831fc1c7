"""Fixed weights: linear scalarization, random search and single tasks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from paretomtl._support.argument_checks import check_count, check_tasks
from paretomtl.core import preferences as vectors
from paretomtl.methods._scaled_method import ScaledMethod
from paretomtl.methods.base import Reading
from paretomtl.methods.inputs import SafeStep, State
from paretomtl.methods.loss_scaling import Scale


@dataclass(frozen=True, repr=False)
class Linear(ScaledMethod):
    r"""Linear scalarization with fixed weights, the paper's grid search (section 3.2, equation 2).

    The K rows are importances, non-negative and scaled to sum to m. A number in place of rows gives a grid on the
    simplex: evenly spaced for two tasks; for more, the even preference vectors, scaled to sum to one.

    Args:
        scale: factors of the losses: "auto", "first", one per task, or an ideal and a worst point, as for
            :class:`~paretomtl.ParetoMTL`. Importances apply to the scaled losses: equal ones give cents and a
            cross-entropy the same weight. The weights of the scaled losses sum to m.

    Example:
        >>> from paretomtl.methods import Step
        >>> method = Linear()
        >>> state = method.init(method.spread(3, tasks=2))
        >>> method.weigh(Step(losses=torch.ones(3, 2)), state)[0]
        tensor([[2., 0.],
                [1., 1.],
                [0., 2.]])
    """

    scale: Scale | None = None

    name: ClassVar[str] = "linear"
    needs_gramian: ClassVar[bool] = False
    reading: ClassVar[Reading] = "importance"

    def __post_init__(self) -> None:
        self._check_scale()

    def spread(self, count: int, tasks: int, *, seed: int = 0) -> Tensor:
        if tasks == 2 and count > 1:
            share = torch.linspace(1.0, 0.0, count, dtype=torch.float64)
            return torch.stack([share, 1 - share], -1)
        directions = vectors.even(count, tasks)
        return directions / directions.sum(-1, keepdim=True)

    def _init(self, preferences: Tensor) -> State:
        return {"weights": importances(preferences)}

    def _weigh(self, step: SafeStep, state: State) -> tuple[Tensor, State]:
        return state["weights"], state


@dataclass(frozen=True, repr=False)
class RandomSearch(Linear):
    """Linear scalarization with weights drawn uniformly from the simplex, the paper's random search (section 2)."""

    name: ClassVar[str] = "random-search"

    def spread(self, count: int, tasks: int, *, seed: int = 0) -> Tensor:
        check_count("count", count)
        check_tasks("tasks", tasks)
        uniform = torch.rand(count, tasks, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        share = -uniform.clamp_min(1e-12).log()
        return share / share.sum(-1, keepdim=True)


@dataclass(frozen=True, repr=False)
class SingleTask(Linear):
    """One model per task, trained on its own loss alone: the paper's single-task baseline (section 6). K equals m."""

    name: ClassVar[str] = "single-task"
    separate: ClassVar[bool] = True

    @property
    def minds_units(self) -> bool:
        return False  # for one task alone, a factor is a learning rate

    def usual_count(self, tasks: int) -> int:
        return tasks

    def spread(self, count: int, tasks: int, *, seed: int = 0) -> Tensor:
        check_tasks("tasks", tasks)
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


def importances(rows: Tensor) -> Tensor:
    """Check rows of importances ``[K, m]`` and scale them to sum to m."""
    rows = torch.as_tensor(rows).detach().double()
    if rows.ndim != 2 or 0 in rows.shape:
        raise ValueError(f"'preferences' must have shape [K, m]. Got {list(rows.shape)} instead.")
    for k, row in enumerate(rows.tolist()):
        if not all(math.isfinite(value) and value >= 0.0 for value in row) or not any(row):
            raise ValueError(
                f"'preferences' must be finite, non-negative and not all zero. Got {row} in row {k} instead."
            )
    return rows * (rows.shape[1] / rows.sum(-1, keepdim=True))
