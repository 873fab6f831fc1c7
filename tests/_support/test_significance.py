"""What seeds explain, against quantiles of Student's t that are in every table; and that all who ask agree."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from paretomtl._support.significance import (
    Difference,
    adjusted,
    behind,
    deviation,
    difference,
    half_width,
    half_width_of,
    mean,
    rank_correlation,
)
from paretomtl.diagnosis._measurements import Measurements
from paretomtl.diagnosis.evidence import task_gaps
from paretomtl.paper.claims import compare_means


@pytest.mark.parametrize(("seeds", "quantile"), [(2, 12.706), (3, 4.303), (5, 2.776), (10, 2.262)])
def test_one_set_has_the_interval_of_student(seeds: int, quantile: float) -> None:
    values = [float(i) for i in range(seeds)]
    variance = seeds * (seeds + 1) / 12
    assert half_width(values) == pytest.approx(quantile * math.sqrt(variance / seeds), rel=1e-3)


def test_two_sets_of_equal_spread_have_the_degrees_of_freedom_of_both() -> None:
    assert half_width_of([1.0, 1.0], [3, 3]) == pytest.approx(2.776 * math.sqrt(2 / 3), rel=1e-3)
    assert half_width_of([1.0, 0.0], [3, 3]) == pytest.approx(4.303 * math.sqrt(1 / 3), rel=1e-3), (
        "one that never varies adds none"
    )


def test_a_difference_is_clear_beyond_the_reach() -> None:
    ours, theirs = [1.0, 1.1, 1.2], [2.0, 2.1, 2.2]
    assert difference(ours, theirs).value == pytest.approx(-1.0)
    assert difference(ours, theirs).sign == -1
    assert half_width(ours, theirs) < 1.0
    assert difference([1.0, 2.0], [1.6, 2.6]).significant is False
    assert difference([1.0, 1.0], [1.0, 1.0]) == Difference(0.0, 0.0, 1.0)
    assert difference([1.0, 1.0], [1.0, 1.0]).sign == 0
    assert difference([1.0, 1.0], [2.0, 2.0]).sign == -1


def test_one_seed_reaches_everywhere() -> None:
    assert half_width([1.0]) == half_width([1.0, 2.0], [1.0]) == half_width_of([0.0, 0.0], [1, 5]) == math.inf
    assert difference([1.0], [9.0, 9.0]).significant is False


def test_tiny_deviations_are_told_too() -> None:
    """Squares of variances underflow before the variances do."""
    assert difference([1e-90, 2e-90, 3e-90], [9e-90, 9.1e-90, 9.2e-90]).significant is True


def test_two_means_differ_where_welchs_test_says_so() -> None:
    """Two seeds each with standard errors of 0.1: t has 2 degrees of freedom, so that 4.303 times 0.141 decides."""
    ours = [1.0 - 0.1, 1.0 + 0.1]
    for gap, sign in ((0.60, 0), (0.62, 1), (-0.62, -1)):
        result = difference([value + gap for value in ours], ours)
        assert (result.value, result.sign) == (pytest.approx(gap), sign)
    assert difference([5.0], [1.0, 1.1]) == Difference(pytest.approx(3.95), math.inf, 1.0)
    assert difference([1.0, 1.0, math.nan], [9.0, 9.0, 9.0]).sign == 0


def test_seeds_alone_seldom_differ() -> None:
    """Five against five seeds of the same distribution: at most about one in twenty."""
    generator = torch.Generator().manual_seed(0)
    drawn = torch.randn(4000, 2, 5, generator=generator).tolist()
    assert 0.02 < mean([float(difference(*pair).significant) for pair in drawn]) < 0.06


def test_means_leave_out_nan_and_one_value_has_no_deviation() -> None:
    assert mean([1.0, math.nan]) == 1.0
    assert math.isnan(mean([]))
    assert deviation([1.0, 2.0]) == pytest.approx(math.sqrt(0.5))
    assert math.isnan(deviation([1.0]))


VALUES = st.lists(st.floats(0.01, 100.0) | st.floats(0.99, 1.01), min_size=2, max_size=6)


def measurements(joint: list[float], alone: list[float]) -> Measurements:
    """Measurements of one task with these losses, whose loss was 1 at the start."""
    one, none = torch.ones(1).double(), torch.full((1, 1, 1), torch.nan).double()
    columns = [torch.tensor(values, dtype=torch.float64)[:, None] for values in (joint, alone)]
    return Measurements(
        "one", ("task",), 1, (0, 1), "train", none, none[None], none, one, one, one, one, *columns, 1, 0, 1.0
    )  # fmt: skip


@given(VALUES, VALUES)
def test_diagnose_and_studies_agree_on_the_same_numbers(first: list[float], second: list[float]) -> None:
    told = difference(first, second)
    (gap,) = task_gaps(measurements(first, second))
    assert (gap.word in ("worse", "better")) == (told.significant and abs(gap.value) > gap.margin)
    assert gap.half_width == told.half_width
    assert compare_means(first, {"mgda": second})[1] == [told.sign]


@pytest.mark.parametrize(("freedom", "quantile"), [(1, 12.7062), (2, 4.30265), (4, 2.77645), (9, 2.26216)])
def test_p_is_that_of_student(freedom: int, quantile: float) -> None:
    """The mean of these differences is this many standard errors from zero."""
    values = [float(i) for i in range(freedom + 1)]
    error = half_width(values) / half_width_of([1.0], [freedom + 1]) / math.sqrt(freedom + 1)
    shift = quantile * error - mean(values)
    assert difference([value + shift for value in values]).p == pytest.approx(0.05, rel=1e-3)


def test_all_comparisons_of_an_answer_are_judged_together() -> None:
    """By Holm; a leader that was chosen from four pays for the choice."""
    found = [Difference(1.0, 0.0, p) for p in (0.02, 0.01, 0.04)]
    assert [each.p for each in adjusted(found)] == pytest.approx([0.04, 0.03, 0.04])
    assert [each.p for each in adjusted(found, 4)] == pytest.approx([0.08, 0.06, 0.08])


def test_a_leader_is_judged_in_pairs_by_seed() -> None:
    leader = {0: 1.0, 1: 2.0, 2: 3.0, 3: 10.0}
    less = {seed: value - 0.1 - 0.001 * seed for seed, value in leader.items()}
    rounding = {seed: value * (1 - 1e-15) for seed, value in leader.items()}
    assert behind(leader, [less, rounding, {0: 0.0}, {0: 1.0, 1: math.nan}]) == [True, False, False, False]


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
