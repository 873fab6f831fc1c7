from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from paretomtl import core, preferences
from paretomtl.core import Phase

sizes = {"tasks": st.integers(2, 8), "count": st.integers(1, 20), "seed": st.integers(0, 10**6)}


def situation(tasks: int, count: int, seed: int, rank: int | None = None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """K subproblems at random losses with random task gradients: preferences, losses, J ``[K, m, n]``, C."""
    g = torch.Generator().manual_seed(seed)
    vectors = preferences.random(count, tasks, seed=seed)
    losses = torch.rand(count, tasks, generator=g, dtype=torch.float64)
    jacobian = torch.randn(count, tasks, rank or tasks + 5, generator=g, dtype=torch.float64)
    jacobian = jacobian + torch.randn(count, 1, rank or tasks + 5, generator=g, dtype=torch.float64)
    return vectors, losses, jacobian, jacobian @ jacobian.mT


@given(**sizes)
def test_lemma_1(tasks: int, count: int, seed: int) -> None:
    """MGDA: d lowers every task by at least |d|², or is zero at a critical point."""
    _, _, jacobian, gramian = situation(tasks, count, seed)
    found = core.released_direction(gramian)
    d = -(found.combination[:, None, :] @ jacobian).squeeze(1)
    slopes = (jacobian @ d[..., None]).squeeze(-1)
    length = d.square().sum(-1, keepdim=True)
    assert (slopes <= -length + 1e-9 * gramian.diagonal(dim1=-2, dim2=-1).amax(-1, keepdim=True)).all()
    moves = found.status == core.Solve.SOLVED
    assert (slopes[moves] < 0).all()
    opposed = torch.cat([jacobian, -jacobian.sum(1, keepdim=True)], 1)
    assert (core.released_direction(opposed @ opposed.mT).status == core.Solve.ZERO).all()


@given(**sizes, epsilon=st.sampled_from([0.0, 0.1, 0.9]), phase=st.sampled_from(list(Phase)), unit_rows=st.booleans())
def test_lemma_2(tasks: int, count: int, seed: int, epsilon: float, phase: Phase, unit_rows: bool) -> None:
    """Every allowed row of A C α is at least αᵀCα: d lowers all tasks and all active constraints at once."""
    vectors, losses, _, gramian = situation(tasks, count, seed)
    rows = core.region_rows(vectors)
    found = core.direction(
        losses, gramian, rows, torch.full((count,), int(phase)), epsilon=epsilon, unit_rows=unit_rows
    )
    values = core.constraint_values(rows, losses)
    alpha = found.weights
    length = (alpha[:, None, :] @ gramian @ alpha[..., None]).squeeze(-1)
    slack = 1e-9 * gramian.diagonal(dim1=-2, dim2=-1).amax(-1)
    used = torch.nn.functional.normalize(rows, dim=-1) if unit_rows else rows
    constraint_slopes = (used @ gramian @ alpha[..., None]).squeeze(-1)
    task_slopes = (gramian @ alpha[..., None]).squeeze(-1)
    for k in range(count):
        violated = values[k] >= 0
        in_initial = phase == Phase.INITIAL and bool(violated.any())
        assert (found.phase[k] == Phase.INITIAL) == in_initial
        active = violated if in_initial else core.active_main(values, rows, epsilon)[k]
        if phase == Phase.RELEASED:
            active = torch.zeros_like(active)
        assert (constraint_slopes[k][active] >= length[k] - slack[k]).all()
        if not in_initial:
            assert (task_slopes[k] >= length[k] - slack[k]).all()


@given(**sizes)
def test_without_an_active_constraint_the_direction_is_mgda(tasks: int, count: int, seed: int) -> None:
    vectors, _, jacobian, gramian = situation(tasks, count, seed)
    rows = core.region_rows(vectors)
    mgda = core.released_direction(gramian).combination
    for phase in Phase:
        found = core.direction(3.0 * vectors, gramian, rows, torch.full((count,), int(phase)), epsilon=0.5)
        assert torch.equal(_steps(found.weights, jacobian), _steps(mgda, jacobian))
        assert (found.phase == max(phase, Phase.MAIN)).all(), "a feasible model is in the main phase at once"


def _steps(weights: Tensor, jacobian: Tensor) -> Tensor:
    return (weights[:, None, :] @ jacobian).squeeze(1).round(decimals=9)


@given(**sizes)
def test_a_subproblem_does_not_see_the_phase_of_another(tasks: int, count: int, seed: int) -> None:
    vectors, losses, _, gramian = situation(tasks, count, seed)
    rows = core.region_rows(vectors)
    phases = torch.randint(0, 3, (count,), generator=torch.Generator().manual_seed(seed))
    together = core.direction(losses, gramian, rows, phases, epsilon=0.1)
    for k in range(count):
        alone = core.direction(losses[k], gramian[k], rows[k], phases[k], epsilon=0.1)
        torch.testing.assert_close(alone.weights, together.weights[k], rtol=0, atol=1e-12)
        assert alone.phase == together.phase[k]


def test_on_a_boundary_a_subproblem_is_still_in_its_initial_phase() -> None:
    """The paper's I holds constraints with G = 0 too."""
    rows = core.region_rows(torch.eye(2, dtype=torch.float64))
    found = core.initial_direction(torch.ones(2, 2), torch.eye(2).expand(2, 2, 2), rows)
    assert (found.phase == Phase.INITIAL).all()
    assert torch.equal(found.values, torch.zeros(2, 1, dtype=torch.float64))
    torch.testing.assert_close(found.weights, torch.tensor([[-1.0, 1.0], [1.0, -1.0]]))


def test_both_neighbours_active_give_a_zero_step_for_any_gradients() -> None:
    """Why the threshold is relative: opposite rows put the origin into the hull."""
    rows = torch.tensor([[-0.1, 0.1], [0.1, -0.1]], dtype=torch.float64)
    found = core.main_direction(torch.tensor([1.0, 1.0]), torch.tensor([[2.0, 0.3], [0.3, 1.0]]), rows)
    assert found.dual.status == core.Solve.ZERO


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_loss_that_is_not_finite_keeps_its_phase_and_gets_no_weight(bad: float) -> None:
    vectors, losses, _, gramian = situation(3, 4, 0)
    losses[1, 2] = bad
    initial = torch.zeros(4, dtype=torch.long)
    found = core.direction(losses, gramian, core.region_rows(vectors), initial)
    assert found.phase[1] == Phase.INITIAL
    assert found.dual.status[1] == core.Solve.FAILED
    assert (found.weights[1] == 0).all()


def test_absent_tasks_take_no_part() -> None:
    gramian = torch.diag_embed(torch.tensor([[1.0, 0.0, 4.0]]))
    rows = core.region_rows(preferences.even(1, 3))
    present = torch.tensor([[True, False, True]])
    main = torch.tensor([int(Phase.MAIN)])
    found = core.direction(torch.ones(1, 3), gramian, rows, main, present=present)
    torch.testing.assert_close(found.weights, torch.tensor([[0.8, 0.0, 0.2]]))
    assert core.direction(torch.ones(1, 3), gramian, rows, main).dual.status == core.Solve.ZERO


@pytest.mark.study
@pytest.mark.parametrize("phase", list(Phase))
def test_no_branch_depends_on_a_tensor(phase: Phase) -> None:
    vectors, losses, _, gramian = situation(3, 4, 0)
    arguments: tuple[Any, ...] = (losses, gramian, core.region_rows(vectors), torch.full((4,), int(phase)))
    compiled = torch.compile(core.direction, fullgraph=True, backend="eager")(*arguments)
    torch.testing.assert_close(compiled.weights, core.direction(*arguments).weights)


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        ({"gramian": torch.ones(1, 3, 2)}, ValueError, r"'gramian' must have shape \[..., m, m\]"),
        ({"rows": torch.ones(1, 2, 2)}, ValueError, r"'rows' must have shape \[..., J, 3\]"),
        ({"rows": torch.ones(1, 2, 3).long()}, TypeError, "'rows' must be a floating-point tensor"),
        ({"losses": torch.ones(1, 3).long()}, TypeError, "'losses' must be a floating-point tensor"),
        ({"losses": torch.ones(1, 2)}, ValueError, r"'losses' must have shape \[..., 3\]"),
        ({"epsilon": 1.0}, ValueError, "'epsilon' must be at least 0 and under 1"),
        ({"present": torch.ones(1, 3).long()}, TypeError, "'present' must be a bool tensor"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(wrong: Any, error: type[Exception], message: str) -> None:
    fitting = {
        "losses": torch.ones(1, 3),
        "gramian": torch.eye(3)[None],
        "rows": torch.ones(1, 2, 3),
        "phase": torch.zeros(1, dtype=torch.long),
    }
    core.direction(**fitting)
    with pytest.raises(error, match=message):
        core.direction(**{**fitting, **wrong})
