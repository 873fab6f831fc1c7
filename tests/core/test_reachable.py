"""Reachable directions: known fronts, units, noise, broken models."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from paretomtl import preferences
from paretomtl.core import in_region
from paretomtl.core.reachable import LEAST_ENTRY, find_reachable, spread_between


def convex(weights: Tensor) -> Tensor:
    """The minima of weighted sums on a convex front: squared distances from the corners of a simplex."""
    return torch.cdist(weights, torch.eye(weights.shape[-1], dtype=torch.float64)).square() + 0.1


def concave(weights: Tensor) -> Tensor:
    """The minima of weighted sums on a concave front: the corner with the largest weight."""
    eye = torch.eye(weights.shape[-1], dtype=torch.float64)
    return 1.0 - eye[weights.argmax(-1)]


@settings(deadline=None, max_examples=40)
@given(st.integers(2, 6), st.integers(0, 20), st.integers(0, 3))
def test_models_that_spread_keep_what_they_reached(tasks: int, more: int, seed: int) -> None:
    weights = preferences.interior(tasks + 2 + more, tasks)
    losses = convex(weights)
    reach = find_reachable(losses, weights)
    assert not reach.clumped
    assert reach.directions is not None
    torch.testing.assert_close(reach.directions, torch.nn.functional.normalize(losses, dim=-1))
    assert bool(in_region(reach.directions, losses).all())
    assert reach.factors.tolist() == [1.0] * tasks


@settings(deadline=None, max_examples=40)
@given(st.integers(2, 5), st.integers(0, 20), st.lists(st.floats(-3, 3), min_size=5, max_size=5))
def test_models_that_clump_get_directions_between_the_ends_whatever_the_units(
    tasks: int, more: int, powers: list[float]
) -> None:
    weights = preferences.interior(2 * tasks + 1 + more, tasks)
    units = torch.tensor([10.0**power for power in powers[:tasks]], dtype=torch.float64)
    plain, scaled = (find_reachable(concave(weights) * factor, weights) for factor in (1.0, units))
    assert plain.clumped
    assert scaled.clumped
    assert plain.directions is not None
    assert scaled.directions is not None
    torch.testing.assert_close(scaled.directions, plain.directions)
    torch.testing.assert_close(scaled.factors * units, (scaled.factors * units)[:1].expand(tasks))
    assert float(scaled.factors.log().sum()) == pytest.approx(0.0, abs=1e-9)
    assert float(plain.directions.min()) >= LEAST_ENTRY / math.sqrt(tasks)


@pytest.mark.parametrize(("count", "tasks"), [(100, 2), (200, 2), (125, 3)])
def test_many_models_that_clump_get_distinct_directions(count: int, tasks: int) -> None:
    weights = preferences.interior(count, tasks)
    reach = find_reachable(concave(weights), weights)
    assert reach.clumped
    assert reach.directions is not None


def test_directions_between_the_ends_favour_the_task_that_the_weights_favour() -> None:
    weights = preferences.interior(25, 4)
    directions = find_reachable(concave(weights), weights).directions
    assert directions is not None
    corners = weights.amax(-1) > 0.8
    assert torch.equal(directions[corners].argmin(-1), weights[corners].argmax(-1))


@pytest.mark.parametrize("seed", range(20))
def test_noise_makes_no_clump(seed: int) -> None:
    weights = preferences.interior(10, 2)
    noise = 1.0 + 0.05 * torch.randn(10, 2, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    assert not find_reachable(convex(weights) * noise, weights).clumped
    same = torch.ones(10, 2, dtype=torch.float64) * noise
    assert not find_reachable(same, weights).clumped


def test_equal_models_have_no_directions() -> None:
    reach = find_reachable(torch.ones(5, 2), preferences.interior(5, 2))
    assert reach.directions is None
    assert math.isnan(reach.crowding)
    assert not reach.clumped


def test_broken_models_are_left_out_and_get_a_place_between_the_ends() -> None:
    weights = preferences.interior(6, 2)
    losses = convex(weights)
    losses[0] = torch.nan
    losses[3] = 1e9
    healthy = torch.tensor([True, True, True, False, True, True])
    reach = find_reachable(losses, weights, healthy)
    assert reach.directions is not None
    assert bool(reach.directions.isfinite().all())
    good = [1, 2, 4, 5]
    torch.testing.assert_close(reach.directions[good], torch.nn.functional.normalize(losses[good], dim=-1))


@pytest.mark.parametrize("losses", [torch.full((4, 3), torch.nan), torch.zeros(4, 3), -torch.ones(4, 3)])
def test_without_usable_losses_there_are_no_directions(losses: Tensor) -> None:
    assert find_reachable(losses, preferences.interior(4, 3)).directions is None


def test_fewer_models_than_tasks_keep_what_they_reached() -> None:
    weights = preferences.interior(3, 5)
    reach = find_reachable(convex(weights), weights)
    assert not reach.clumped
    assert reach.directions is not None


def test_between_two_ends_angles_are_evenly_spaced() -> None:
    places = preferences.lattice(4, 2)
    rows = spread_between(torch.tensor([[1.0, 5.0], [7.0, 1.0]]), places)
    assert rows is not None
    angles = torch.atan2(rows[:, 1], rows[:, 0])
    torch.testing.assert_close(angles.diff(), angles.diff()[:1].expand(4))


@pytest.mark.parametrize("ends", [[[0.0, 0.0], [1.0, 1.0]], [[math.nan, 1.0], [1.0, 1.0]], [[-1.0, 1.0], [1.0, 1.0]]])
def test_ends_without_a_direction_have_nothing_between(ends: list[list[float]]) -> None:
    assert spread_between(torch.tensor(ends), preferences.lattice(2, 2)) is None
