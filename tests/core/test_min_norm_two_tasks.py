from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from _helpers.hulls import KINDS, SCALES, gap, hulls
from paretomtl._support.argument_checks import known_finite
from paretomtl.core import Solve, min_norm
from paretomtl.core._min_norm_two_tasks import two_task_min_norm


@given(
    kind=st.sampled_from(KINDS),
    scale=st.sampled_from(SCALES),
    points=st.integers(3, 14),
    seed=st.integers(0, 10_000),
    dtype=st.sampled_from([torch.float64, torch.float32]),
)
def test_one_problem_in_plain_numbers_is_that_problem_in_a_batch(
    kind: str, scale: str, points: int, seed: int, dtype: torch.dtype
) -> None:
    """A batch of two goes through tensors; one problem with two tasks does not."""
    gramian, rows, allowed = hulls(kind, scale, 6, 2, points, seed=seed, rounded=dtype)
    several = min_norm(gramian.to(dtype), rows, allowed)
    reach = (rows @ gramian @ rows.mT).diagonal(dim1=-2, dim2=-1).amax(-1)
    for k in range(6):
        alone = min_norm(gramian[k : k + 1].to(dtype), rows[k : k + 1], allowed[k : k + 1])
        for one, other in zip(alone, several, strict=True):
            assert one.shape == other[k : k + 1].shape
            assert one.dtype == other.dtype
        tolerance = 1e-13 if dtype == torch.float64 else 1e-6
        assert float((alone.squared_norm - several.squared_norm[k]).abs()) <= tolerance * float(reach[k])
        if dtype == torch.float64:
            assert float(gap(gramian, rows, allowed, alone.weights.expand(6, -1))[k]) <= 1e-13
        if scale != "task":  # with scales of 1e±8 in one problem, a zero to one may be rounding to the other
            assert alone.status[0] == several.status[k]
        without = min_norm(gramian[k].to(dtype), rows[k], allowed[k])
        assert without.weights.shape == (points,)
        assert all(torch.equal(a[0], b) for a, b in zip(alone, without, strict=True))


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_what_is_not_finite_fails_in_plain_numbers_too(bad: float) -> None:
    gramian, rows = torch.eye(2), torch.tensor([[1.0, 0.0], [0.0, 1.0], [bad, 0.0]])
    assert min_norm(gramian * bad).status == Solve.FAILED
    assert min_norm(gramian, rows).status == Solve.FAILED
    masked = min_norm(gramian, rows, torch.tensor([True, True, False]))
    assert masked.weights.tolist() == [0.5, 0.5, 0.0]
    assert min_norm(gramian, allowed=torch.tensor([False, False])).weights.tolist() == [0.0, 0.0]
    assert not known_finite(rows)
    assert known_finite(gramian)


def test_few_points_are_solved_in_plain_numbers_and_others_are_left_alone() -> None:
    orthogonal = [[4.0, 0.0], [0.0, 1.0]]
    found = two_task_min_norm(orthogonal, [[1.0, 0.0], [0.0, 1.0]], [True, True], 2.2e-16)
    assert found is not None
    assert found.weights == pytest.approx([0.2, 0.8])
    assert found.squared_norm == pytest.approx(0.8)
    assert not found.zero
    inside = [[1.0, 0.0], [-1.0, 1.0], [-1.0, -1.0]]  # the origin is in the triangle
    assert two_task_min_norm(orthogonal, inside, [True] * 3, 2.2e-16) is None
    assert two_task_min_norm(orthogonal, [[1.0, float(k)] for k in range(9)], [True] * 9, 2.2e-16) is None
    assert min_norm(torch.tensor(orthogonal), torch.tensor(inside)).status == Solve.ZERO
