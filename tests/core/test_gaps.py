"""Gaps of a front: neighbours, normals, bounds, units, order, spread."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import paretomtl as pm
from paretomtl.core import nondominated
from paretomtl.core.gaps import find_gaps, gabriel_edges, weights_between

SEEDS = st.integers(0, 10_000)


def drawn(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def simplex(count: int, tasks: int, seed: int) -> Tensor:
    rows = 0.05 + torch.rand(count, tasks, generator=drawn(seed), dtype=torch.float64)
    return rows / rows.sum(-1, keepdim=True)


def optima(weights: Tensor) -> Tensor:
    """The exact minima of weighted sums of parabolas: a convex front."""
    tasks = weights.shape[-1]
    truth = pm.problems.quadratic(tasks, tasks, condition=3.0).truth
    assert truth is not None
    return truth.point(weights)


def chain(count: int, seed: int) -> Tensor:
    """Points of two tasks that do not dominate each other, in random order."""
    values = torch.rand(2, count, generator=drawn(seed), dtype=torch.float64).cumsum(-1)
    points = torch.stack([values[0], -values[1]], -1)
    return points[torch.randperm(count, generator=drawn(seed + 1))]


@given(SEEDS, st.integers(2, 12))
def test_neighbours_of_two_tasks_are_those_next_to_each_other(seed: int, count: int) -> None:
    points = chain(count, seed)
    order = points[:, 0].argsort().tolist()
    assert gabriel_edges(points) == sorted(tuple(sorted(pair)) for pair in itertools.pairwise(order))


@given(SEEDS, st.integers(2, 10), st.integers(2, 5))
def test_nothing_is_nearer_to_the_middle_of_neighbours_than_they_are(seed: int, count: int, tasks: int) -> None:
    points = torch.randn(count, tasks, generator=drawn(seed), dtype=torch.float64)
    found = gabriel_edges(points)
    for a, b in itertools.combinations(range(count), 2):
        middle, radius = (points[a] + points[b]) / 2, (points[a] - points[b]).norm() / 2
        others = [c for c in range(count) if c not in (a, b)]
        nearest = (points[others] - middle).norm(dim=-1).min() if others else torch.tensor(math.inf)
        assert ((a, b) in found) == bool(nearest >= radius * (1 - 1e-9))


@given(SEEDS, st.sampled_from([2, 3, 5]))
def test_the_new_weights_are_a_mixture_that_is_normal_to_the_gap(seed: int, tasks: int) -> None:
    one, other = simplex(2, tasks, seed)
    a, b = optima(torch.stack([one, other]))
    row, gain = weights_between(one, other, b - a)
    assert abs(float(row @ (b - a))) < 1e-12
    assert bool((row >= torch.minimum(one, other) - 1e-12).all())
    assert bool((row <= torch.maximum(one, other) + 1e-12).all())
    if tasks == 2:
        normal = (b - a).abs().flip(0)
        torch.testing.assert_close(row, normal / normal.sum())
    reached = row @ optima(row[None])[0]
    assert 0.0 <= float(row @ a - reached) <= gain + 1e-12, "the bound holds, and the new minimum is on or below"


@given(SEEDS, st.sampled_from([2, 3, 5]))
def test_the_bound_is_where_the_supporting_planes_meet(seed: int, tasks: int) -> None:
    """A front that is nothing but the two planes reaches the bound."""
    one, other = simplex(2, tasks, seed)
    a, b = optima(torch.stack([one, other]))
    row, gain = weights_between(one, other, b - a)
    planes = torch.stack([one, other])
    heights = torch.stack([one @ a, other @ b])
    corner = torch.linalg.lstsq(planes, heights[:, None]).solution[:, 0]
    torch.testing.assert_close(float(row @ a - row @ corner), gain, rtol=1e-6, atol=1e-9)


def test_weights_that_cannot_separate_two_neighbours_gain_nothing() -> None:
    """One of them is best for the weights of both, hence for all in between."""
    a, b = torch.tensor([0.0, 1.0]), torch.tensor([1.0, 0.0])
    for one, other in (([0.5, 0.5], [0.3, 0.7]), ([0.4, 0.6], [0.3, 0.7]), ([0.5, 0.5], [0.5, 0.5])):
        row, gain = weights_between(torch.tensor(one), torch.tensor(other), b - a)
        assert gain == 0.0
        torch.testing.assert_close(row, (torch.tensor(one) + torch.tensor(other)) / 2)
    found = find_gaps(torch.stack([a, b]), 2, importances=torch.tensor([[0.5, 0.5], [0.3, 0.7]]))
    assert (found.gaps, found.flat, found.solutions) == ([], [(0, 1)], 2)


def test_a_gap_of_models_that_others_beat_at_their_own_weights_is_not_flat() -> None:
    """They do not minimise their own sums, so that these say nothing about weights in between."""
    losses = torch.tensor([[0.0, 1.0], [1.0, 0.0]], dtype=torch.float64)
    for one, other, beaten in ((0.2, 0.6, [(0, 1), (1, 0)]), (0.3, 0.4, [(0, 1)]), (0.6, 0.7, [(1, 0)])):
        weights = torch.tensor([[one, 1 - one], [other, 1 - other]], dtype=torch.float64)
        found = find_gaps(losses, 1, importances=weights)
        (gap,) = found.gaps
        assert (gap.ends, found.flat, found.asked, found.beaten) == ((0, 1), [], [], beaten)
        assert math.isnan(gap.gain)
        torch.testing.assert_close(gap.importances, weights.mean(0))
    weights = torch.tensor([[0.9, 0.1], [0.2, 0.8]], dtype=torch.float64)
    sound = find_gaps(losses, 1, importances=weights)
    assert (sound.beaten, math.isnan(sound.gaps[0].gain)) == ([], False)


def test_noise_does_not_beat_a_model_at_its_own_weights() -> None:
    """Both are the same by the weights of the first, up to a share of their distance."""
    losses = torch.tensor([[0.0, 1.0], [1.0, 0.0]], dtype=torch.float64)
    for off, flat in ((0.005, True), (0.05, False)):
        weights = torch.tensor([[0.5 - off, 0.5 + off], [0.3, 0.7]], dtype=torch.float64)
        found = find_gaps(losses, 1, importances=weights)
        assert (found.flat == [(0, 1)]) == flat
        assert found.beaten == ([] if flat else [(0, 1)])
        assert found.asked == []


def test_a_third_model_beats_a_neighbour_too() -> None:
    """By the weights of a and b their gap is flat, and so is that of b and c; but b is beaten by all."""
    losses = torch.tensor([[0.0, 1.0], [0.6, 0.6], [1.0, 0.0]], dtype=torch.float64)
    weights = torch.tensor([[0.7, 0.3], [0.5, 0.5], [0.3, 0.7]], dtype=torch.float64)
    found = find_gaps(losses, 2, importances=weights)
    assert len(found.gaps) == 2
    assert {pair[0] for pair in found.beaten} <= {1}
    assert all(math.isnan(gap.gain) for gap in found.gaps)


def test_weights_that_were_tried_are_not_tried_again() -> None:
    """A dominated model has the mean weights of two neighbours that are beaten, and others have all in between."""
    losses = torch.tensor([[0.0, 1.0], [1.0, 0.0], [1.1, 1.1]], dtype=torch.float64)
    weights = torch.tensor([[0.2, 0.8], [0.6, 0.4], [0.4, 0.6]], dtype=torch.float64)
    (gap,) = find_gaps(losses, 1, importances=weights).gaps
    torch.testing.assert_close(gap.importances, (2 * weights[0] + weights[1]) / 3)
    full = torch.linspace(0.2, 0.6, 9, dtype=torch.float64)
    rows = torch.cat([weights[:2], torch.stack([full, 1 - full], -1)])
    found = find_gaps(torch.cat([losses[:2], losses[2:].expand(9, -1)]), 1, importances=rows)
    assert (found.gaps, found.flat, found.asked, found.beaten) == ([], [(0, 1)], [(0, 1)], [])
    same = find_gaps(torch.tensor([[0.0, 1.0], [0.9, 0.0]]), 1, importances=torch.tensor([[0.2, 0.8], [0.2, 0.8]]))
    assert (same.gaps, same.asked) == ([], [(0, 1)]), "no weights lie between equal ones"


@settings(max_examples=40, deadline=None)
@given(SEEDS, st.sampled_from([2, 3, 5]), st.booleans())
def test_units_do_not_matter(seed: int, tasks: int, directed: bool) -> None:
    weights = simplex(tasks + 3, tasks, seed)
    losses = optima(weights) + 0.1
    units = torch.logspace(-3, 4, tasks, dtype=torch.float64)[torch.randperm(tasks, generator=drawn(seed))]
    rows = torch.nn.functional.normalize(losses, dim=-1)
    scaled = torch.nn.functional.normalize(losses * units, dim=-1)
    one = find_gaps(losses, 3, importances=weights, directions=rows if directed else None)
    other = find_gaps(losses * units, 3, importances=weights / units, directions=scaled if directed else None)
    assert one.flat == other.flat
    assert [gap.ends for gap in one.gaps] == [gap.ends for gap in other.gaps]
    for gap, same in zip(one.gaps, other.gaps, strict=True):
        assert gap.near == same.near
        assert gap.size == pytest.approx(same.size, rel=1e-9)
        assert gap.gain == pytest.approx(same.gain, rel=1e-6, nan_ok=True)
        torch.testing.assert_close(gap.middle * units, same.middle)
        moved = gap.importances / units
        torch.testing.assert_close(moved / moved.sum(), same.importances)


@settings(max_examples=40, deadline=None)
@given(SEEDS, st.sampled_from([2, 3, 5]))
def test_the_order_of_solutions_and_tasks_does_not_matter(seed: int, tasks: int) -> None:
    weights = simplex(tasks + 4, tasks, seed)
    losses = optima(weights)
    rows, columns = (torch.randperm(n, generator=drawn(seed)) for n in losses.shape)
    one = find_gaps(losses, 2, importances=weights).gaps
    other = find_gaps(losses[rows][:, columns], 2, importances=weights[rows][:, columns]).gaps
    assert [gap.size for gap in one] == pytest.approx([gap.size for gap in other])  # halves of a gap are a tie
    gap, same = one[0], other[0]
    assert set(gap.ends) == {rows.tolist()[k] for k in same.ends}
    assert gap.near == rows.tolist()[same.near]
    torch.testing.assert_close(gap.importances[columns], same.importances)
    torch.testing.assert_close(gap.middle[columns], same.middle)


@pytest.mark.parametrize("directed", [True, False])
def test_several_models_spread_over_one_gap(directed: bool) -> None:
    """The middle first, then both halves, then quarters."""
    losses = torch.tensor([[0.0, 1.0], [1.0, 0.0]], dtype=torch.float64)
    weights = torch.tensor([[0.9, 0.1], [0.1, 0.9]], dtype=torch.float64)
    found = find_gaps(losses, 7, importances=weights, directions=losses if directed else None).gaps
    places = [float(gap.middle[0]) for gap in found]
    assert places[0] == 0.5
    assert sorted(places[:3]) == [0.25, 0.5, 0.75]
    assert sorted(places) == [k / 8 for k in range(1, 8)]
    shares = torch.stack([gap.importances for gap in found])[:, 1]
    assert sorted(places) == [places[i] for i in shares.argsort().tolist()], "weights spread in the same order"
    assert [gap.near for gap in found] == [0 if place < 0.5 else gap.near if place == 0.5 else 1
                                           for gap, place in zip(found, places, strict=True)]  # fmt: skip


@settings(max_examples=30, deadline=None)
@given(SEEDS, st.sampled_from([3, 5]))
def test_new_weights_of_many_tasks_keep_the_least_share_and_differ(seed: int, tasks: int) -> None:
    weights = pm.preferences.interior(3 * tasks, tasks)
    noise = torch.randn(weights.shape, generator=drawn(seed), dtype=torch.float64)
    losses = optima(weights) + 0.01 * noise.abs()
    found = find_gaps(losses, 4, importances=weights).gaps
    rows = torch.stack([gap.importances for gap in found])
    assert rows.shape == (4, tasks)
    torch.testing.assert_close(rows.sum(-1), torch.ones(4, dtype=torch.float64))
    assert float(rows.min()) >= 0.01, "in units of the ranges every row has a share of every task"
    assert float(torch.pdist(rows).min()) > 1e-3
    best = nondominated(losses)
    assert all(bool(best[gap.near]) for gap in found)
    assert all(gap.near in gap.ends for gap in found if max(gap.ends) < len(losses))


def test_solutions_that_do_not_count() -> None:
    """Broken, dominated and repeated ones change nothing."""
    good = torch.tensor([[0.0, 1.0], [0.2, 0.3], [1.0, 0.0]])
    weights = torch.tensor([[0.9, 0.1], [0.6, 0.4], [0.1, 0.9]])
    bad = torch.tensor([[torch.nan, 0.0], [torch.inf, -1.0], [0.9, 0.9], [0.2, 0.3]])
    one = find_gaps(good, 2, importances=weights)
    two = find_gaps(torch.cat([good, bad]), 2, importances=torch.cat([weights, torch.full((4, 2), 0.5)]))
    assert [gap.ends for gap in one.gaps] == [gap.ends for gap in two.gaps]
    assert one.solutions == two.solutions == 3
    for losses in (bad[:2], good[:1], good[[1, 1]], torch.tensor([[0.0, 0.0], [1.0, 1.0]])):
        found = find_gaps(losses, 2)
        assert found.gaps == []
        assert found.solutions < 2


def test_a_direction_that_was_asked_for_before_is_not_asked_for_again() -> None:
    losses = torch.tensor([[0.1, 1.0], [1.0, 0.1]])
    assert len(find_gaps(losses, 1, directions=losses).gaps) == 1
    found = find_gaps(losses, 1, directions=torch.tensor([[0.1, 1.0], [0.7, 0.7], [1.0, 0.1]]))
    assert (found.gaps, found.flat) == ([], [(0, 1)])


def test_solutions_that_gather_at_the_ends_are_told() -> None:
    weights = pm.preferences.interior(5, tasks=2)
    clump = torch.tensor([[0.02, 0.98], [0.03, 0.97], [0.5, 0.99], [0.97, 0.03], [0.98, 0.02]])
    assert find_gaps(clump, 1, importances=weights).clumped
    assert not find_gaps(optima(weights), 1, importances=weights).clumped
    assert not find_gaps(clump, 1, importances=weights, directions=clump).clumped, "directions can fill it"
