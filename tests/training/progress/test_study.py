"""Progress of many runs: the estimate by a clock that the test moves, and what is shown."""

from __future__ import annotations

import io
import signal

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

import paretomtl as pm
from paretomtl._support.signals import Stopping
from paretomtl.training.progress import study as _study_progress
from paretomtl.training.progress.study import StudyProgress
from paretomtl.training.progress.study_listeners import quiet_elsewhere
from paretomtl.training.progress.time_left import Tally, remaining_of
from training.progress.test_display import report


class Clock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


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


def study(style: str, clock: Clock, noun: str = "run") -> StudyProgress:
    return StudyProgress(Tally(["mgda, seed 0", "mgda, seed 1"], ["m", "m"], stored=5, now=clock), style, noun)


def test_plain_lines_come_at_most_every_five_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    with study("plain", clock) as shown:
        shown.begin(0)
        for second in range(1, 13):
            clock.seconds = float(second)
            shown.on_report(second / 12, float(second), report(epoch=second, epochs=12))
        shown.end(0)
        shown.begin(1)
        clock.seconds = 20.0
        shown.poll()
        shown.on_report(0.1, 8.0, None)
        clock.seconds = 60.0
        shown.on_report(0.5, 48.0, None)
    assert capsys.readouterr().err.splitlines() == [
        "run 6 of 7 (mgda, seed 0), 0:05 gone, 0:19 left; epoch 5/12",
        "run 6 of 7 (mgda, seed 0), 0:10 gone, 0:14 left; epoch 10/12",
        "run 7 of 7 (mgda, seed 1), 1:00 gone, 0:27 left",
    ]


def test_a_bar_for_all_runs_stands_above_that_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    page, clock = io.StringIO(), Clock()
    console = Console(file=page, force_terminal=True, width=40, color_system=None)
    monkeypatch.setattr(_study_progress, "text_console", lambda **_: console)
    with study("rich", clock, "cell") as shown:
        shown.begin(0)
        clock.seconds = 6.0
        shown.on_report(0.3, 6.0, report())
        still = Console(file=io.StringIO(), width=40)
        with still.capture() as captured:
            still.print(shown.panel())
    lines = captured.get().splitlines()
    assert lines[0].rstrip() == "cell 6 of 7 (mgda, seed 0)"
    assert any("epoch 3/10" in line for line in lines[2:])
    assert all(len(line) <= 40 for line in lines)
    assert "6:00" not in page.getvalue()
    assert "cell 6 of 7" in page.getvalue()


def test_runs_within_a_study_report_to_it_alone(capsys: pytest.CaptureFixture[str]) -> None:
    quadratic, clock = pm.problems.quadratic(), Clock()
    with study("plain", clock) as shown:
        shown.begin(0)
        clock.seconds = 7.0
        pm.fit_seeds(quadratic, "linear", 2, seeds=[0, 1], epochs=1, device="cpu")
        assert shown.tally.share() == pytest.approx(6 / 7)
    assert capsys.readouterr().err == "run 6 of 7 (mgda, seed 0), 0:07 gone, 0:07 left; epoch 1/1\n"
    with study("quiet", clock), quiet_elsewhere():
        pm.fit(quadratic, "linear", 2, epochs=1, device="cpu")
    assert capsys.readouterr().err == ""


def test_no_run_begins_after_a_signal_that_came_while_another_one_ended() -> None:
    with study("quiet", Clock()) as shown:
        shown.begin(0)
        with Stopping() as asked:
            signal.raise_signal(signal.SIGTERM)
        assert asked.asked
        shown.end(0)
        with pytest.raises(KeyboardInterrupt):
            shown.begin(1)


def test_ten_tasks_do_not_hold_up_reports() -> None:
    """The hypervolume of 50 solutions of ten tasks takes seconds, and there may be a report twice a second."""
    from paretomtl.training.results.hypervolume import mean_hypervolume

    points = torch.rand(60, 10, generator=torch.Generator().manual_seed(0))
    assert mean_hypervolume(points, [1.1] * 10, 1) is None
    parts = [mean_hypervolume(points[i : i + 15], [1.1] * 10, 1) for i in (0, 15)]
    assert None not in parts
    assert mean_hypervolume(points[:30], [1.1] * 10, 2) == pytest.approx(sum(map(float, parts)) / 2)  # type: ignore[arg-type]
