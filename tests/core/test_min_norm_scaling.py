"""Gradients of very different lengths: no task rises along the min-norm direction, however short its gradient is.

The certificate is ``⟨g_i, d⟩ ≥ |d|²`` for every task, relative to ``|g_i| |d|``. A Gramian with rounding eps knows it
up to eps times ``Σ_i s_i |g_i| / |d|``, which is what cancelled in d. The gap bounds the norm, too, which exceeds the
least by ``gap · Σ_i s*_i |g_i|`` at most, with the weights s* of the least point, computed in rational numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from _helpers.emulate import needs_compiler
from _helpers.hulls import certificate as hull_certificate
from _helpers.hulls import gradient_certificate, gradients, hulls
from _helpers.oracle import daqp_point, exact_weights
from core.test_min_norm_cuda import by_kernel
from paretomtl.core import MinNorm, Solve, _min_norm, min_norm

ROUNDING = 2e-14
both_forms = pytest.mark.parametrize("solve", [min_norm, pytest.param(by_kernel, marks=needs_compiler)])


def check(jacobian: Tensor, found: MinNorm) -> None:
    assert (found.status == Solve.SOLVED).all()
    assert (found.weights >= 0).all()
    torch.testing.assert_close(found.weights.sum(-1), torch.ones(len(jacobian), dtype=torch.float64))
    worst, norm, terms = gradient_certificate(jacobian, found.weights)
    assert (worst <= ROUNDING * terms / norm).all()
    assert ((found.gap - worst.clamp_min(0.0)).abs() <= ROUNDING * terms / norm).all()
    torch.testing.assert_close(found.squared_norm.sqrt(), norm, rtol=1e-6, atol=0)


@both_forms
@pytest.mark.parametrize("digits", [0, 4, 8, 12, 16, 32])
def test_no_task_rises(digits: int, solve: Callable[..., MinNorm]) -> None:
    """With lifted points as high as 1e-5 of the longest one, a task rose in most problems with 1e16 and 5 tasks."""
    for tasks in range(2, 9) if solve is min_norm else (2, 3, 5, 8):  # those that other tests have compiled
        jacobian = gradients(60 if solve is min_norm else 12, tasks, digits, seed=tasks)
        check(jacobian, solve(jacobian @ jacobian.mT))


@both_forms
@pytest.mark.parametrize("unit", [1e-60, 1e60])
def test_no_task_rises_where_squares_are_huge_or_tiny(unit: float, solve: Callable[..., MinNorm]) -> None:
    for tasks in (2, 3, 5):
        jacobian = unit * gradients(10, tasks, 16, seed=tasks)
        check(jacobian, solve(jacobian @ jacobian.mT))


@pytest.mark.parametrize("digits", [0, 8, 16])
def test_a_gramian_in_float32_knows_as_much_as_float32(digits: int) -> None:
    for tasks in range(2, 9):
        jacobian = gradients(60, tasks, digits, seed=tasks)
        found = min_norm((jacobian @ jacobian.mT).float())
        worst, norm, terms = gradient_certificate(jacobian, found.weights.double())
        assert ((worst <= 2e-6 * terms / norm) | (found.status == Solve.ZERO)).all()


@settings(max_examples=40, deadline=None)
@given(
    exponents=st.lists(st.integers(-8, 8), min_size=2, max_size=5),
    dimensions=st.integers(1, 6),
    seed=st.integers(0, 10**6),
    pivots=st.booleans(),
)
def test_the_norm_is_the_least_by_rational_numbers(
    exponents: list[int], dimensions: int, seed: int, pivots: bool
) -> None:
    """Gradients that depend on each other and hulls that contain the origin are among them."""
    tasks = len(exponents)
    jacobian = gradients(1, tasks, 0.0, seed, dimensions=dimensions)
    jacobian = jacobian * torch.tensor([[10.0**exponent] for exponent in exponents], dtype=torch.float64)
    with pytest.MonkeyPatch.context() as patch:
        if pivots:
            patch.setattr(_min_norm, "_PAIRS", 0)
        found = min_norm(
            (jacobian @ jacobian.mT).expand(2, tasks, tasks)
        )  # two: one alone may go through plain numbers
    for solved in (MinNorm(*(part[:1] for part in found)), min_norm(jacobian @ jacobian.mT)):
        _, norm, terms = gradient_certificate(jacobian, solved.weights)
        least, least_terms = exact_norm(jacobian[0])
        if solved.status == Solve.ZERO:  # as far as a Gramian can tell
            assert norm <= (8 * tasks * 2.3e-16) ** 0.5 * terms * 1.01
            continue
        assert solved.status == Solve.SOLVED
        assert solved.gap <= 1e-7
        assert least * (1 - 1e-9) <= norm
        assert norm - least <= (float(solved.gap) + ROUNDING * float(terms / norm)) * least_terms


def exact_norm(jacobian: Tensor) -> tuple[float, float]:
    """The least norm, and the terms that cancel in it."""
    weights = exact_weights(jacobian)
    rows = [[Fraction(x) for x in row] for row in jacobian.tolist()]
    d = [sum((w * row[i] for w, row in zip(weights, rows, strict=True)), Fraction(0)) for i in range(len(rows[0]))]
    terms = sum(float(w) * float(row.norm()) for w, row in zip(weights, jacobian, strict=True))
    return float(sum(x * x for x in d)) ** 0.5, terms


@both_forms
@pytest.mark.parametrize("tasks", [2, 3, 5])
def test_a_tiny_weight_is_right_in_its_leading_digits(tasks: int, solve: Callable[..., MinNorm]) -> None:
    """A gradient 1e16 times longer has a weight of about 1e-16, or of 1e-32: that is no rounding of zero."""
    jacobian = gradients(8, tasks, 16, seed=0)
    found = solve(jacobian @ jacobian.mT)
    smallest = 1.0
    for k in range(8):
        exact = torch.tensor([float(w) for w in exact_weights(jacobian[k])], dtype=torch.float64)
        torch.testing.assert_close(found.weights[k], exact, rtol=1e-9, atol=1e-60)
        smallest = min(smallest, float(exact[exact > 0].min()))
    assert smallest < 1e-15


@pytest.mark.parametrize("tasks", [2, 4, 8])
def test_up_to_four_orders_daqp_finds_the_same_point(tasks: int) -> None:
    for jacobian in gradients(20, tasks, 4, seed=1):
        theirs = daqp_point(jacobian)
        assert theirs is not None
        mine = min_norm(jacobian @ jacobian.T).weights @ jacobian
        torch.testing.assert_close(mine, theirs, rtol=0, atol=1e-8 * float(jacobian.norm(dim=-1).max()))


def test_constraints_that_a_long_gradient_dominates_are_kept_too() -> None:
    """Rows that mix tasks are parallel up to the ratio of the lengths: segments differ by the square of that."""
    g = torch.Generator().manual_seed(0)
    for tasks in (2, 3, 6):
        for digits in (8, 12, 16):
            jacobian = gradients(40, tasks, digits, seed=tasks)
            rows = torch.cat([torch.eye(tasks).expand(40, -1, -1), torch.rand(40, 20, tasks, generator=g)], 1).double()
            found = min_norm(jacobian @ jacobian.mT, rows)
            assert (found.status == Solve.SOLVED).all()
            points = rows @ jacobian
            worst, norm, terms = gradient_certificate(points, found.weights)
            assert (worst <= 10 * ROUNDING * terms / norm).all(), (tasks, digits)


def test_squares_beyond_double_fail() -> None:
    huge = torch.tensor([[1e200]], dtype=torch.float64)
    for count in (1, 2, 3):
        found = min_norm(huge.expand(2, 1, 1) * torch.eye(count, dtype=torch.float64), huge.expand(1, count))
        assert found.status.tolist() == [Solve.FAILED] * 2
        assert not any(part.any() for part in (found.weights, found.combination, found.squared_norm, found.gap))


def test_pivots_that_run_out_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    gramian, rows, allowed = hulls("plain", "none", 50, 6, 60, seed=0)
    assert (min_norm(gramian, rows, allowed).status != Solve.INEXACT).all()
    monkeypatch.setattr(_min_norm, "_MOST_PIVOTS", 1)
    found = min_norm(gramian, rows, allowed)
    outside, _ = hull_certificate(gramian, rows, allowed, found.weights)
    moves = found.status != Solve.ZERO
    torch.testing.assert_close(found.gap[moves], outside[moves], rtol=1e-9, atol=1e-12)
    assert (found.status == Solve.INEXACT).any()
    assert torch.equal(found.status[moves] == Solve.INEXACT, outside[moves] > 1e-6)
