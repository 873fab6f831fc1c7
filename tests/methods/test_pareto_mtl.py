from __future__ import annotations

import pytest
import torch
from torch import Tensor

from _helpers.hulls import gradients
from paretomtl import core, preferences
from paretomtl.methods import MGDA, ParetoMTL, State, Status, Step

VECTORS = preferences.even(3, 2)
C = torch.eye(2, dtype=torch.float64).expand(3, 2, 2)


def weigh(
    method: ParetoMTL, losses: list[list[float]], state: State, number: int = 0, total: int = 0
) -> tuple[Tensor, State]:
    return method.weigh(Step(torch.tensor(losses, dtype=torch.float64), C, number=number, total=total), state)


INSIDE = VECTORS.tolist()
OUTSIDE = [[0.1, 0.9], [0.9, 0.1], [0.9, 0.1]]
AWAY = [[0.1, 0.9], [0.5, 0.5], [0.9, 0.1]]


def test_phases_belong_to_each_subproblem_and_only_move_forward_in_the_paper() -> None:
    method = ParetoMTL(initial_steps=10, return_share=None)
    state = method.init(VECTORS)
    _, state = weigh(method, AWAY, state)
    assert state["phase"].tolist() == [core.Phase.INITIAL, core.Phase.MAIN, core.Phase.INITIAL]
    _, state = weigh(method, INSIDE, state, number=1)
    assert state["phase"].tolist() == [core.Phase.MAIN] * 3
    _, state = weigh(method, OUTSIDE, state, number=2)
    assert state["phase"].tolist() == [core.Phase.MAIN] * 3, "never back"


def test_at_the_cap_an_infeasible_subproblem_goes_on_with_its_violated_rows() -> None:
    method = ParetoMTL(initial_steps=2, return_share=None)
    state = method.init(VECTORS)
    for number in range(2):
        weights, state = weigh(method, OUTSIDE, state, number)
        assert state["phase"].tolist() == [core.Phase.INITIAL] * 3
    weights, state = weigh(method, OUTSIDE, state, number=2)
    assert state["phase"].tolist() == [core.Phase.MAIN] * 3
    assert method.status(state) == ["infeasible"] * 3
    rows = core.region_rows(VECTORS)
    values = core.constraint_values(rows, torch.tensor(OUTSIDE, dtype=torch.float64))
    slopes = (rows @ weights[..., None]).squeeze(-1)
    assert (slopes[values >= 0] > 0).all(), "violated constraints still fall"


def test_the_default_cap_is_a_fifth_of_the_plan() -> None:
    method = ParetoMTL(return_share=None)
    for total, number, phase in [(100, 19, 0), (100, 20, 1), (0, 10**6, 0)]:
        _, state = weigh(method, OUTSIDE, method.init(VECTORS), number, total)
        assert state["phase"].tolist() == [phase] * 3


def test_no_initial_phase_at_all() -> None:
    _, state = weigh(ParetoMTL(initial_steps=0), OUTSIDE, ParetoMTL().init(VECTORS))
    assert state["phase"].tolist() == [core.Phase.MAIN] * 3


def test_status_says_how_and_since_when() -> None:
    method = ParetoMTL()
    state = method.init(VECTORS)
    for number, losses in enumerate([AWAY, AWAY, INSIDE, INSIDE]):
        _, state = weigh(method, losses, state, number)
    assert method.status(state) == ["feasible"] * 3
    assert state["since"].tolist() == [2, 0, 2]
    opposed = torch.tensor([[1.0, -1.0], [-1.0, 1.0]], dtype=torch.float64).expand(3, 2, 2)
    _, state = method.weigh(Step(torch.tensor(INSIDE), opposed, number=4), state)
    assert method.status(state) == ["critical"] * 3
    assert state["since"].tolist() == [4, 4, 4]
    assert [Status(code) for code in state["status"].tolist()] == [Status.CRITICAL] * 3


def test_status_can_be_judged_by_losses_measured_since() -> None:
    method = ParetoMTL()
    _, state = weigh(method, INSIDE, method.init(VECTORS))
    now = torch.tensor([INSIDE[0], OUTSIDE[1], [-0.1, 1.0]], dtype=torch.float64)
    assert method.status(state, now) == ["feasible", "infeasible", "negative"]
    state["status"] = torch.tensor([Status.CRITICAL, Status.CRITICAL, Status.NEGATIVE])
    assert method.status(state, torch.tensor(INSIDE)) == ["critical", "critical", "feasible"]
    assert method.since(state) == [0, 0, 0]


def test_release_drops_the_constraints_at_the_end_of_the_plan() -> None:
    method = ParetoMTL(release_steps=3)
    assert method.snapshots(10) == (7,)
    assert ParetoMTL().snapshots(10) == ()
    state = method.init(VECTORS)
    for number in range(10):
        weights, state = weigh(method, OUTSIDE, state, number, total=10)
        released = number >= 7
        assert (state["phase"] == core.Phase.RELEASED).all() == released
        if released:
            mgda = MGDA()
            expected, _ = mgda.weigh(Step(torch.tensor(OUTSIDE), C), mgda.init(VECTORS))
            torch.testing.assert_close(weights, expected.double())


