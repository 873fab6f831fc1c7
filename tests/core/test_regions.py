from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from paretomtl import core, preferences
from paretomtl._support import argument_checks as _shapes


@given(
    count=st.integers(1, 120),
    tasks=st.integers(2, 8),
    epsilon=st.floats(0, 0.99),
    length=st.sampled_from([1e-30, 1e-3, 1.0, 1e30]),
    dtype=st.sampled_from([torch.float32, torch.float64]),
)
def test_on_its_own_ray_nothing_is_active(
    count: int, tasks: int, epsilon: float, length: float, dtype: torch.dtype
) -> None:
    vectors = preferences.even(count, tasks)
    rows = core.region_rows(vectors)
    values = core.constraint_values(rows, (length * vectors).to(dtype))
    assert not core.active_initial(values).any()
    assert not core.active_main(values, rows, epsilon).any()
    assert core.in_region(vectors, (length * vectors).to(dtype)).all()


@given(count=st.integers(2, 30), tasks=st.integers(2, 6), seed=st.integers(0, 10**6))
def test_a_region_holds_what_is_nearest_to_its_vector(count: int, tasks: int, seed: int) -> None:
    """The paper's definition, equation 6: the largest inner product among all vectors."""
    vectors = preferences.random(count, tasks, seed=seed)
    losses = preferences.random(50, tasks, seed=seed + 1) * 7.0
    inside = core.in_region(vectors, losses[:, None, :].expand(50, count, tasks))
    nearest = (losses @ vectors.T).argmax(-1)
    assert torch.equal(inside.long().argmax(-1), nearest)
    assert (inside.sum(-1) == 1).all(), "regions meet at boundaries alone"


@given(tasks=st.integers(2, 6), count=st.integers(2, 20), seed=st.integers(0, 10**6), factor=st.floats(1e-20, 1e20))
def test_values_are_free_of_the_scale_of_the_losses(tasks: int, count: int, seed: int, factor: float) -> None:
    rows = core.region_rows(preferences.random(count, tasks, seed=seed))
    losses = preferences.random(count, tasks, seed=seed + 1)
    values = core.constraint_values(rows, losses)
    torch.testing.assert_close(core.constraint_values(rows, factor * losses), values, rtol=1e-9, atol=1e-12)


def test_rows_leave_out_the_vector_itself() -> None:
    vectors = preferences.even(4, 3)
    rows = core.region_rows(vectors)
    for k in range(4):
        others = [j for j in range(4) if j != k]
        assert torch.equal(rows[k], vectors[others] - vectors[k])
    assert core.region_rows(vectors[:1]).shape == (1, 0, 3)


def test_zero_losses_lie_on_the_ray() -> None:
    vectors = preferences.even(3, 2)
    rows = core.region_rows(vectors)
    torch.testing.assert_close(core.constraint_values(rows, torch.zeros(3, 2)), -core.slack(rows))
    assert core.in_region(vectors, torch.zeros(3, 2)).all()


def test_a_relative_threshold_keeps_narrow_regions_open() -> None:
    """The paper's absolute threshold of 0.01 makes both neighbours active on the ray for 25 vectors."""
    vectors = preferences.even(25, 2)
    rows = core.region_rows(vectors)
    values = core.constraint_values(rows, vectors)
    assert ((values >= -0.01).sum(-1)[1:-1] >= 2).all()
    assert not core.active_main(values, rows, 0.1).any()


def test_bad_input_is_named() -> None:
    rows = core.region_rows(preferences.even(3, 2))
    with pytest.raises(ValueError, match=r"'losses' must have shape \[..., 2\]. Got \[3, 3\]"):
        core.constraint_values(rows, torch.ones(3, 3))
    with pytest.raises(TypeError, match="'losses' must be a floating-point tensor"):
        core.constraint_values(rows, torch.ones(3, 2, dtype=torch.long))
    with pytest.raises(ValueError, match=r"'epsilon' must be at least 0 and under 1. Got 1.0"):
        core.active_main(torch.zeros(3, 2), rows, 1.0)
    with pytest.raises(ValueError, match=r"'preferences' must have shape \[K, m\]"):
        core.region_rows(torch.ones(3))


def test_losses_that_are_not_numbers_are_in_no_region() -> None:
    losses = torch.tensor([[torch.nan, 0.2], [0.8, torch.nan], [0.0, 0.0]])
    vectors = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])
    assert core.in_region(vectors, losses).tolist() == [False, False, True]


@given(count=st.integers(1, 12), tasks=st.integers(2, 4), size=st.integers(1, 60), seed=st.integers(0, 99))
def test_blocks_change_nothing(count: int, tasks: int, size: int, seed: int) -> None:
    losses = torch.rand(2, count, tasks, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    losses[0, 0], losses[1, -1, 0] = 0.0, torch.nan
    vectors = preferences.even(count, tasks)
    whole = (core.constraint_values(core.region_rows(vectors), losses) <= 1e-9).all(-1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_shapes, "BLOCK", size)
        assert torch.equal(core.in_region(vectors, losses), whole)
