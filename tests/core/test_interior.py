"""Importances inside the simplex: what every layout promises, and that it leaves no hole."""

from __future__ import annotations

import math
from functools import cache

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from paretomtl.preferences import interior, lattice

COUNTS, TASKS = st.integers(1, 40), st.integers(2, 8)


def has(rows: Tensor, point: Tensor) -> bool:
    return bool((rows - point).abs().amax(-1).min() < 1e-12)


@given(count=COUNTS, tasks=TASKS, share=st.none() | st.floats(0.0, 0.95))
def test_every_row_is_on_the_simplex_and_leaves_no_task_out(count: int, tasks: int, share: float | None) -> None:
    least = None if share is None else share / tasks
    rows = interior(count, tasks, least=least)
    bound = min(0.05, 0.5 / tasks) if least is None else least
    assert (rows.shape, rows.dtype) == ((count, tasks), torch.float64)
    torch.testing.assert_close(rows.sum(-1), torch.ones(count, dtype=torch.float64), rtol=0, atol=1e-12)
    assert (rows >= bound).all()
    assert torch.equal(rows, interior(count, tasks, least=least))
    if count > 1:
        apart = torch.pdist(rows).min()
        assert apart > 0.04 * (1 - tasks * bound) / math.sqrt(tasks), "no two rows are nearly the same"


@given(count=COUNTS, tasks=TASKS)
def test_the_middle_and_one_row_for_each_task_are_there(count: int, tasks: int) -> None:
    rows, least = interior(count, tasks), min(0.05, 0.5 / tasks)
    middle = torch.full((tasks,), 1 / tasks, dtype=torch.float64)
    if count == 1 or count > tasks > 2:
        assert (rows == middle).all(-1).sum() == 1, "the middle, exactly"
    if count > tasks:
        for i in range(tasks):
            most = torch.full_like(middle, least).index_fill_(0, torch.tensor(i), 1 - (tasks - 1) * least)
            assert has(rows, most), "a row that favours this task as much as allowed"
    if 1 < count <= tasks:
        favoured = rows > middle[0] + 1e-9
        assert (favoured.sum(0) == 1).all(), "every task is favoured by one row"
        assert favoured.sum(-1).max() - favoured.sum(-1).min() <= 1, "in groups of nearly the same size"


@given(count=st.integers(2, 40), tasks=TASKS)
def test_rows_begin_with_the_first_task(count: int, tasks: int) -> None:
    rows = [[round(value, 9) for value in row] for row in interior(count, tasks).tolist()]
    assert rows == sorted(rows, reverse=True)


@given(count=st.integers(2, 40), least=st.floats(0.0, 0.45))
def test_two_tasks_are_evenly_spaced(count: int, least: float) -> None:
    rows = interior(count, 2, least=least)
    expected = 1 - least - torch.arange(count, dtype=torch.float64) * (1 - 2 * least) / (count - 1)
    torch.testing.assert_close(rows[:, 0], expected, rtol=0, atol=1e-14)
    assert torch.equal(rows.flip(0, 1), rows), "symmetric in the tasks"


@pytest.mark.parametrize(
    ("count", "tasks", "divisions"),
    [(4, 3, 1), (7, 3, 2), (10, 3, 3), (16, 3, 4), (28, 3, 6), (11, 4, 2), (35, 4, 4), (6, 5, 1)],
)
def test_das_dennis_where_the_number_fits(count: int, tasks: int, divisions: int) -> None:
    """Its points, and the middle if that is not one of them."""
    rows, points = interior(count, tasks, least=0.0), lattice(divisions, tasks)
    assert all(has(rows, point) for point in points)
    assert count - len(points) == (divisions % tasks != 0)


@cache
def sample(tasks: int) -> Tensor:
    """Half of the points uniform on the simplex, half on faces of random size: in many dimensions, both matter."""
    generator = torch.Generator().manual_seed(5)
    share = -torch.rand(6000, tasks, generator=generator, dtype=torch.float64).clamp_min(1e-12).log()
    size = torch.randint(1, tasks + 1, (3000, 1), generator=generator)
    share[3000:] *= torch.rand(3000, tasks, generator=generator).argsort(-1) < size
    return share / share.sum(-1, keepdim=True)


def holes(rows: Tensor, points: Tensor) -> tuple[float, float]:
    """The largest and the mean distance to the nearest row."""
    distance = torch.cdist(points, rows).amin(-1)
    return float(distance.max()), float(distance.mean())


@pytest.mark.study
@given(count=st.integers(2, 40), tasks=st.integers(3, 8))
def test_no_hole_is_much_larger_than_that_of_farthest_point_insertion(count: int, tasks: int) -> None:
    """Whose largest hole is at most twice the least possible (Gonzalez 1985); here it knows the points themselves."""
    points = sample(tasks)
    greedy = torch.full((1, tasks), 1 / tasks, dtype=torch.float64)
    while len(greedy) < count:
        greedy = torch.cat([greedy, points[torch.cdist(points, greedy).amin(-1).argmax()][None]])
    (largest, mean), (theirs, usual) = holes(interior(count, tasks, least=0.0), points), holes(greedy, points)
    assert largest <= 1.3 * theirs
    assert mean <= 1.1 * usual


@pytest.mark.parametrize(("count", "tasks"), [(8, 4), (15, 3), (25, 5), (40, 8)])
def test_holes_are_smaller_than_those_of_random_rows(count: int, tasks: int) -> None:
    points, generator = sample(tasks), torch.Generator().manual_seed(1)
    mine = holes(interior(count, tasks, least=0.0), points)
    random = []
    for _ in range(20):
        share = -torch.rand(count, tasks, generator=generator, dtype=torch.float64).clamp_min(1e-12).log()
        random.append(holes(share / share.sum(-1, keepdim=True), points))
    assert mine[0] < min(largest for largest, _ in random)


@pytest.mark.parametrize(("count", "tasks"), [(12, 30), (31, 30), (33, 30), (70, 30)])
def test_many_tasks(count: int, tasks: int) -> None:
    rows = interior(count, tasks)
    assert rows.min() >= 0.5 / tasks
    assert torch.pdist(rows).min() > 1e-3


@pytest.mark.parametrize("least", [-0.01, 1 / 3, 0.5, float("nan"), float("inf"), True, "0.1"])
def test_a_share_that_is_none_is_named(least: object) -> None:
    with pytest.raises(ValueError, match=r"'least' must be at least 0 and under 1 / tasks \(0.3333\). Got "):
        interior(5, 3, least=least)  # type: ignore[arg-type]