def test_rescaling_is_safe() -> None:
    """Σ|α| = m in the main phase, not in the initial one, and no noise is blown up."""
    method = ParetoMTL(rescale=True)
    weights, _ = weigh(method, AWAY, method.init(VECTORS))
    plain, _ = weigh(ParetoMTL(), AWAY, method.init(VECTORS))
    assert torch.equal(weights[[0, 2]], plain[[0, 2]])
    torch.testing.assert_close(weights[1].abs().sum(), torch.tensor(2.0, dtype=torch.float64))


def test_weights_that_are_rounding_are_not_blown_up() -> None:
    """Losses on both boundaries of a region at once, with opposite rows: α is what is left of their sum."""
    state = ParetoMTL().init(VECTORS)
    lengths = torch.tensor([[0.3, -0.111], [0.9, -0.37], [0.77, -0.013]], dtype=torch.float64)
    state["rows"] = lengths[..., None] * torch.tensor([1.0, -1.0], dtype=torch.float64)
    state["phase"] = torch.full((3,), core.Phase.MAIN.value)
    gramian = torch.tensor([[2.0, -0.7], [-0.7, 1.0]], dtype=torch.float64).expand(3, 2, 2)
    step = Step(torch.ones(3, 2, dtype=torch.float64), gramian)
    plain, _ = ParetoMTL().weigh(step, state)
    assert (plain.abs().sum(-1) < 1e-12).all()
    assert (plain != 0).any()
    rescaled, _ = ParetoMTL(rescale=True).weigh(step, state)
    assert (rescaled == 0).all()


@pytest.mark.parametrize("tasks", [2, 3, 5])
def test_weights_that_are_tiny_for_a_long_gradient_are_no_rounding(tasks: int) -> None:
    """Of gradients 1e16 times longer weights of 1e-16 are right; rescaling multiplies them like all others."""
    jacobian = gradients(20, tasks, 16, seed=tasks)
    losses = torch.rand(20, tasks, generator=torch.Generator().manual_seed(0), dtype=torch.float64) + 0.1
    step = Step(losses, jacobian @ jacobian.mT, number=1, total=2)
    plain, rescaled = (
        method.weigh(step, method.init(preferences.even(20, tasks)))[0]
        for method in (ParetoMTL(release_steps=1), ParetoMTL(release_steps=1, rescale=True))
    )
    assert plain[plain != 0].abs().min() < 1e-15
    torch.testing.assert_close(rescaled, plain * tasks / plain.abs().sum(-1, keepdim=True), rtol=1e-12, atol=0)
    descent = (rescaled[:, None] @ jacobian).squeeze(1)
    cosines = torch.nn.functional.cosine_similarity(jacobian, descent[:, None], dim=-1)
    lost = (rescaled.abs() * jacobian.norm(dim=-1)).sum(-1, keepdim=True) / descent.norm(dim=-1, keepdim=True)
    assert (cosines >= -2e-14 * lost).all()


def test_rescaling_does_not_depend_on_the_scale_of_the_losses() -> None:
    method = ParetoMTL(rescale=True, scale="first")
    huge = [[1e13 * value for value in row] for row in [[0.5, 0.5]] * 3]
    weights, _ = weigh(method, huge, method.init(VECTORS))
    torch.testing.assert_close(weights.abs().sum(-1)[1], torch.tensor(2.0, dtype=torch.float64))


def test_a_first_loss_of_zero_does_not_settle_the_scale() -> None:
    method = ParetoMTL(scale="first")
    _, state = weigh(method, [[0.0, 2.0]] * 3, method.init(VECTORS))
    _, state = weigh(method, [[4.0, 1.0]] * 3, state, number=1)
    assert state["scale"].tolist() == [[0.25, 0.5]] * 3


def test_epsilon_and_unit_rows_change_the_step() -> None:
    """Inside its region but near a boundary: the constraint counts only with a wide threshold."""
    near = [[0.9, 0.36]] * 3  # 21.8 degrees; the boundary between the first two vectors is at 22.5
    skewed = torch.tensor([[1.0, 0.9], [0.9, 4.0]], dtype=torch.float64).expand(3, 2, 2)
    step = Step(torch.tensor(near, dtype=torch.float64), skewed)
    found = [m.weigh(step, m.init(VECTORS))[0][0] for m in (ParetoMTL(epsilon=0.0), ParetoMTL(epsilon=0.2))]
    assert not torch.allclose(found[0], found[1])
    outside = Step(torch.tensor([[0.1, 0.9]] * 3, dtype=torch.float64), skewed)
    plain, unit = (m.weigh(outside, m.init(VECTORS))[0][0] for m in (ParetoMTL(), ParetoMTL(unit_rows=True)))
    assert unit.norm() > plain.norm(), "unit rows make longer steps in the initial phase"


