from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from paretomtl.compare.row_indicators import error_points, fill_indicators, spread_within
from paretomtl.paper.statistics import (
    difference,
    direction_rank_correlation,
    mean,
    plus_minus,
    rank_correlation,
    significant_sign,
    starred,
)


def test_two_means_differ_where_welchs_test_says_so() -> None:
    """Two seeds each with standard errors of 0.1: t has 2 degrees of freedom, so that 4.303 times 0.141 decides."""
    ours = [1.0 - 0.1, 1.0 + 0.1]
    for gap, sure in ((0.60, False), (0.62, True), (-0.62, True)):
        found = difference([value + gap for value in ours], ours)
        assert found == (pytest.approx(gap), sure)
    assert difference([5.0], [1.0, 1.1]) == (pytest.approx(3.95), False)
    assert difference([1.0, 1.0], [2.0, 2.0]) == (-1.0, True)
    assert difference([1.0, 1.0], [1.0, 1.0]) == (0.0, False)


def test_seeds_alone_seldom_differ() -> None:
    """Five against five seeds of the same distribution: at most about one in twenty."""
    generator = torch.Generator().manual_seed(0)
    drawn = torch.randn(4000, 2, 5, generator=generator).tolist()
    assert 0.02 < mean([float(difference(*pair)[1]) for pair in drawn]) < 0.06


def test_numbers_as_text() -> None:
    assert plus_minus([1.0, 2.0], 2) == "1.50 ± 0.71"
    assert plus_minus([1.0]) == "1.000"
    assert mean([1.0, math.nan]) == 1.0
    assert math.isnan(mean([]))
    assert [starred((0.5, sure), 2) for sure in (True, False)] == ["+0.50*", "+0.50"]
    assert [significant_sign(result) for result in ((0.5, True), (-0.5, True), (0.5, False))] == [1, -1, 0]


@given(st.lists(st.integers(-1000, 1000), min_size=2, max_size=12, unique=True))
def test_rank_correlation_is_that_of_spearman(values: list[int]) -> None:
    """1 for anything that rises, -1 for what falls; by the squared distances of ranks without ties."""
    places = list(range(len(values)))
    assert rank_correlation(sorted(values), [value**3 for value in sorted(values)]) == pytest.approx(1.0)
    assert rank_correlation(places, sorted(values, reverse=True)) == pytest.approx(-1.0)
    ranks = [sorted(values).index(value) for value in values]
    count = len(values)
    expected = 1 - 6 * sum((rank - i) ** 2 for rank, i in zip(ranks, places, strict=True)) / (count * (count**2 - 1))
    assert rank_correlation(places, values) == pytest.approx(expected)


def test_ties_share_their_rank_and_all_tied_has_no_order() -> None:
    assert rank_correlation([0, 1, 2, 3], [0, 1, 1, 2]) == pytest.approx(0.9487, abs=1e-4)
    assert math.isnan(rank_correlation([0, 1, 2], [5, 5, 5]))


def test_order_compares_directions_and_leaves_out_what_is_not_finite() -> None:
    row = {"vectors": [[1.0, 0.0], [0.7, 0.7], [0.0, 1.0]], "losses": [[0.9, 0.1], [0.5, 0.5], [0.1, 0.9]]}
    assert direction_rank_correlation(row) == pytest.approx(1.0)
    assert direction_rank_correlation({**row, "losses": row["losses"][::-1]}) == pytest.approx(-1.0)
    assert direction_rank_correlation({**row, "losses": [[None, 0.1], [0.5, 0.5], [0.1, 0.9]]}) == pytest.approx(1.0)
    assert math.isnan(direction_rank_correlation({**row, "losses": [[None, 0.1], [None, 0.5], [0.1, 0.9]]}))


def test_spread_is_that_of_solutions_somebody_could_take() -> None:
    front = [[0.0, 0.4], [0.3, 0.0]]
    assert spread_within(front, [2.0, 2.0]) == pytest.approx(0.5)
    assert spread_within([*front, [0.3, 0.4]], [2.0, 2.0]) == pytest.approx(0.5)  # dominated
    assert spread_within([*front, [-1.0, 9.0]], [2.0, 2.0]) == pytest.approx(0.5)  # beyond the reference
    assert spread_within([[9.0, 9.0]], [2.0, 2.0]) == 0.0


def test_indicators_are_filled_in_once() -> None:
    row = {
        "method": "linear",
        "tasks": ["a", "b"],
        "reference": [2.0, 2.0],
        "losses": [[1.0, 1.0], [None, 0.5]],
        "metrics": {"a accuracy": [0.9, 0.5], "b accuracy": [0.8, None]},
        "hypervolume": None,
        "error_hypervolume": None,
    }
    assert error_points(row) == [[pytest.approx(0.1), pytest.approx(0.2)]]
    (filled,) = fill_indicators([row])
    assert (filled["hypervolume"], filled["error_hypervolume"]) == (1.0, 0.72)
    assert fill_indicators([{**filled, "hypervolume": 7.0}])[0]["hypervolume"] == 7.0
    assert row["hypervolume"] is None
    ideal = {**row, "method": "single-task", "losses": [[0.5, 9.0], [9.0, 0.5]]}
    assert fill_indicators([ideal])[0]["hypervolume"] == 2.25
    assert "hypervolume" not in fill_indicators([{"method": "linear"}])[0]
