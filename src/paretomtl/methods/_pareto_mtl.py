"""Pareto MTL (Lin et al. 2019): a direction of the loss vector for each model, kept by constraints."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum
from typing import ClassVar

import torch
from torch import Tensor

from paretomtl._support.argument_checks import check_count, check_flag, check_not_negative, is_number, quote
from paretomtl.core import FEASIBLE_TOLERANCE, Phase, Solve, constraint_values, region_rows
from paretomtl.core import preferences as vectors
from paretomtl.core.directions import direction_of
from paretomtl.methods._loss_balance import balance, init_balance
from paretomtl.methods._pareto_mtl_cuda import RETURNED, weigh_by_kernel
from paretomtl.methods._scaled_method import FIRST, TakesScale
from paretomtl.methods.base import Reading
from paretomtl.methods.inputs import SafeStep, State, Step
from paretomtl.methods.loss_scaling import (
    BALANCING,
    Scale,
    above_ideal,
    auto_factors_by_row,
    first_factors,
    given_factors,
    update_first_losses,
)

_ROUNDING = 1e-12  # weights that sum to less than this are rounding noise of opposite rows


class Status(IntEnum):
    """The status of a model of Pareto MTL, by the losses of its last step."""

    INFEASIBLE = 0
    """The loss vector is outside its region."""
    FEASIBLE = 1
    """It is in its region, and some direction still lowers all tasks and active constraints."""
    CRITICAL = 2
    """It is in its region, and no such direction exists (paper, Lemma 2)."""
    NEGATIVE = 3
    """A loss is negative. Regions are cut from the positive part of the loss space, and have no meaning elsewhere."""


@dataclass(frozen=True)
class ParetoMTL(TakesScale):
    r"""Pareto MTL (Lin et al., NeurIPS 2019, algorithm 1): a model per preference vector, kept in its region.

    Model k first lowers the constraints that it violates (initial phase), then all tasks and the active
    constraints together (main phase), each time along the min-norm direction of :func:`paretomtl.core.direction`. The
    task weights are :math:`\alpha_i = \lambda_i + \sum_j \beta_j (u_{ji} - u_{ki})` (paper, equation 18) and may be
    negative. Phases belong to each model. In the paper they only move forward; with ``return_share`` a model
    outside its region goes back to the initial phase, until it is inside.

    Args:
        initial_steps: the most optimizer steps in the initial phase; a model that is still infeasible then enters
            the main phase with its violated constraints active. None: a fifth of the planned steps, as in the paper's
            synthetic example; without a plan, until feasible. 0 skips the initial phase (supplement, section 1).
        epsilon: a constraint is active in the main phase when it is nearer to its boundary than this share of its
            distance on the region's own ray. At least 0, under 1.
        rescale: scale the weights of the main and released phase, and of steps that train tasks together, to
            :math:`\sum_i |\alpha_i| = m`, as the paper's code does for networks; weights that are only rounding noise
            become zero instead. If off, the step is the min-norm direction itself.
        unit_rows: scale the constraint rows to unit length before the dual.
        scale: positive factors c that make tasks of different units comparable: the problem is that of
            :math:`c \circ L`, and the weights returned are :math:`c \circ \alpha'`. One factor per task; a pair of
            points, ideal and worst, for :math:`c = 1 / (\text{worst} - \text{ideal})` and losses relative to the ideal
            point; "first" for one over each task's first loss; "auto" for that if first losses differ by a factor over
            10, and for 1 otherwise. Alternatively, tasks are first trained together with the factors as weights, and
            the last factors stay: "running" for one over each loss's running mean; "gradnorm" or "uncertainty" for the
            weights that this method gives to losses over their first values: balance first, then spread (supplement,
            section 3). In a run, "auto" has the same factors for all models of a seed: one over the mean of the first
            losses of three untrained ones.
        scale_steps: the number of steps in which "running", "gradnorm" and "uncertainty" train tasks together, before
            the initial phase. None: a twentieth of the planned steps.
        release_steps: the number of steps at the end of the plan without constraints, which follow MGDA (supplement,
            section 1).
        return_share: the most steps that a model spends on returns to its region, as a share of the planned ones;
            without a plan, of those so far. The paper's step keeps a region only under plain gradient descent. What
            momentum, Adam or the noise of small batches carry out of its region is Pareto critical there, and stays: no
            direction lowers all tasks and the violated constraints. A return takes steps of the initial phase, which
            may raise a task. It begins when the region is left after the first initial phase, and after
            ``initial_steps`` for a model that never was inside. A model that has spent its share follows the
            paper from then on, so that a region that cannot be reached does not hold it forever. There is no return
            after the release, while a loss is negative, or with ``initial_steps=0``. None: no returns, as in the paper.
            See docs/concepts/regions.md for when they pay.

    The state has for each model its constraint rows, phase, status, the step since which it has that status, the
    last finite loss of each task (used for a task without labels), and the scale; with returns, the number of steps
    spent on them, −1 in the first initial phase.

    Example:
        >>> from paretomtl.methods import Step
        >>> method = ParetoMTL()
        >>> state = method.init(vectors.even(3, tasks=2))
        >>> step = Step(losses=torch.tensor([[0.9, 0.1], [0.5, 0.5], [0.9, 0.1]]), gramian=torch.eye(2).expand(3, 2, 2))
        >>> weights, state = method.weigh(step, state)
        >>> weights  # in region; in region; far from (0, 1): lower the first loss, raise the second
        tensor([[ 0.5000,  0.5000],
                [ 0.5000,  0.5000],
                [ 0.7071, -0.2929]])
        >>> method.status(state)
        ['feasible', 'feasible', 'infeasible']
    """

    initial_steps: int | None = None
    epsilon: float = 0.1
    rescale: bool = False
    unit_rows: bool = False
    scale: Scale | None = None
    release_steps: int = 0
    scale_steps: int | None = None
    return_share: float | None = None

    name: ClassVar[str] = "pareto-mtl"
    needs_gramian: ClassVar[bool] = True
    reading: ClassVar[Reading] = "direction"
    scale_kinds: ClassVar[tuple[str, ...]] = ("auto", "first", *BALANCING)

    def __post_init__(self) -> None:
        if self.initial_steps is not None:
            object.__setattr__(self, "initial_steps", check_not_negative("initial_steps", self.initial_steps))
        object.__setattr__(self, "release_steps", check_not_negative("release_steps", self.release_steps))
        check_flag("rescale", self.rescale)
        check_flag("unit_rows", self.unit_rows)
        if not is_number(self.epsilon) or not 0.0 <= self.epsilon < 1.0:
            raise ValueError(f"'epsilon' must be at least 0 and under 1. Got {quote(self.epsilon)} instead.")
        share = self.return_share
        if share is not None and (not is_number(share) or not 0.0 < share <= 1.0):
            raise ValueError(f"'return_share' must be over 0 and at most 1, or None. Got {quote(share)} instead.")
        self._check_scale()
        if self.scale_steps is not None:
            object.__setattr__(self, "scale_steps", check_count("scale_steps", self.scale_steps))
            if self.scale not in BALANCING:
                raise ValueError(f"'scale_steps' must come with a 'scale' of {list(BALANCING)}. Got {self.scale!r}.")

    def spread(self, count: int, tasks: int, *, seed: int = 0) -> Tensor:
        return vectors.even(count, tasks)

    def init(self, preferences: Tensor) -> State:
        units = vectors.validate(preferences)
        count, tasks = units.shape
        scale = torch.zeros(count, tasks, dtype=torch.float64)  # zero: unknown
        if not isinstance(self.scale, str):
            scale = scale + given_factors(self.scale, tasks)
        extra: State = {}
        if isinstance(self.scale, str) and self.scale in BALANCING:
            extra = init_balance(self.scale, units)
        elif self.scale == "auto":
            extra = {FIRST: torch.zeros(count, tasks, dtype=torch.float64)}
        elif self.ideal is not None:
            extra = {"ideal": torch.tensor(self.ideal, dtype=torch.float64).expand(count, -1).clone()}
        if self._returns:
            extra = {**extra, RETURNED: torch.full((count,), -1)}  # -1: still in the first initial phase
        return {
            "rows": region_rows(units),
            "phase": torch.full((count,), Phase.INITIAL.value),
            "status": torch.full((count,), Status.INFEASIBLE.value),
            "since": torch.zeros(count, dtype=torch.long),
            "losses": torch.zeros(count, tasks, dtype=torch.float64),
            "scale": scale,
            **extra,
        }

    def _weigh(self, step: SafeStep, state: State) -> tuple[Tensor, State]:
        losses = torch.where(step.present, above_ideal(step.losses, state.get("ideal")), state["losses"])
        scale, seen, gramian = state["scale"], losses, step.gramian
        together: Tensor | None = None  # whether tasks are still trained together
        if isinstance(self.scale, str) and self.scale in BALANCING:
            factors, kept = balance(self.scale, step, state)
            number = torch.zeros_like(state["since"][:1]) + step.number  # an int or a tensor: nothing is copied
            together = (number < self._scale_steps(step.total)).expand(len(losses))[:, None]
            scale = torch.where(together, factors, scale)
            state = {**state, **{name: torch.where(together, new, state[name]) for name, new in kept.items()}}
        if FIRST in state:
            state = {**state, FIRST: update_first_losses(state[FIRST], losses, step.present)}
            scale = auto_factors_by_row(state[FIRST])
        if self.scale is not None:
            scale = first_factors(scale, losses, step.present)
            c = torch.where(scale > 0, scale, 1.0)
            seen, gramian = c * losses, c[..., :, None] * gramian * c[..., None, :]

        step_direction = direction_of(
            seen,
            gramian,
            state["rows"],
            self._phase(step, state),
            epsilon=self.epsilon,
            unit_rows=self.unit_rows,
            present=step.present,
            precision=step.precision,
            returning=self._returning(step, state, losses),
        )
        alpha, phase = step_direction.weights, step_direction.phase
        in_initial = (phase == Phase.INITIAL.value)[..., None]
        if together is not None:
            alpha = torch.where(together, step.present.double() / step.present.shape[-1], alpha)
            phase = torch.where(together[:, 0], state["phase"], phase)
            in_initial = in_initial & ~together
        weights = alpha if self.scale is None else c * alpha
        if self.rescale:
            meant = alpha.abs().sum(-1, keepdim=True) > _ROUNDING
            scaled = weights * (weights.shape[-1] / weights.abs().sum(-1, keepdim=True).clamp_min(1e-300))
            weights = torch.where(in_initial, weights, torch.where(meant, scaled, 0.0))

        feasible = (step_direction.values <= FEASIBLE_TOLERANCE).all(-1)
        critical = feasible & (step_direction.dual.status == Solve.ZERO.value)
        status = feasible.long() * Status.FEASIBLE.value + critical.long()
        status = torch.where((losses < 0).any(-1), Status.NEGATIVE.value, status)
        since = torch.where(status == state["status"], state["since"], step.number)
        after = {"phase": phase, "status": status, "since": since, "losses": losses, "scale": scale}
        if RETURNED in state:
            initial = phase == Phase.INITIAL.value
            cap = self._limits(step.total)[0]
            first = initial & (state[RETURNED] < 0)
            first = first if cap is None else first & (step.number < cap)
            after[RETURNED] = torch.where(first, -1, state[RETURNED].clamp_min(0) + initial)
        return weights, {**state, **after}

    def _phase(self, step: SafeStep, state: State) -> Tensor:
        """The phase before this step's check of feasibility: apply the cap of the initial phase, and the release.

        After the first initial phase every step decides anew whether a model returns.
        """
        phase = state["phase"]
        cap, release = self._limits(step.total)
        if RETURNED in state:
            phase = torch.where((phase == Phase.INITIAL.value) & (state[RETURNED] >= 0), Phase.MAIN.value, phase)
        if cap is not None:
            phase = torch.where((phase == Phase.INITIAL.value) & (step.number >= cap), Phase.MAIN.value, phase)
        if release is not None:
            released = step.number >= release
            phase = phase + (Phase.RELEASED.value - phase) * released  # an int or a tensor: no branch on it
        return phase

    @property
    def _returns(self) -> bool:
        """Whether models may go back to the initial phase."""
        return self.return_share is not None and self.initial_steps != 0

    def _returning(self, step: SafeStep, state: State, losses: Tensor) -> Tensor | None:
        """The models that may go back to the initial phase, ``[K]`` bool; None if none may."""
        if RETURNED not in state:
            return None
        assert self.return_share is not None
        returned = state[RETURNED].clamp_min(0).double()
        planned = step.total or torch.zeros_like(returned[:1]) + step.number  # an int or a tensor: nothing is copied
        return (returned < self.return_share * planned) & (losses >= 0).all(-1)

    def _limits(self, total: int) -> tuple[int | None, int | None]:
        """The last possible end of the initial phase, and the start of the released one, as steps; None for never."""
        cap = self.initial_steps
        if cap is None and total > 0:
            cap = total // 5
        if cap is not None and self.scale in BALANCING:
            cap += self._scale_steps(total)
        if not self.release_steps:
            return cap, None
        if total <= self.release_steps:
            counts = f"{self.release_steps} of {total}"
            raise ValueError(f"'release_steps' must be fewer than the steps planned ('total'). Got {counts}.")
        return cap, total - self.release_steps

    def _scale_steps(self, total: int) -> int:
        """The number of steps in which tasks are trained together before they are spread."""
        if self.scale_steps is None and total == 0:
            raise ValueError(
                "'scale_steps' must be given if the number of steps is unknown. Got None instead: write "
                f"ParetoMTL(scale={self.scale!r}, scale_steps=100)."
            )
        return max(1, total // 20) if self.scale_steps is None else self.scale_steps

    def _weigh_by_kernel(self, step: Step, state: State) -> tuple[Tensor, State] | None:
        # A subclass may weigh in another way.
        if type(self) is not ParetoMTL or self.scale in BALANCING or FIRST in state:
            return None
        cap, release = self._limits(step.total)
        result = weigh_by_kernel(
            replace(step, losses=above_ideal(step.losses, state.get("ideal"))),
            state,
            cap=cap,
            release=release,
            return_share=self.return_share if RETURNED in state else None,
            epsilon=self.epsilon,
            rescale=self.rescale,
            unit_rows=self.unit_rows,
            scaled=self.scale is not None,
        )
        return None if result is None else (result[0].to(step.losses.dtype), result[1])

    def scale_of(self, state: State) -> Tensor | None:
        return None if self.scale is None else torch.where(state["scale"] > 0, state["scale"], 1.0)

    def snapshots(self, total: int) -> tuple[int, ...]:
        release = self._limits(total)[1]  # raises an error for a plan that is too short, before anything is trained
        return () if release is None else (release,)

    @property
    def ends_with_plan(self) -> bool:
        return self.release_steps > 0

    def violation(self, state: State, losses: Tensor) -> Tensor:
        c = torch.where(state["scale"] > 0, state["scale"], 1.0)
        values = constraint_values(state["rows"], c * above_ideal(losses.double(), state.get("ideal")))
        return values.amax(-1) if values.shape[-1] else values.new_zeros(len(values))

    def status(self, state: State, losses: Tensor | None = None) -> list[str]:
        codes = state["status"]
        if losses is not None:
            inside = self.violation(state, losses) <= FEASIBLE_TOLERANCE
            still_critical = inside & (codes == Status.CRITICAL.value)
            codes = inside.long() * Status.FEASIBLE.value + still_critical.long()
            below = above_ideal(losses, state.get("ideal")) < 0
            codes = torch.where(below.any(-1), Status.NEGATIVE.value, codes)
        return [Status(code).name.lower() for code in codes.tolist()]

    def since(self, state: State) -> list[int]:
        steps: list[int] = state["since"].tolist()
        return steps
