from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from _helpers.hulls import KINDS, SCALES, certificate, gap, hulls
from _helpers.oracle import daqp_point
from paretomtl.core import MinNorm, Solve, _min_norm, min_norm
from paretomtl.core._min_norm import _factor

SIZES = [(tasks, points) for tasks in range(2, 17) for points in sorted({tasks + 1, 2 * tasks + 8, 128})]
FEW = [(tasks, points) for tasks, points in SIZES if tasks in (2, 3, 5, 8, 16)]
some_and_the_rest = pytest.mark.parametrize(
    "sizes",
    [
        pytest.param(FEW, id="few sizes"),
        pytest.param([size for size in SIZES if size not in FEW], id="all others", marks=pytest.mark.study),
    ],
)


@some_and_the_rest
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("dtype", "bound"), [(torch.float64, 1e-6), (torch.float32, 1e-3)])
def test_the_gap_is_closed(
    kind: str, scale: str, dtype: torch.dtype, bound: float, sizes: list[tuple[int, int]]
) -> None:
    """6 kinds × 3 scales × 45 sizes × 20 problems: 16,200 for each precision."""
    for tasks, points in sizes:
        gramian, rows, allowed = hulls(kind, scale, 20, tasks, points, seed=1000 * tasks + points, rounded=dtype)
        found = min_norm(gramian.to(dtype), rows.to(dtype), allowed)
        weights = found.weights.double()
        assert weights.isfinite().all()
        assert (weights >= 0).all()
        assert (weights[~allowed] == 0).all()
        torch.testing.assert_close(weights.sum(-1), torch.ones(20, dtype=torch.float64), rtol=0, atol=1e-6)
        assert (found.status != Solve.FAILED).all()
        assert gap(gramian, rows.to(dtype).double(), allowed, weights).max() <= bound, (tasks, points)


@some_and_the_rest
@pytest.mark.parametrize("kind", ["plain", "rank-deficient", "duplicated", "zero"])
def test_tasks_of_very_different_scales_lose_no_digits(kind: str, sizes: list[tuple[int, int]]) -> None:
    """What the second pass of orthogonalisation is for: without it the worst gap is ten times larger."""
    worst = 0.0
    for tasks, points in sizes:
        gramian, rows, allowed = hulls(kind, "task", 40, tasks, points, seed=1000 * tasks + points)
        found = min_norm(gramian, rows, allowed)
        worst = max(worst, float(gap(gramian, rows, allowed, found.weights).max()))
        _check_the_reported_gap(found, gramian, rows, allowed)
    assert worst <= 3e-14


def test_the_reported_gap_is_that_of_the_weights() -> None:
    """Where the answer is limited by rounding, the gap says by how much."""
    gramian, rows, allowed = hulls("parallel", "problem", 200, 9, 128, seed=0)
    _check_the_reported_gap(min_norm(gramian, rows, allowed), gramian, rows, allowed)


def _check_the_reported_gap(found: MinNorm, gramian: torch.Tensor, rows: torch.Tensor, allowed: torch.Tensor) -> None:
    """It is that of the weights, up to rounding, and so small that "solved" is true."""
    outside, lost = certificate(gramian, rows, allowed, found.weights)
    solved = found.status == Solve.SOLVED
    assert ((found.gap - outside).abs() <= 0.1 * outside + 1e-14 * lost)[solved].all()
    assert (found.gap <= torch.where(solved, 5e-7, 1e-13)).all()


