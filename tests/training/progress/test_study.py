"""Progress of many runs: the estimate by a clock that the test moves, and what is shown."""

from __future__ import annotations

import io
import signal

import pytest
from rich.console import Console

import paretomtl as pm
from _helpers.clock import Clock
from _helpers.reports import report
from paretomtl._support.signals import Stopping
from paretomtl.training.progress import study as _study_progress
from paretomtl.training.progress.study import StudyProgress
from paretomtl.training.progress.study_listeners import quiet_elsewhere
from paretomtl.training.progress.time_left import Tally


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
