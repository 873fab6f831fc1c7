from __future__ import annotations

import math

import moocore
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from paretomtl.core import dominates, nondominated
from paretomtl.problems import Problem, quadratic, synthetic

problems = st.one_of(
    st.builds(synthetic, st.integers(5, 20), st.integers(2, 5)),
    st.builds(quadratic, st.integers(5, 8), st.integers(2, 4), condition=st.sampled_from([1.0, 5.0])),
)


def simplex(count: int, tasks: int, seed: int) -> torch.Tensor:
    share = -torch.rand(count, tasks, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).log()
    return share / share.sum(-1, keepdim=True)


@given(problem=problems, seed=st.integers(0, 10**6))
def test_no_point_dominates_the_front(problem: Problem, seed: int) -> None:
    assert problem.truth is not None
    front = problem.truth.point(simplex(100, problem.truth.tasks, seed))
    assert nondominated(front).all()
    torch.manual_seed(seed)
    anywhere = torch.stack([problem.losses(problem.model()().detach().double()) for _ in range(50)])
    assert not dominates(anywhere[:, None], front[None]).any()


@given(problem=problems, seed=st.integers(0, 10**6))
def test_front_points_are_at_distance_zero_and_worse_ones_are_not(problem: Problem, seed: int) -> None:
    assert problem.truth is not None
    front = problem.truth.point(simplex(3, problem.truth.tasks, seed))
    assert problem.truth.distance(front).max() < 1e-4
    worse = 1.01 * front + 0.01
    distance = problem.truth.distance(worse)
    assert (distance > 1e-3).all()
    assert (distance <= (worse - front).norm(dim=-1) + 1e-4).all()


@pytest.mark.parametrize("tasks", [2, 3, 4, 6])
def test_the_distance_of_a_front_point_is_zero(tasks: int) -> None:
    truth = synthetic(tasks=tasks).truth
    assert truth is not None
    front = truth.point(simplex(30, tasks, 0))
    assert truth.distance(front).max() < 1e-5
    lifted = truth.distance(front + 1e-3)
    assert (lifted > 1e-4).all()
    assert (lifted <= 1e-3 * math.sqrt(tasks) + 1e-5).all()


def test_two_tasks_are_the_papers() -> None:
    problem = synthetic(20)
    x = torch.randn(20, dtype=torch.float64)
    c = 1 / math.sqrt(20)
    expected = torch.stack([1 - torch.exp(-(x - c).square().sum()), 1 - torch.exp(-(x + c).square().sum())])
    torch.testing.assert_close(problem.losses(x), expected)
    assert problem.truth is not None
    volume = moocore.hypervolume(problem.truth.front(20_001).numpy(), ref=[1, 1])
    assert abs(volume - 0.342) < 2e-4


def test_difficulties_scale_the_losses_and_the_front() -> None:
    plain, hard = synthetic(), synthetic(difficulties=[50.0, 1.0])
    x = torch.randn(20, dtype=torch.float64)
    factor = torch.tensor([50.0, 1.0], dtype=torch.float64)
    torch.testing.assert_close(hard.losses(x), factor * plain.losses(x))
    assert plain.truth is not None
    assert hard.truth is not None
    torch.testing.assert_close(hard.truth.front(50), factor * plain.truth.front(50))


def test_starts_are_uniform_around_the_origin() -> None:
    x = torch.cat([synthetic(half=0.3).model()().detach() for _ in range(200)])
    assert x.abs().max() <= 0.3
    assert abs(x.mean()) < 0.02
    assert abs(x.var() - 0.09 / 3) < 0.002


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: synthetic(tasks=1), "'tasks' must be at least 2"),
        (lambda: synthetic(2, 4), r"'dimension' must be at least tasks - 1 = 3. Got 2"),
        (
            lambda: synthetic(difficulties=[1.0]),
            r"'difficulties' must be 2 positive numbers, one per task. Got \[1.0\]",
        ),
        (lambda: synthetic(difficulties=[1.0, -1.0]), "'difficulties' must be"),
        (lambda: quadratic(condition=0.5), "'condition' must be at least 1. Got 0.5"),
        (lambda: quadratic(1, 3), "'dimension' must be at least tasks - 1 = 2. Got 1"),
        (lambda: Problem(torch.nn.Identity, lambda x: x, ["a"]), r"'tasks' must have at least 2 names"),
        (lambda: Problem(torch.nn.Identity, lambda x: x, ["a", "a"]), r"'tasks' must be distinct names"),
    ],
)
def test_bad_input_is_named(make: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()  # type: ignore[operator]
