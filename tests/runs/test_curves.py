"""Few points of a log that grows."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from paretomtl.runs.curves import Curves


@given(st.integers(1, 700), st.integers(2, 50))
def test_curves_are_short_even_and_end_with_the_last(total: int, points: int) -> None:
    curves = Curves(points)
    for epoch in range(1, total + 1):
        curves.add({"epoch": epoch})
        found = [event["epoch"] for event in curves.events()]
        assert len(found) <= points
        assert found[-1] == epoch
    gaps = [later - earlier for earlier, later in itertools.pairwise(found)]
    assert found[0] == 1
    assert len(set(gaps[:-1])) <= 1
    assert all(gap > 0 for gap in gaps)
    assert total < points or len(found) > points // 2 - 1


@given(st.integers(1, 300), st.integers(0, 300), st.integers(2, 20))
def test_curves_go_back(total: int, back: int, points: int) -> None:
    curves = Curves(points)
    for epoch in range(1, total + 1):
        curves.add({"epoch": epoch})
    curves.go_back(back)
    assert all(event["epoch"] <= back for event in curves.events())
    for epoch in range(back + 1, back + 40):
        curves.add({"epoch": epoch})
    found = [event["epoch"] for event in curves.events()]
    assert found == sorted(set(found))
    assert found[-1] == back + 39
    assert len(found) <= points
