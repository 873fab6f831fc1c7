"""How long several runs still take."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from _helpers.clock import Clock
from paretomtl.training.progress.time_left import Tally, remaining_of

seconds = st.floats(0.0, 1e6)


@given(elapsed=seconds, share=st.floats(-1.0, 2.0), usual=st.none() | seconds)
def test_what_remains_of_a_run_is_never_negative(elapsed: float, share: float, usual: float | None) -> None:
    left = remaining_of(elapsed, share, usual)
    assert left is None or left >= 0.0
    assert (left is None) == (share <= 0.0 and usual is None)


@given(share=st.floats(0.01, 1.0), whole=st.floats(0.1, 1e4))
def test_what_remains_is_exact_for_an_even_pace(share: float, whole: float) -> None:
    for usual in (None, whole):
        assert remaining_of(share * whole, share, usual) == pytest.approx((1 - share) * whole, abs=1e-9 * whole)


@given(runs=st.integers(1, 6), stored=st.integers(0, 3), each=st.floats(0.5, 100.0), shares=st.booleans())
def test_the_time_left_is_exact_when_all_runs_take_the_same(runs: int, stored: int, each: float, shares: bool) -> None:
    """From the first share on, or else from the end of the first run on; and no share is less than one before."""
    clock = Clock()
    tally = Tally([str(i) for i in range(runs)], ["a"] * runs, stored=stored, now=clock)
    assert tally.left() is None
    before = tally.share()
    for i in range(runs):
        tally.begin(i)
        for quarter in range(1, 4):
            clock.seconds = (i + quarter / 4) * each
            if shares:
                tally.advance(i, quarter / 4)
            if shares or i:
                assert tally.left() == pytest.approx((runs - i - quarter / 4) * each)
            assert tally.share() >= before
            before = tally.share()
        clock.seconds = (i + 1) * each
        tally.end(i)
    assert (tally.left(), tally.share(), tally.done, tally.gone()) == (0.0, 1.0, runs + stored, clock.seconds)


@given(st.lists(st.tuples(st.sampled_from("bae"), st.integers(0, 3), st.floats(-0.5, 1.5), seconds), max_size=30))
def test_whatever_happens_the_time_left_is_none_or_not_negative(events: list[tuple[str, int, float, float]]) -> None:
    clock = Clock()
    tally = Tally(["p", "q", "r", "s"], ["x", "x", "y", "y"], known={"y": 0.0}, slots=2, now=clock)
    for what, i, share, passed in events:
        clock.seconds += passed
        before = tally.share()
        if what == "b" and i not in tally.running:
            tally.begin(i)
            continue  # a run that is begun again elsewhere has nothing done
        if what == "a" and i in tally.running:
            tally.advance(i, share)
        elif what == "e" and i in tally.running:
            tally.end(i, failed=share < 0)
        left = tally.left()
        assert left is None or left >= 0.0
        assert before - 1e-12 <= tally.share() <= 1.0


def test_runs_are_judged_by_those_of_their_kind() -> None:
    clock = Clock()
    tally = Tally(["a0", "b0", "a1", "b1"], ["a", "b", "a", "b"], known={"b": 40.0}, now=clock)
    tally.begin(0)
    clock.seconds = 10.0
    tally.end(0)
    assert tally.left() == 40.0 + 10.0 + 40.0, "what was stored before counts until a run of the kind has ended"
    tally.begin(1)
    clock.seconds = 15.0
    tally.end(1)
    assert tally.left() == 10.0 + 5.0
    tally.begin(2)
    tally.end(2, failed=True)
    assert tally.left() == 5.0, "a run that failed tells nothing about time"


def test_what_comes_before_training_takes_no_share() -> None:
    clock = Clock()
    tally = Tally(["a", "b"], ["x", "x"], now=clock)
    tally.begin(0)
    clock.seconds = 8.0
    tally.advance(0, 0.5, seconds=3.0)
    assert tally.left() == 3.0 + 11.0


def test_runs_side_by_side_share_the_time() -> None:
    clock = Clock()
    tally = Tally(list("abcd"), ["x"] * 4, known={"x": 10.0}, slots=2, now=clock)
    assert tally.left() == 20.0
    tally.begin(0)
    tally.begin(1)
    clock.seconds = 10.0
    tally.end(0)
    tally.end(1)
    tally.begin(2)
    clock.seconds = 14.0
    assert tally.left() == 10.0, "never less than the longest run that is left"
