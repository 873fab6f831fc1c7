from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import paretomtl as pm
from paretomtl import preferences
from paretomtl.core.preferences import lattice_or_energy_rows


def check(vectors: Tensor, count: int, tasks: int) -> None:
    """Unit, non-negative, distinct, float64."""
    assert vectors.shape == (count, tasks)
    assert vectors.dtype == torch.float64
    assert (vectors >= 0).all()
    torch.testing.assert_close(vectors.norm(dim=-1), torch.ones(count, dtype=torch.float64), rtol=1e-12, atol=0)
    preferences.validate(vectors)


def nearest_angle(vectors: Tensor) -> Tensor:
    cosines = (vectors @ vectors.T).fill_diagonal_(-1.0)
    return cosines.amax(-1).clamp(-1, 1).acos()


@pytest.mark.parametrize("count", [2, 5, 10, 300])
def test_two_tasks_follow_the_papers_rule(count: int) -> None:
    vectors = preferences.even(count, 2)
    check(vectors, count, 2)
    k = torch.arange(count, dtype=torch.float64)
    angle = k * math.pi / (2 * (count - 1))
    torch.testing.assert_close(vectors, torch.stack([angle.cos(), angle.sin()], -1), rtol=0, atol=1e-15)


@pytest.mark.study
@given(count=st.integers(1, 40), tasks=st.integers(2, 8))
def test_even_sets_of_any_size(count: int, tasks: int) -> None:
    vectors = preferences.even(count, tasks)
    check(vectors, count, tasks)
    assert torch.equal(vectors, preferences.even(count, tasks))
    middle = torch.full((tasks,), tasks**-0.5, dtype=torch.float64)
    if tasks > 2 and count != tasks:
        assert (vectors - middle).abs().amax(-1).min() < 1e-15, "the middle is among them"
    if tasks > 2 and count > tasks:
        assert (vectors @ torch.eye(tasks, dtype=torch.float64) == 1).any(0).all(), "so are the corners"
        others = count - tasks - 1
        inside = 1 + min(others // 2, tasks * (tasks - 1))
        assert (vectors > 0.4 * middle).all(-1).sum() >= inside, "every second of the others asks for no zero"
    if 1 < count < tasks:
        torch.testing.assert_close(vectors[0], middle, rtol=0, atol=1e-15)


def test_as_many_vectors_as_tasks_are_one_compromise_for_each() -> None:
    """Half way between its axis and the middle: axes alone would ask for losses of zero, and for no compromise."""
    for tasks in (3, 5):
        vectors, axes, middle = preferences.even(tasks, tasks), torch.eye(tasks).double(), preferences.even(1, tasks)[0]
        assert (vectors > 0).all()
        assert torch.equal(vectors.argmax(-1), torch.arange(tasks))
        torch.testing.assert_close((vectors * axes).sum(-1), vectors @ middle)


@pytest.mark.parametrize(("tasks", "count"), [(2, 5), (3, 15), (4, 25), (7, 25)])
def test_the_usual_number_covers_the_middle(tasks: int, count: int) -> None:
    for name in ("pareto-mtl", "linear"):
        method = pm.methods.resolve_method(name)
        assert method.usual_count(tasks) == count
        shares = method.spread(count, tasks)
        shares = shares / shares.sum(-1, keepdim=True)
        torch.testing.assert_close(
            (shares - 1 / tasks).abs().amax(-1).min(), torch.zeros(()).double(), rtol=0, atol=1e-12
        )
        assert (shares > 0).all(-1).sum() >= count / 3
    assert pm.methods.MGDA().usual_count(tasks) == 5, "more starts cover nothing"
    assert pm.methods.SingleTask().usual_count(tasks) == tasks


@pytest.mark.parametrize(("tasks", "count"), [(3, 15), (3, 50), (4, 25), (5, 25), (6, 25)])
def test_the_middle_costs_little_of_the_distance(tasks: int, count: int) -> None:
    """The least angle between two vectors stays near that of a layout that knows nothing else."""
    before, now = (nearest_angle(make(count, tasks)) for make in (preferences.lattice_or_energy, preferences.even))
    assert now.min() > 2 / 3 * before.min()
    assert now.max() < 2 * now.min()


@pytest.mark.parametrize(("count", "tasks"), [(1, 3), (7, 2), (15, 3), (7, 3)])
def test_rows_of_stored_studies_keep_their_bits(count: int, tasks: int) -> None:
    """They are handed over before they have unit length, which gives the same bits as making them so at once."""
    vectors = preferences.lattice_or_energy(count, tasks)
    if count > 1 and tasks > 2:
        assert torch.equal(preferences.validate(lattice_or_energy_rows(count, tasks)), vectors)
    else:
        assert torch.equal(preferences.even(count, tasks), vectors)


@pytest.mark.parametrize(("count", "tasks"), [(3, 3), (15, 3), (10, 4), (21, 6)])
def test_das_dennis_where_the_number_fits(count: int, tasks: int) -> None:
    vectors = preferences.lattice_or_energy(count, tasks)
    shares = vectors / vectors.sum(-1, keepdim=True)
    steps = {(3, 3): 1, (15, 3): 4, (10, 4): 2, (21, 6): 2}[count, tasks]
    torch.testing.assert_close(shares * steps, (shares * steps).round(), rtol=0, atol=1e-12)


@pytest.mark.parametrize(("count", "tasks"), [(4, 3), (25, 3), (11, 4), (50, 5)])
def test_other_sizes_are_spread_better_than_random_ones(count: int, tasks: int) -> None:
    mine = nearest_angle(preferences.even(count, tasks))
    random = torch.stack([nearest_angle(preferences.random(count, tasks, seed=s)).min() for s in range(20)])
    assert mine.min() > 2 * random.median()
    assert mine.max() < 2 * mine.min(), "no vector is lonely"


def test_extreme_rows_favour_one_task_each() -> None:
    check(preferences.extreme(5), 5, 5)
    assert torch.equal(preferences.extreme(3).argmin(-1), torch.arange(3))
    faces = preferences.extreme(3, balanced=True)
    torch.testing.assert_close(faces[0], torch.full((3,), 3**-0.5, dtype=torch.float64))


def test_random_vectors_depend_on_the_seed_alone() -> None:
    check(preferences.random(100, 4, seed=3), 100, 4)
    assert torch.equal(preferences.random(5, 3, seed=1), preferences.random(5, 3, seed=1))
    assert not torch.equal(preferences.random(5, 3, seed=1), preferences.random(5, 3, seed=2))


@given(tasks=st.integers(2, 6), count=st.integers(2, 20), share=st.floats(0, 0.95), seed=st.integers(0, 1000))
def test_biased_vectors_move_towards_their_direction(tasks: int, count: int, share: float, seed: int) -> None:
    target = preferences.random(1, tasks, seed=seed)[0]
    before, after = preferences.even(count, tasks), preferences.biased(count, target, concentration=share)
    check(after, count, tasks)
    angle = [(v @ target).clamp(-1, 1).acos() for v in (before, after)]
    torch.testing.assert_close(angle[1], (1 - share) * angle[0], rtol=1e-6, atol=1e-7)


@given(
    rows=st.lists(st.lists(st.floats(0, 1e150), min_size=3, max_size=3), min_size=1, max_size=6),
    scale=st.sampled_from([1e-150, 1.0, 1e150]),
)
def test_validation_accepts_or_names_the_row(rows: list[list[float]], scale: float) -> None:
    vectors = torch.tensor(rows, dtype=torch.float64) * scale
    directions = torch.nn.functional.normalize(vectors / vectors.amax(-1, keepdim=True).clamp_min(1e-300), dim=-1)
    zero = (vectors == 0).all(-1).any()
    equal = (torch.cdist(directions, directions) < 2e-6).triu(1).any()
    if zero or equal:
        with pytest.raises(ValueError, match="'preferences' must"):
            preferences.validate(vectors)
    else:
        check(preferences.validate(vectors), len(rows), 3)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ([[1.0, -0.1], [0.0, 1.0]], r"non-negative. Got \[1.0, -0.1\] in row 0"),
        ([[1.0, 0.0], [0.0, 0.0]], r"no row of zeros.* in row 1"),
        ([[1.0, float("nan")]], r"finite.* in row 0"),
        ([[1.0, 1.0], [0.5, 0.2], [3.0, 3.0]], r"distinct.* in rows 0 and 2"),
        ([[1.0], [2.0]], r"at least 2: a trade-off needs two tasks. Got 1"),
        ([1.0, 2.0], r"shape \[K, m\] with K >= 1. Got \[2\]"),
        (torch.zeros(0, 2), r"shape \[K, m\] with K >= 1. Got \[0, 2\]"),
    ],
)
def test_bad_vectors_are_named(bad: list[list[float]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        preferences.validate(bad)


def test_integers_are_taken_and_columns_are_counted() -> None:
    assert preferences.validate(torch.tensor([[3, 4]])).tolist() == [[0.6, 0.8]]
    with pytest.raises(ValueError, match=r"one column per task \(3\). Got 2"):
        preferences.validate([[1.0, 2.0]], tasks=3)


@pytest.mark.parametrize("make", [preferences.even, preferences.interior, preferences.random])
def test_bad_sizes_are_named(make: object) -> None:
    with pytest.raises(ValueError, match="'tasks' must be at least 2"):
        make(3, 1)  # type: ignore[operator]
    with pytest.raises(ValueError, match=r"'count' must be a whole number of at least 1. Got 0"):
        make(0, 2)  # type: ignore[operator]
    with pytest.raises(ValueError, match=r"'count' must be a whole number.* Got 2.5"):
        make(2.5, 2)  # type: ignore[operator]
    with pytest.raises(ValueError, match="'concentration' must be"):
        preferences.biased(3, [1.0, 1.0], concentration=1.0)


@given(
    direction=st.lists(st.floats(0.0, 1.0), min_size=2, max_size=5).filter(lambda row: max(row) > 0.1),
    count=st.integers(2, 9),
    angle=st.floats(0.5, 40.0),
)
def test_vectors_around_a_direction_are_distinct_and_not_too_far(
    direction: list[float], count: int, angle: float
) -> None:
    rows = preferences.around(direction, count, angle=angle)
    assert rows.shape == (count, len(direction))
    torch.testing.assert_close(rows.norm(dim=-1), torch.ones(count, dtype=torch.float64))
    middle = preferences.validate([direction])[0]
    degrees = torch.rad2deg((rows @ middle).clamp(-1, 1).acos())
    assert degrees.max() <= angle + 1e-4
    assert (rows >= 0).all()


def test_vectors_around_a_direction_of_two_tasks_are_equally_far_apart() -> None:
    rows = preferences.around([1.0, 1.0], 5, angle=10.0)
    degrees = torch.rad2deg(torch.atan2(rows[:, 1], rows[:, 0]))
    torch.testing.assert_close(degrees, torch.tensor([35.0, 40, 45, 50, 55], dtype=torch.float64))
    at_an_axis = preferences.around([1.0, 0.0], 3, angle=10.0)
    degrees = torch.rad2deg(torch.atan2(at_an_axis[:, 1], at_an_axis[:, 0]))
    torch.testing.assert_close(degrees, torch.tensor([0.0, 5, 10], dtype=torch.float64), rtol=0, atol=1e-9)
    assert preferences.around([3.0, 4.0], 1, angle=1.0).tolist() == [[0.6, 0.8]]


@pytest.mark.parametrize("angle", [0.0, -1.0, 91.0, float("nan")])
def test_an_angle_that_is_none_is_named(angle: float) -> None:
    with pytest.raises(ValueError, match="'angle' must be over 0 and at most 90 degrees"):
        preferences.around([1.0, 1.0], 3, angle=angle)