@pytest.mark.parametrize("scale", ["none", "problem"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_point_agrees_with_daqp(kind: str, scale: str) -> None:
    """Weights may differ where points are dependent; the point may not. DAQP gives up on some nearly parallel ones."""
    compared = 0
    for tasks in range(2, 17):
        gramian, rows, allowed = hulls(kind, scale, 12, tasks, 3 * tasks, seed=tasks)
        found = min_norm(gramian, rows, allowed)
        factor = _factor(gramian)
        mine = (found.combination[:, None, :] @ factor).squeeze(1)
        for b in range(12):
            points = (rows[b] @ factor[b])[allowed[b]]
            theirs = daqp_point(points)
            if theirs is not None:
                compared += 1
                assert float((mine[b] - theirs).norm()) <= 1e-6 * float(points.norm(dim=-1).max()), (tasks, b)
    assert compared == 180 if kind != "parallel" else compared >= 60


@given(tasks=st.integers(1, 16), rank=st.integers(0, 20), seed=st.integers(0, 10**6))
def test_the_factor_reproduces_the_gramian(tasks: int, rank: int, seed: int) -> None:
    g = torch.Generator().manual_seed(seed)
    jacobian = torch.randn(4, tasks, rank, generator=g, dtype=torch.float64)
    jacobian = jacobian * 10.0 ** torch.randint(-8, 9, (4, tasks, 1), generator=g)
    gramian = jacobian @ jacobian.mT
    scale = gramian.diagonal(dim1=-2, dim2=-1).sqrt()
    factor = _factor(gramian)
    error = (factor @ factor.mT - gramian).abs() / (scale[:, :, None] * scale[:, None, :]).clamp_min(1e-300)
    assert error.max() <= 1e-13 if gramian.any() else (factor == 0).all()


@given(tasks=st.integers(2, 8), points=st.integers(9, 40), seed=st.integers(0, 10**6))
def test_invariances(tasks: int, points: int, seed: int) -> None:
    gramian, rows, allowed = hulls("plain", "none", 3, tasks, points, seed=seed)
    found = min_norm(gramian, rows, allowed)
    order = torch.randperm(points, generator=torch.Generator().manual_seed(seed))

    permuted = min_norm(gramian, rows[:, order], allowed[:, order])
    torch.testing.assert_close(_value(permuted, gramian), _value(found, gramian), rtol=1e-9, atol=1e-12)

    doubled = min_norm(gramian, torch.cat([rows, rows], 1), torch.cat([allowed, allowed], 1))
    torch.testing.assert_close(doubled.squared_norm, found.squared_norm, rtol=1e-9, atol=1e-12)

    larger = min_norm(1e6 * gramian, rows, allowed)
    torch.testing.assert_close(larger.squared_norm, 1e6 * found.squared_norm, rtol=1e-9, atol=1e-6)

    for b in range(3):
        alone = min_norm(gramian[b], rows[b][allowed[b]])
        torch.testing.assert_close(alone.squared_norm, found.squared_norm[b], rtol=1e-9, atol=1e-12)


def _value(found: MinNorm, gramian: torch.Tensor) -> torch.Tensor:
    """``C α``: unlike α it is unique, also where C is singular."""
    return (gramian @ found.combination[..., None]).squeeze(-1)


def test_two_orthogonal_gradients_have_a_closed_form() -> None:
    found = min_norm(torch.diag_embed(torch.tensor([[4.0, 1.0], [1e-12, 1e12], [0.25, 0.25]], dtype=torch.float64)))
    torch.testing.assert_close(found.weights[:, 0], torch.tensor([0.2, 1 / (1 + 1e-24), 0.5], dtype=torch.float64))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("tasks", [2, 3, 8])
def test_opposed_gradients_are_zero_and_others_are_not(tasks: int, dtype: torch.dtype) -> None:
    g = torch.Generator().manual_seed(0)
    for exponent in (-8, 0, 8):
        jacobian = 10.0**exponent * torch.randn(50, tasks, 30, generator=g, dtype=dtype)
        assert (min_norm(jacobian @ jacobian.mT).status == Solve.SOLVED).all()
        share = torch.rand(50, tasks - 1, generator=g, dtype=dtype)
        jacobian[:, -1] = -(share[:, None, :] @ jacobian[:, :-1]).squeeze(1)
        assert (min_norm(jacobian @ jacobian.mT).status == Solve.ZERO).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_points_that_cancel_within_themselves_are_zero(dtype: torch.dtype) -> None:
    """Parallel gradients, and rows that undo their factor: every point is the origin up to rounding."""
    g = torch.Generator().manual_seed(0)
    factor = torch.rand(200, 1, 1, generator=g, dtype=dtype) + 0.1
    gradient = torch.randn(200, 1, 30, generator=g, dtype=dtype)
    jacobian = torch.cat([gradient, factor * gradient], 1)
    row = torch.cat([factor, -torch.ones_like(factor)], -1)
    found = min_norm(jacobian @ jacobian.mT, torch.cat([row, -0.3 * row], 1))
    assert (found.status == Solve.ZERO).all()
    alone = min_norm(jacobian @ jacobian.mT, row)
    assert (alone.squared_norm > 0).any(), "rounding is left"
    assert (alone.status == Solve.ZERO).all()


def test_the_precision_of_a_gramian_can_be_told() -> None:
    """A Gramian computed in float32 and stored in float64 knows no more than float32."""
    g = torch.Generator().manual_seed(0)
    jacobian = torch.randn(100, 1, 300, generator=g) * torch.tensor([[1.0], [-0.37]])
    gramian = (jacobian @ jacobian.mT).double()
    assert (min_norm(gramian).status == Solve.SOLVED).any()
    assert (min_norm(gramian, precision=torch.finfo(torch.float32).eps).status == Solve.ZERO).all()


def test_zero_gradients_are_zero_and_one_allowed_point_is_taken() -> None:
    assert min_norm(torch.zeros(3, 3)).status == Solve.ZERO
    only = torch.tensor([False, True, False])
    found = min_norm(torch.eye(3), allowed=only)
    assert found.weights.tolist() == [0.0, 1.0, 0.0]
    assert found.status == Solve.SOLVED


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_a_broken_problem_fails_alone(bad: float) -> None:
    gramian, rows, allowed = hulls("plain", "none", 4, 3, 10, seed=0)
    clean = min_norm(gramian, rows, allowed)
    broken = gramian.clone()
    broken[1, 0, 2] = bad
    allowed_none = allowed.clone()
    allowed_none[2] = False
    found = min_norm(broken, rows, allowed_none)
    assert found.status.tolist() == [clean.status[0], Solve.FAILED, Solve.FAILED, clean.status[3]]
    assert (found.weights[1:3] == 0).all()
    for k in (0, 3):
        assert torch.equal(found.weights[k], clean.weights[k])


def test_batch_dimensions_broadcast_and_may_be_empty() -> None:
    gramian = torch.eye(2).expand(3, 1, 2, 2)
    rows = torch.randn(5, 4, 2)
    assert min_norm(gramian, rows).weights.shape == (3, 5, 4)
    assert min_norm(torch.zeros(0, 2, 2)).weights.shape == (0, 2)


def test_bad_input_is_named() -> None:
    with pytest.raises(TypeError, match=r"'gramian' must be a floating-point tensor. Got torch.int64"):
        min_norm(torch.eye(2, dtype=torch.long))
    with pytest.raises(ValueError, match=r"'gramian' must have shape \[..., m, m\]. Got \[2, 3\]"):
        min_norm(torch.zeros(2, 3))
    with pytest.raises(ValueError, match=r"'rows' must have shape \[..., N, 2\]. Got \[4, 3\]"):
        min_norm(torch.eye(2), torch.zeros(4, 3))
    with pytest.raises(ValueError, match=r"'rows' must hold at least one point"):
        min_norm(torch.eye(2), torch.zeros(0, 2))
    with pytest.raises(TypeError, match=r"'allowed' must be a bool tensor. Got torch.int64"):
        min_norm(torch.eye(2), allowed=torch.ones(2, dtype=torch.long))
    with pytest.raises(ValueError, match=r"'allowed' must have shape \[..., 2\]"):
        min_norm(torch.eye(2), allowed=torch.ones(3, dtype=torch.bool))


@pytest.mark.study
@pytest.mark.parametrize("tasks", [2, 3])
def test_no_branch_depends_on_a_tensor(tasks: int) -> None:
    gramian, rows, allowed = hulls("plain", "task", 6, tasks, 9, seed=0)
    compiled = torch.compile(min_norm, fullgraph=True, backend="eager")(gramian, rows, allowed)
    torch.testing.assert_close(compiled.squared_norm, min_norm(gramian, rows, allowed).squared_norm)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("kind", KINDS)
def test_two_tasks_by_segments_and_by_pivots_agree(kind: str, scale: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The plane has a solver of its own; with very many points the general one takes over."""
    gramian, rows, allowed = hulls(kind, scale, 60, 2, 9, seed=3)
    one = min_norm(gramian, rows, allowed)
    monkeypatch.setattr(_min_norm, "_PAIRS", 0)
    other = min_norm(gramian, rows, allowed)
    reach = (rows @ gramian @ rows.mT).diagonal(dim1=-2, dim2=-1).amax(-1)
    assert ((one.squared_norm - other.squared_norm).abs() <= 1e-13 * reach).all()
    if scale != "task":  # with scales of 1e±8 in one problem, a zero to one may be rounding to the other
        assert torch.equal(one.status, other.status)
    for found in (one, other):
        assert gap(gramian, rows, allowed, found.weights).max() < 1e-13
        _check_the_reported_gap(found, gramian, rows, allowed)
