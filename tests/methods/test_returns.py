"""Subproblems of Pareto MTL that leave their regions and return to them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import paretomtl as pm
from paretomtl import core, preferences
from paretomtl.core import Phase
from paretomtl.methods import ParetoMTL, State, Step, describe
from paretomtl.training import fit_seeds

VECTORS = preferences.even(3, 2)
INSIDE = VECTORS.clone()
OUTSIDE = torch.tensor([[0.1, 0.9], [0.9, 0.1], [0.9, 0.1]], dtype=torch.float64)
C = torch.eye(2, dtype=torch.float64).expand(3, 2, 2)


def run(method: ParetoMTL, losses: list[Tensor], *, total: int = 0) -> list[State]:
    """The states after each of these steps."""
    state, states = method.init(VECTORS), []
    for number, each in enumerate(losses):
        _, state = method.weigh(Step(each, C, ~each.isnan(), number=number, total=total), state)
        states.append(state)
    return states


def phases(states: list[State], row: int = 0) -> list[int]:
    return [int(state["phase"][row]) for state in states]


def spent(states: list[State], row: int = 0) -> list[int]:
    return [int(state["returned"][row]) for state in states]


def test_a_subproblem_outside_its_region_is_in_the_initial_phase_until_it_is_inside() -> None:
    states = run(ParetoMTL(return_share=1.0), [OUTSIDE, INSIDE, OUTSIDE, OUTSIDE, INSIDE, OUTSIDE], total=100)
    assert phases(states) == [0, 1, 0, 0, 1, 0]
    assert spent(states) == [-1, 0, 1, 2, 2, 3], "the first initial phase is not counted"
    assert [state["status"].tolist()[0] for state in states] == [0, 1, 0, 0, 1, 0]
    assert [state["since"].tolist()[0] for state in states] == [0, 1, 2, 2, 4, 5]


def test_a_return_takes_the_step_of_the_initial_phase() -> None:
    method = ParetoMTL(return_share=1.0)
    *_, inside = run(method, [INSIDE], total=100)
    step = Step(OUTSIDE, C, number=1, total=100)
    found, _ = method.weigh(step, inside)
    expected = core.initial_direction(OUTSIDE, C, core.region_rows(VECTORS)).weights
    assert torch.equal(found, expected)
    paper, _ = ParetoMTL(return_share=None).weigh(step, {k: v for k, v in inside.items() if k != "returned"})
    assert not torch.allclose(found, paper)


def test_subproblems_return_one_by_one() -> None:
    mixed = torch.stack([INSIDE[0], OUTSIDE[1], INSIDE[2]])
    *_, state = run(ParetoMTL(return_share=1.0), [INSIDE, mixed], total=100)
    assert state["phase"].tolist() == [Phase.MAIN, Phase.INITIAL, Phase.MAIN]


def test_who_has_spent_the_share_follows_the_paper() -> None:
    states = run(ParetoMTL(return_share=0.2), [INSIDE, *[OUTSIDE] * 4, INSIDE, OUTSIDE], total=10)
    assert phases(states) == [1, 0, 0, 1, 1, 1, 1]
    assert spent(states) == [0, 1, 2, 2, 2, 2, 2]


def test_who_never_was_inside_spends_the_share_after_the_cap() -> None:
    states = run(ParetoMTL(initial_steps=3, return_share=0.2), [OUTSIDE] * 7, total=10)
    assert phases(states) == [0, 0, 0, 0, 0, 1, 1]
    assert spent(states) == [-1, -1, -1, 1, 2, 2, 2]


def test_without_a_plan_the_share_is_of_the_steps_so_far() -> None:
    states = run(ParetoMTL(return_share=0.5), [INSIDE, *[OUTSIDE] * 7])
    assert phases(states) == [1, 0, 1, 0, 1, 0, 1, 0]
    by_tensor = [dict(s) for s in states]
    method = ParetoMTL(return_share=0.5)
    state = method.init(VECTORS)
    for number, losses in enumerate([INSIDE, *[OUTSIDE] * 7]):
        _, state = method.weigh(Step(losses, C, number=torch.tensor(number)), state)
        assert all(torch.equal(state[name], by_tensor[number][name]) for name in state)


def test_the_release_is_final() -> None:
    states = run(ParetoMTL(release_steps=2, return_share=1.0), [INSIDE, OUTSIDE, INSIDE, *[OUTSIDE] * 3], total=5)
    assert phases(states) == [1, 0, 1, 2, 2, 2]
    assert spent(states) == [0, 1, 1, 1, 1, 1]


def test_without_an_initial_phase_there_is_no_return() -> None:
    states = run(ParetoMTL(initial_steps=0, return_share=1.0), [OUTSIDE, INSIDE, OUTSIDE], total=10)
    assert phases(states) == [1, 1, 1]
    assert "returned" not in states[-1]


def test_a_negative_loss_does_not_return() -> None:
    negative = torch.tensor([[-0.1, 0.9]] * 3, dtype=torch.float64)
    states = run(ParetoMTL(return_share=1.0), [INSIDE, negative, OUTSIDE], total=10)
    assert phases(states) == [1, 1, 0]


def test_on_the_boundary_nothing_returns() -> None:
    """Rounding is no reason to raise a task: a constraint that holds with equality up to it is not violated."""
    angle = torch.tensor(torch.pi / 8, dtype=torch.float64)
    edge = torch.stack([angle.cos(), angle.sin()]).expand(3, 2)
    values = core.constraint_values(core.region_rows(VECTORS), edge)[0]
    assert values.abs().min() < core.FEASIBLE_TOLERANCE
    assert phases(run(ParetoMTL(return_share=1.0), [INSIDE, edge], total=10)) == [1, 1]
    beyond = edge + torch.tensor([0.0, 1e-6])
    assert phases(run(ParetoMTL(return_share=1.0), [INSIDE, beyond], total=10)) == [1, 0]


def test_a_broken_row_keeps_its_phase_and_what_it_has_spent() -> None:
    method = ParetoMTL(return_share=1.0)
    *_, before = run(method, [INSIDE, OUTSIDE], total=10)
    losses = OUTSIDE.clone()
    losses[0, 0] = torch.inf
    _, after = method.weigh(Step(losses, C, number=2, total=10), before)
    assert after["phase"].tolist() == [0, 0, 0]
    assert after["returned"].tolist() == [1, 2, 2]


def test_a_task_without_labels_is_judged_by_its_last_loss() -> None:
    hidden = INSIDE.clone()
    hidden[:, 1] = torch.nan
    assert phases(run(ParetoMTL(return_share=1.0), [INSIDE, hidden], total=10)) == [1, 1]
    hidden = OUTSIDE.clone()
    hidden[:, 1] = torch.nan
    assert phases(run(ParetoMTL(return_share=1.0), [INSIDE, OUTSIDE, hidden], total=10)) == [1, 0, 0]


@pytest.mark.parametrize("scale", ["first", "auto", (2.0, 1.0), ((0.0, 0.0), (1.0, 2.0)), "running"])
def test_scaled_losses_decide(scale: Any) -> None:
    more = {"scale_steps": 1} if scale == "running" else {}
    method = ParetoMTL(return_share=1.0, scale=scale, **more)  # type: ignore[arg-type]
    even = torch.ones(3, 2, dtype=torch.float64)
    state = method.init(VECTORS)
    for number in range(12):
        losses = even * torch.tensor([1.0, 1.0 + number], dtype=torch.float64)
        _, state = method.weigh(Step(losses, C, number=number, total=100), state)
        violated = method.violation(state, losses) > core.FEASIBLE_TOLERANCE
        assert torch.equal(state["phase"] == Phase.INITIAL, violated | (state["phase"] == Phase.INITIAL))
        if number > 1:
            assert (state["phase"][violated] == Phase.INITIAL).all()
            assert (state["phase"][~violated] == Phase.MAIN).all()


@given(
    share=st.sampled_from([0.1, 0.5, 1.0]),
    cap=st.sampled_from([1, 3, None]),
    release=st.sampled_from([0, 4]),
    seed=st.integers(0, 10**6),
)
def test_what_is_spent_never_exceeds_the_share(share: float, cap: int | None, release: int, seed: int) -> None:
    """Initial steps are those of the first phase, at most the cap, and those spent on returns, at most the share."""
    total, g = 20, torch.Generator().manual_seed(seed)
    method = ParetoMTL(initial_steps=cap, return_share=share, release_steps=release)
    states = run(method, [torch.rand(3, 2, generator=g, dtype=torch.float64) for _ in range(total)], total=total)
    most = share * total
    for row in range(3):
        counted, phase = spent(states, row), phases(states, row)
        assert max(counted) <= -(-most // 1)
        first = sum(number < 0 for number in counted)
        assert first <= (total // 5 if cap is None else cap)
        assert sum(each == Phase.INITIAL for each in phase) == first + max(counted[-1], 0)
        outside = [not bool(core.in_region(VECTORS, state["losses"])[row]) for state in states]
        for was, is_outside, count in zip(phase, outside, counted, strict=True):
            assert was != Phase.INITIAL or is_outside or count < 0
            assert was != Phase.MAIN or not is_outside or count >= most


def test_the_paper_form_is_described_as_before() -> None:
    assert describe(ParetoMTL(return_share=None)) == "ParetoMTL(epsilon=0.1, release_steps=0)"
    assert "returned" not in ParetoMTL(return_share=None).init(VECTORS)


OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "momentum": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9),
    "Adam 0.02": lambda parameters: torch.optim.Adam(parameters, lr=0.02),
    "Adam 0.005": lambda parameters: torch.optim.Adam(parameters, lr=0.005),
}


def train(share: float | None, optimizer: Callable[..., torch.optim.Optimizer], **more: Any) -> list[pm.Front]:
    options: Any = {
        "epochs": 500,
        "precision": "float64",
        "device": "cpu",
        "strategy": "batched",
        "seeds": [0, 1],
        **more,
    }
    return fit_seeds(pm.problems.synthetic(), ParetoMTL(return_share=share), 10, optimizer=optimizer, **options)


def share_in_region(fronts: list[pm.Front]) -> float:
    inside = [core.in_region(front.preferences.double(), front.losses["train"]) for front in fronts]
    return float(torch.cat(inside).double().mean())


@pytest.mark.study
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_with_momentum_and_adam_all_stay_in_their_regions(name: str) -> None:
    assert share_in_region(train(0.2, OPTIMIZERS[name])) == 1.0
    assert share_in_region(train(None, OPTIMIZERS[name])) < 0.7, "the paper's form does not"


def test_under_plain_gradient_descent_both_forms_have_the_same_bits() -> None:
    plain: Callable[..., torch.optim.Optimizer] = lambda parameters: torch.optim.SGD(parameters, lr=1.0)  # noqa: E731
    ours, paper = (train(share, plain, epochs=200, seeds=[0]) for share in (1.0, None))
    assert torch.equal(ours[0].losses["train"], paper[0].losses["train"])
    assert ours[0].status == paper[0].status


@pytest.mark.filterwarnings("ignore")
def test_strategies_agree_on_returns() -> None:
    """Adam at 0.02 leaves regions within 60 steps: batched and sequential runs return in the same steps."""
    together, alone = (
        train(0.5, OPTIMIZERS["Adam 0.02"], epochs=60, seeds=[0], strategy=strategy)
        for strategy in ("batched", "sequential")
    )
    paper = train(None, OPTIMIZERS["Adam 0.02"], epochs=60, seeds=[0])
    torch.testing.assert_close(together[0].losses["train"], alone[0].losses["train"], rtol=1e-6, atol=1e-9)
    assert not torch.allclose(together[0].losses["train"], paper[0].losses["train"])