def test_scaling_solves_the_problem_in_other_units() -> None:
    """Losses in other units, with the factor that undoes them: the same step in parameter space."""
    g = torch.Generator().manual_seed(0)
    jacobian = torch.randn(3, 2, 6, generator=g, dtype=torch.float64)
    losses = torch.rand(3, 2, generator=g, dtype=torch.float64) + 0.5
    unit = torch.tensor([100.0, 0.1], dtype=torch.float64)
    plain = ParetoMTL()
    expected, _ = plain.weigh(Step(losses, jacobian @ jacobian.mT), plain.init(VECTORS))

    scaled = ParetoMTL(scale=tuple((1 / unit).tolist()))
    other = jacobian * unit[:, None]
    found, _ = scaled.weigh(Step(losses * unit, other @ other.mT), scaled.init(VECTORS))
    step, wanted = (found[:, None] @ other).squeeze(1), (expected[:, None] @ jacobian).squeeze(1)
    torch.testing.assert_close(step, wanted, rtol=1e-9, atol=1e-12)


def test_scaling_by_the_first_loss_remembers_it() -> None:
    method = ParetoMTL(scale="first")
    state = method.init(VECTORS)
    _, state = weigh(method, [[100.0, 0.1]] * 3, state)
    assert method.status(state) == ["infeasible", "feasible", "infeasible"], "the scaled losses are (1, 1)"
    _, state = weigh(method, [[200.0, 0.1]] * 3, state, number=1)
    torch.testing.assert_close(state["scale"], torch.tensor([[0.01, 10.0]] * 3, dtype=torch.float64))


def test_an_absent_task_is_judged_by_its_last_loss() -> None:
    method = ParetoMTL()
    _, state = weigh(method, INSIDE, method.init(VECTORS))
    losses = torch.tensor(INSIDE, dtype=torch.float64)
    losses[:, 1] = torch.nan
    _, state = method.weigh(Step(losses, C, ~losses.isnan(), number=1), state)
    assert method.status(state) == ["feasible"] * 3
    torch.testing.assert_close(state["losses"], torch.tensor(INSIDE, dtype=torch.float64))


def test_one_preference_is_mgda() -> None:
    method, mgda = ParetoMTL(), MGDA()
    step = Step(torch.tensor([[0.9, 0.1]]), torch.tensor([[[4.0, 1.0], [1.0, 2.0]]]))
    found, _ = method.weigh(step, method.init(preferences.even(1, 2)))
    expected, _ = mgda.weigh(step, mgda.init(torch.ones(1, 2)))
    torch.testing.assert_close(found, expected)


def test_hundreds_of_preferences() -> None:
    method = ParetoMTL()
    vectors = preferences.even(300, 2)
    losses = vectors.flip(0)
    weights, _ = method.weigh(Step(losses, torch.eye(2).expand(300, 2, 2)), method.init(vectors))
    assert weights.isfinite().all()
    assert (weights.abs().sum(-1) > 0).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilon": 1.0}, "'epsilon' must be at least 0 and under 1. Got 1.0"),
        ({"epsilon": -0.1}, "'epsilon' must be"),
        ({"initial_steps": -1}, "'initial_steps' must be a whole number that is not negative. Got -1"),
        ({"return_share": 0.0}, "'return_share' must be over 0 and at most 1, or None. Got 0.0 instead"),
        ({"return_share": 1.5}, "'return_share' must be over 0 and at most 1, or None. Got 1.5 instead"),
        ({"return_share": float("nan")}, "'return_share' must be over 0"),
        ({"return_share": "all"}, "'return_share' must be over 0 and at most 1, or None. Got 'all' instead"),
        ({"release_steps": -1}, "'release_steps' must be a whole number that is not negative"),
        ({"scale": "last"}, "or None. Got 'last' instead"),
        ({"scale": ((0.0, 1.0), (1.0, 1.0))}, "an ideal point and a worst one, which is larger in every task"),
        ({"scale": ((0.0,), (1.0, 1.0))}, "an ideal point and a worst one, which is larger in every task"),
        ({"scale": "first", "scale_steps": 5}, "'scale_steps' must come with a 'scale' of"),
        ({"scale": "running", "scale_steps": 0}, "'scale_steps' must be a whole number of at least 1"),
        ({"scale": (1.0, 0.0)}, "'scale' must be positive and finite"),
    ],
)
def test_bad_options_are_named(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ParetoMTL(**options)  # type: ignore[arg-type]


def test_a_scale_of_the_wrong_length_is_named() -> None:
    with pytest.raises(ValueError, match=r"'scale' must have one factor per task \(2\). Got 3"):
        ParetoMTL(scale=(1.0, 1.0, 1.0)).init(VECTORS)
