"""What seeds explain, against quantiles of Student's t that are in every table."""

from __future__ import annotations

import math

import pytest

from paretomtl._support.significance import difference, half_width, half_width_of


@pytest.mark.parametrize(("seeds", "quantile"), [(2, 12.706), (3, 4.303), (5, 2.776), (10, 2.262)])
def test_one_set_has_the_interval_of_student(seeds: int, quantile: float) -> None:
    values = [float(i) for i in range(seeds)]
    variance = seeds * (seeds + 1) / 12
    assert half_width(values) == pytest.approx(quantile * math.sqrt(variance / seeds), rel=1e-3)


def test_two_sets_of_equal_spread_have_the_degrees_of_freedom_of_both() -> None:
    assert half_width_of([1.0, 1.0], [3, 3]) == pytest.approx(2.776 * math.sqrt(2 / 3))
    assert half_width_of([1.0, 0.0], [3, 3]) == pytest.approx(4.303 * math.sqrt(1 / 3)), (
        "one that never varies adds none"
    )


def test_a_difference_is_clear_beyond_the_reach() -> None:
    ours, theirs = [1.0, 1.1, 1.2], [2.0, 2.1, 2.2]
    assert difference(ours, theirs) == (pytest.approx(-1.0), True)
    assert half_width(ours, theirs) < 1.0
    assert difference([1.0, 2.0], [1.6, 2.6])[1] is False
    assert difference([1.0, 1.0], [1.0, 1.0]) == (0.0, False)
    assert difference([1.0, 1.0], [2.0, 2.0]) == (-1.0, True)


def test_one_seed_reaches_everywhere() -> None:
    assert half_width([1.0]) == half_width([1.0, 2.0], [1.0]) == half_width_of([0.0, 0.0], [1, 5]) == math.inf
    assert difference([1.0], [9.0, 9.0])[1] is False


def test_tiny_deviations_are_told_too() -> None:
    """Squares of variances underflow before the variances do."""
    assert difference([1e-90, 2e-90, 3e-90], [9e-90, 9.1e-90, 9.2e-90])[1] is True
