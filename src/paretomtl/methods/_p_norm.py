"""The weighted p-norm along a ray: one backward pass, a ratio of losses for each model, convex and concave fronts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, TypeAlias

import torch
from torch import Tensor

from paretomtl._support.argument_checks import as_rows, is_number, quote
from paretomtl.core import FEASIBLE_TOLERANCE, constraint_values, region_rows
from paretomtl.core import preferences as vectors
from paretomtl.core.reachable import LEAST_ENTRY, lift_zeros
from paretomtl.methods._scaled_method import ScaledMethod
from paretomtl.methods.base import Method, Reading
from paretomtl.methods.fixed_weights import importances
from paretomtl.methods.inputs import SafeStep, State
from paretomtl.methods.loss_scaling import Scale

Strictness: TypeAlias = Literal["loose", "medium", "strict"]
STRICTNESS: Mapping[str, float] = {"loose": 3.0, "medium": 6.0, "strict": 11.0}
"""The exponents of words for how strictly a ratio of losses is held."""

_SMALLEST = 1e-12  # a loss under this has no logarithm worth having


@dataclass(frozen=True, repr=False)
class PNorm(ScaledMethod):
    r"""The weighted p-norm of compromise programming (Zeleny 1973, Yu 1973), along a ray of the loss space.

    Each row is a direction u: the ratio of losses that a model should have. Model k minimises

    .. math:: \Big(\sum_i \lambda_i u_i (L_i / u_i)^p\Big)^{1/p}, \qquad
              \alpha_i \propto \lambda_i (L_i / u_i)^{p - 1} .

    The weights :math:`\alpha` sum to m, so that learning rates compare with those of linear scalarization. On the ray
    they are the importances :math:`\lambda`; a task that lags behind the ray gets more. Its minima are Pareto optimal
    on convex and concave fronts (docs/concepts/p-norm.md has the proofs, and when a point is stable). A step takes one
    backward pass. The direction must be one that models can reach: beyond the end of a front, models
    gather there. A number of preferences therefore stands for ``preferences="reachable"``, which measures them in the
    first quarter of the run; see :class:`~paretomtl.methods.Reachable`.

    Args:
        p: how strictly the ratio is held, a number of at least 1, or "loose" (3), "medium" (6) or "strict" (11). 1 is
            linear scalarization, which ignores the ratio. Larger values come closer to the ray, need larger p on
            strongly concave fronts, and react more to the noise of a batch.
        importances: the weights on the ray, one per task, or a row for each model; equal if left out.
        least: the least share of each task in the weights, at least 0 and under 1 / m. It bounds the weights of a
            noisy batch.
        scale: factors of the losses: "auto", "first", one per task, or an ideal and a worst point, as for
            :class:`~paretomtl.ParetoMTL`. Directions are those of the scaled losses.

    Example:
        >>> from paretomtl.methods import Step
        >>> method = PNorm(p=3)
        >>> state = method.init(torch.tensor([[1.0, 1.0], [1.0, 2.0]]))
        >>> method.weigh(Step(losses=torch.tensor([[0.3, 0.6], [0.3, 0.6]])), state)[0]  # 2 lags behind; on the ray
        tensor([[0.4000, 1.6000],
                [1.0000, 1.0000]])
    """

    p: float | Strictness = "medium"
    importances: tuple[Any, ...] | None = None
    least: float = 0.0
    scale: Scale | None = None

    name: ClassVar[str] = "p-norm"
    needs_gramian: ClassVar[bool] = False
    reading: ClassVar[Reading] = "direction"

    def __post_init__(self) -> None:
        known = self.p in STRICTNESS if isinstance(self.p, str) else is_number(self.p) and 1.0 <= self.p < math.inf
        if not known:
            raise ValueError(
                f"'p' must be finite and at least 1, or one of {list(STRICTNESS)}. Got {quote(self.p)} instead: under "
                "1, a task that lags behind would get less weight."
            )
        if not is_number(self.least) or not 0.0 <= self.least < 0.5:
            raise ValueError(f"'least' must be at least 0 and under 1 / m. Got {quote(self.least)} instead.")
        if self.importances is not None:
            object.__setattr__(self, "importances", _as_tuples(self.importances))
        self._check_scale()

    @property
    def exponent(self) -> float:
        """The exponent as a number."""
        return STRICTNESS[self.p] if isinstance(self.p, str) else float(self.p)

    @property
    def needs_reachable(self) -> bool:
        return True

    def for_refining(
        self,
        reading: str,
        measured: Mapping[str, Tensor],
        scale: Tensor | None,
        row: int,
        importances: Tensor | None = None,
    ) -> Method:
        method = super().for_refining(reading, measured, scale, row, importances)
        by_row = self.importances is not None and isinstance(self.importances[0], tuple)
        if not by_row or importances is None:
            return method
        return replace(method, importances=importances.tolist())  # type: ignore[type-var]

    def spread(self, count: int, tasks: int, *, seed: int = 0) -> Tensor:
        return lift_zeros(vectors.even(count, tasks))

    def _init(self, preferences: Tensor) -> State:
        directions = vectors.validate(preferences)
        count, tasks = directions.shape
        if not bool((directions > 0).all()):
            k = int((directions <= 0).any(-1).nonzero()[0])
            raise ValueError(
                f"'preferences' must be positive in every task for '{self.name}': it divides losses by them. Got "
                f"{preferences[k].tolist()} in row {k} instead: write a small number, such as {LEAST_ENTRY}, for zero."
            )
        self._check_least(tasks)
        return {
            **self._rays(directions, self._importances(count, tasks), self.exponent),
            "losses": torch.zeros(count, tasks, dtype=torch.float64),
        }

    def _rays(self, directions: Tensor, weights: Tensor, p: float) -> State:
        """The part of the state that says what each model is asked for."""
        return {
            "directions": directions.double(),
            "weights": weights,
            "p": torch.full((len(directions),), p, dtype=torch.float64),
            "rows": region_rows(directions.double()),
        }

    def _importances(self, count: int, tasks: int) -> Tensor:
        given = as_rows("importances", (1.0,) * tasks if self.importances is None else self.importances)
        if given.shape not in ((tasks,), (count, tasks)):
            raise ValueError(
                f"'importances' must have one number per task ({tasks}), or a row of them for each of {count} models. "
                f"Got shape {list(given.shape)} instead."
            )
        if not bool((given > 0).all()):
            raise ValueError(
                f"'importances' must be positive: a task without one is never trained. Got {given.tolist()} instead."
            )
        return importances(given.expand(count, tasks), "importances")

    def _check_least(self, tasks: int) -> None:
        if self.least >= 1.0 / tasks:
            rule = f"'least' must be under 1 / m, which is {1 / tasks:.3g} for {tasks} tasks"
            raise ValueError(f"{rule}. Got {self.least} instead.")

    def _weigh(self, step: SafeStep, state: State) -> tuple[Tensor, State]:
        losses = torch.where(step.present, step.losses, state["losses"])
        known = losses > 0
        ratio = torch.where(known, losses, 1.0).clamp_min(_SMALLEST).log() - state["directions"].log()
        floor = torch.where(known, ratio, torch.inf).amin(-1, keepdim=True)
        # A loss that is zero, or not known yet, counts as far ahead of its ray: only the floor trains its task.
        ratio = torch.where(known, ratio, torch.where(floor.isfinite(), floor, 0.0) + math.log(_SMALLEST))
        # Relative to the largest, so that no power overflows.
        power = (state["p"] - 1.0)[:, None] * (ratio - ratio.amax(-1, keepdim=True))
        share = state["weights"] * power.exp()
        tasks = losses.shape[-1]
        weights = share * (tasks / share.sum(-1, keepdim=True))
        weights = torch.where(state["p"][:, None] == 1.0, state["weights"], weights)
        if self.least > 0.0:
            weights = tasks * self.least + (1.0 - tasks * self.least) * weights
        return weights, {**state, "losses": losses}

    def violation(self, state: State, losses: Tensor) -> Tensor:
        scale = self.scale_of(state)
        scaled = losses.double() if scale is None else scale * self._above_ideal(losses.double(), state)
        values = constraint_values(state["rows"], scaled)
        return values.amax(-1) if values.shape[-1] else values.new_zeros(len(values))

    def status(self, state: State, losses: Tensor | None = None) -> list[str]:
        if losses is None:
            return super().status(state)
        inside = (self.violation(state, losses) <= FEASIBLE_TOLERANCE).tolist()
        below = (self._above_ideal(losses.double(), state) < 0).any(-1).tolist()
        return [
            "negative" if negative else "feasible" if good else "infeasible"
            for good, negative in zip(inside, below, strict=True)
        ]

    def measured(self, state: State) -> dict[str, Tensor]:
        return {"importances": state["weights"], "p": state["p"]}


def _as_tuples(values: Any) -> tuple[Any, ...]:
    plain = values.tolist() if isinstance(values, Tensor) else values
    if isinstance(plain, str) or not isinstance(plain, (tuple, list)):
        raise TypeError(f"'importances' must be one number per task, or rows of them. Got {quote(values)} instead.")
    return tuple(tuple(part) if isinstance(part, (tuple, list)) else part for part in plain)
