"""The CUDA kernel of the dual, run on a CPU: as exact as the torch operations that it stands for."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from _helpers.emulate import Launches, Operations, needs_compiler
from _helpers.hulls import KINDS, SCALES, certificate, gap, hulls
from paretomtl.core import MinNorm, Solve, _min_norm, min_norm
from paretomtl.core import min_norm_cuda as _min_norm_kernel

pytestmark = needs_compiler


def by_kernel(*args: torch.Tensor | None, launches: int = 1, **options: Any) -> MinNorm:
    counter = Launches()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_min_norm, "may_launch", lambda gramian: True)
        patch.setattr(_min_norm_kernel, "kernel", counter)
        found = min_norm(*args, **options)
    assert counter.count == launches
    return found


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("kind", KINDS)
def test_the_gap_is_as_small_as_that_of_torch(kind: str, scale: str) -> None:
    for tasks in (2, 3, 5, 8):
        for points in (tasks + 1, 3 * tasks + 20):
            gramian, rows, allowed = hulls(kind, scale, 20, tasks, points, seed=1000 * tasks + points)
            found, other = by_kernel(gramian, rows, allowed), min_norm(gramian, rows, allowed)
            _check_simplex(found, allowed)
            reach = (rows @ gramian @ rows.mT).diagonal(dim1=-2, dim2=-1).amax(-1)
            assert ((found.squared_norm - other.squared_norm).abs() <= 1e-13 * reach).all(), (tasks, points)
            _, lost = certificate(gramian, rows, allowed, found.weights)
            rounding = 1e-14 * torch.where(found.status == Solve.SOLVED, lost, 1.0)
            assert (found.gap <= 2 * other.gap + rounding + (1e-8 if scale == "task" else 0.0)).all(), (tasks, points)
            mine = gap(gramian, rows, allowed, found.weights)
            theirs = gap(gramian, rows, allowed, other.weights)
            assert (mine <= 2 * theirs + 3e-14).all(), (tasks, points)
            combination = (found.weights[:, None] @ rows).squeeze(1)
            torch.testing.assert_close(found.combination, combination, rtol=1e-13, atol=1e-13)
            # For gradients nearly parallel, or scales of 1e±8 in one problem, a zero to one is rounding to the other.
            if scale != "task" and kind != "parallel":
                assert torch.equal(found.status, other.status)


@settings(max_examples=30, deadline=None)  # on a GPU, the first call compiles
@given(
    tasks=st.sampled_from([1, 2, 3, 5, 8, 16]),
    more=st.integers(0, 60),
    kind=st.sampled_from(KINDS),
    seed=st.integers(0, 10**6),
)
def test_float32_and_any_number_of_points(tasks: int, more: int, kind: str, seed: int) -> None:
    gramian, rows, allowed = hulls(kind, "none", 3, tasks, tasks + more, seed=seed, rounded=torch.float32)
    found = by_kernel(gramian.float(), rows.float(), allowed)
    other = min_norm(gramian.float(), rows.float(), allowed)
    assert found.weights.dtype == found.squared_norm.dtype == torch.float32
    _check_simplex(found, allowed)
    torch.testing.assert_close(found.squared_norm, other.squared_norm, rtol=1e-5, atol=1e-9)
    assert (found.gap <= 2 * other.gap + 1e-14).all()
    assert torch.equal(found.status, other.status)


def _check_simplex(found: MinNorm, allowed: torch.Tensor) -> None:
    weights = found.weights.double()
    assert (weights >= 0).all()
    assert (weights[~allowed] == 0).all()
    torch.testing.assert_close(weights.sum(-1), torch.ones(len(weights), dtype=torch.float64), rtol=0, atol=1e-6)


@pytest.mark.parametrize("tasks", [2, 3, 8])
def test_broken_and_empty_problems_fail_alone(tasks: int) -> None:
    gramian, rows, allowed = hulls("plain", "none", 6, tasks, 20, seed=0)
    clean = by_kernel(gramian, rows, allowed)
    gramian, rows, allowed = gramian.clone(), rows.clone(), allowed.clone()
    gramian[1, 0, 1] = torch.nan
    allowed[2] = False
    rows[3][allowed[3].nonzero()[0, 0], 1] = torch.inf
    rows[4][~allowed[4]] = torch.nan
    found = by_kernel(gramian, rows, allowed)
    expected = clean.status.clone()
    expected[1:4] = Solve.FAILED
    assert torch.equal(found.status, expected)
    for mine, whole in zip(found[:4], clean[:4], strict=True):
        assert (mine[1:4] == 0).all()
        for k in (0, 4, 5):
            assert torch.equal(mine[k], whole[k])


def test_squares_beyond_double_fail() -> None:
    found = by_kernel(torch.tensor([[1e200]], dtype=torch.float64), torch.tensor([[1e200]], dtype=torch.float64))
    assert found.status == Solve.FAILED
    assert found.weights.tolist() == [0.0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_rows_and_mask_may_be_left_out(dtype: torch.dtype) -> None:
    for tasks in (1, 2, 3, 5):
        gramian, _, allowed = hulls("plain", "none", 9, tasks, 2 * tasks, seed=0, rounded=dtype)
        gramian, allowed = gramian.to(dtype), allowed[:, :tasks]
        allowed[:, 0] = True
        for mask in (None, allowed):
            found, other = by_kernel(gramian, None, mask), min_norm(gramian, None, mask)
            assert found.weights.dtype == dtype
            torch.testing.assert_close(found.squared_norm, other.squared_norm)
            torch.testing.assert_close(found.combination, found.weights)


def test_what_is_zero_is_zero() -> None:
    zeros = torch.zeros(2, 3, 3)
    for found in (by_kernel(zeros), min_norm(zeros)):
        assert found.status.tolist() == [Solve.ZERO] * 2
        assert found.gap.tolist() == found.squared_norm.tolist() == [0.0] * 2
    gramian = torch.tensor([[1.0, -1.0], [-1.0, 1.0 + 1e-9]], dtype=torch.float64)
    for precision in (None, 1e-7):
        assert by_kernel(gramian, precision=precision).status == min_norm(gramian, precision=precision).status


def test_batch_dimensions_broadcast_and_may_be_empty() -> None:
    g = torch.Generator().manual_seed(0)
    jacobian = torch.randn(3, 1, 2, 6, generator=g)
    rows, allowed = torch.randn(5, 4, 2, generator=g), torch.rand(3, 5, 4, generator=g) < 0.8
    for mask in (None, allowed, torch.tensor([True, False, True, True])):
        for gramian in (jacobian @ jacobian.mT, jacobian[0, 0] @ jacobian[0, 0].mT):
            for points in (rows, rows[0], rows.double(), rows.mT.contiguous().mT):
                found, other = by_kernel(gramian, points, mask), min_norm(gramian, points, mask)
                for mine, theirs in zip(found, other, strict=True):
                    assert mine.shape == theirs.shape
                torch.testing.assert_close(found.squared_norm, other.squared_norm, rtol=1e-5, atol=1e-6)
    assert by_kernel(torch.zeros(0, 2, 2), launches=0).weights.shape == (0, 2)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_nothing_else_is_launched(dtype: torch.dtype) -> None:
    gramian, rows, allowed = hulls("plain", "none", 4, 3, 10, seed=0)
    for case in ((gramian, rows, allowed), (gramian, rows[0], None), (gramian, None, None), (gramian[0], rows, None)):
        tensors = [t if t is None or t.dtype == torch.bool else t.to(dtype) for t in case]
        with Operations() as seen:
            by_kernel(*tensors)
        assert seen.launched() == []


def test_what_does_not_fit_is_left_to_torch() -> None:
    gramian = torch.eye(17)
    assert torch.equal(by_kernel(gramian, launches=0).weights, min_norm(gramian).weights)
    rows = torch.rand(2000, 3, generator=torch.Generator().manual_seed(0))
    assert torch.equal(by_kernel(torch.eye(3), rows, launches=0).weights, min_norm(torch.eye(3), rows).weights)
