"""The three search directions of Pareto MTL as task weights, from losses and Gramian only."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import torch
from torch import Tensor

from paretomtl._support.argument_checks import check_floating, check_gramian, check_trailing
from paretomtl.core._min_norm import MinNorm, min_norm, solve
from paretomtl.core._regions import FEASIBLE_TOLERANCE, active_initial, active_main, values_of


class Phase(IntEnum):
    """The phase of a subproblem. In the paper it only moves forward; see ``returning`` of :func:`direction`."""

    INITIAL = 0
    """Only violated constraints are lowered, until the loss vector is in its region (paper, equation 9)."""
    MAIN = 1
    """Tasks and active constraints are lowered together (paper, equation 10)."""
    RELEASED = 2
    """Constraints are dropped; this is MGDA (supplement, section 1, step 1)."""


class Direction(NamedTuple):
    """Task weights for a batch of subproblems; the step is ``d = −Σ_i weights_i ∇L_i``.

    Attributes:
        weights: ``α [..., m]``; some may be negative.
        phase: the phase of each subproblem after this step's check, codes of :class:`Phase`, ``[...]``.
        values: the constraint values ``G [..., J]``.
        dual: the solution of the dual, over the m tasks and then the J constraints.
    """

    weights: Tensor
    phase: Tensor
    values: Tensor
    dual: MinNorm


def direction(
    losses: Tensor,
    gramian: Tensor,
    rows: Tensor,
    phase: Tensor,
    *,
    epsilon: float = 0.0,
    unit_rows: bool = False,
    present: Tensor | None = None,
    precision: float | None = None,
    returning: Tensor | None = None,
) -> Direction:
    r"""Solve the dual of each subproblem in its own phase (paper, equations 9, 10, 13 and 14).

    With A the allowed rows of :math:`[I_m ; W]` and s the min-norm weights over :math:`A C A^\top`, the task weights
    are :math:`\alpha = A^\top s`, that is :math:`\alpha_i = \lambda_i + \sum_j \beta_j (u_{ji} - u_{ki})`. The initial
    phase allows the constraints with :math:`G_j \ge 0`; the main phase, all tasks and the constraints of
    :math:`I_\epsilon`; the released phase, all tasks. A subproblem in the initial phase without an active constraint
    takes this step in the main phase already. One in the main phase that is ``returning`` and outside its region
    takes it in the initial phase.

    Args:
        losses: ``L [..., m]``.
        gramian: ``C [..., m, m]``.
        rows: ``W [..., J, m]`` from :func:`~paretomtl.core.region_rows`.
        phase: codes of :class:`Phase`, ``[...]``.
        epsilon: the relative threshold of the main phase, see :func:`~paretomtl.core.active_main`.
        unit_rows: scale the constraint rows to unit length before the dual; with many close vectors the plain rows are
            short.
        present: tasks with a gradient in this step, ``[..., m]`` bool; the others have no point in the dual.
        precision: the precision of the Gramian, see :func:`~paretomtl.core.min_norm`.
        returning: subproblems that go back from the main to the initial phase where a constraint is violated, ``[...]``
            bool. None: none does, as in the paper.

    A subproblem with a loss that is not finite keeps its phase and gets zero weights; its dual has failed.
    """
    tasks = check_gramian("gramian", gramian)
    check_trailing("rows", rows, "J", tasks)
    check_floating("rows", rows)
    check_floating("losses", losses)
    check_trailing("losses", losses, tasks)
    if present is not None and present.dtype != torch.bool:
        raise TypeError(f"'present' must be a bool tensor. Got {present.dtype} instead.")
    return direction_of(
        losses,
        gramian,
        rows,
        phase,
        epsilon=epsilon,
        unit_rows=unit_rows,
        present=present,
        precision=precision,
        returning=returning,
    )


def direction_of(
    losses: Tensor,
    gramian: Tensor,
    rows: Tensor,
    phase: Tensor,
    *,
    epsilon: float,
    unit_rows: bool,
    present: Tensor | None,
    precision: float | None,
    returning: Tensor | None,
) -> Direction:
    """:func:`direction` of tensors that are known to fit, such as those of a checked step."""
    tasks = gramian.shape[-1]
    values = values_of(rows, losses)
    violated = active_initial(values)
    finite = losses.isfinite().all(-1)
    if returning is not None:
        outside = (values > FEASIBLE_TOLERANCE).any(-1)  # false for losses that are not finite
        phase = torch.where((phase == Phase.MAIN.value) & returning & outside, Phase.INITIAL.value, phase)
    phase = torch.where((phase == Phase.INITIAL.value) & ~violated.any(-1) & finite, Phase.MAIN.value, phase)
    initial = (phase == Phase.INITIAL.value)[..., None]
    constraints = torch.where(initial, violated, active_main(values, rows, epsilon))
    constraints = constraints & (phase != Phase.RELEASED.value)[..., None]
    own = ~initial if present is None else ~initial & present
    w = rows.double()
    if unit_rows:
        w = torch.nn.functional.normalize(w, dim=-1)
    eye = torch.eye(tasks, dtype=w.dtype, device=w.device).expand(*w.shape[:-2], tasks, tasks)
    allowed = torch.cat([own.expand(*constraints.shape[:-1], tasks), constraints], -1)
    dual = solve(gramian, torch.cat([eye, w], -2), allowed & finite[..., None], precision)
    return Direction(dual.combination, phase, values, dual)


def initial_direction(losses: Tensor, gramian: Tensor, rows: Tensor) -> Direction:
    """The initial phase: lower the violated constraints, or take a main step if there are none (paper, equation 9).

    Example:
        >>> rows = torch.tensor([[-1.0, 1.0]])  # the region of (1, 0) against (0, 1)
        >>> initial_direction(torch.tensor([0.2, 0.9]), torch.eye(2), rows).weights  # raise loss 1, lower loss 2
        tensor([-1.,  1.])
    """
    return direction(losses, gramian, rows, _everywhere(Phase.INITIAL, losses))


def main_direction(losses: Tensor, gramian: Tensor, rows: Tensor, *, epsilon: float = 0.0) -> Direction:
    """The main phase: lower all tasks and all active constraints (paper, equation 10).

    Example:
        >>> rows = torch.tensor([[-1.0, 1.0]])
        >>> main_direction(torch.tensor([0.9, 0.2]), torch.eye(2), rows).weights  # nothing active: MGDA
        tensor([0.5000, 0.5000])
    """
    return direction(losses, gramian, rows, _everywhere(Phase.MAIN, losses), epsilon=epsilon)


def released_direction(gramian: Tensor, *, present: Tensor | None = None, precision: float | None = None) -> MinNorm:
    """The released phase, MGDA: the min-norm point of the present tasks' gradients (paper, equation 16)."""
    return min_norm(gramian, allowed=present, precision=precision)


def _everywhere(phase: Phase, losses: Tensor) -> Tensor:
    return torch.full(losses.shape[:-1], phase.value, device=losses.device)
