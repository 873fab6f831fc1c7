from __future__ import annotations

import io
import math
from typing import Any

import pytest
import torch

import paretomtl as pm
from _helpers.networks import fit
from _helpers.reports import report
from paretomtl.training import Report
from paretomtl.training.progress import display as _display


def test_one_line_says_all() -> None:
    line = _display.describe(report())
    assert line == (
        "epoch 3/10, 0:06 gone, 0:14 left, hypervolume on training 1.25; losses on training 0: 1 2  1: 3 nan; frozen: 1"
    )
    val = _display.describe(report(val_losses=torch.ones(2, 2)))
    assert "hypervolume on validation 1.25; losses on validation 0: 1 1" in val
    assert _display.clock(3725) == "1:02:05"


def test_a_line_on_many_models_says_how_far_their_losses_go() -> None:
    losses = torch.rand(25, 2, dtype=torch.float64) + torch.tensor([0.0, 50.0])
    losses[3], losses[4], losses[5, 0] = torch.tensor([9.0, 99.0]), torch.tensor([-1.0, 5.0]), math.nan
    line = _display.describe(report(losses=losses, subproblems=list(range(25)), frozen=[5]))
    assert line.endswith("; losses on training of 25 models: a -1 to 9, b 5 to 99; frozen: 5")


def test_plain_lines_come_now_and_then(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    fit(progress="plain")
    assert capsys.readouterr().err == "", "short runs say nothing"
    monkeypatch.setattr(_display, "PLAIN_SECONDS", 0.0)
    fit(progress="plain")
    assert len(capsys.readouterr().err.splitlines()) == 4
    fit(progress="auto")
    assert len(capsys.readouterr().err.splitlines()) == 4, "not a terminal: plain lines"
    fit(progress="quiet")
    assert capsys.readouterr().err == ""


def test_a_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    from rich.console import Console

    page = io.StringIO()
    console = Console(file=page, force_terminal=True, width=60, color_system=None)
    monkeypatch.setattr(_display, "text_console", lambda **_: console)
    fit(progress="rich")
    text = page.getvalue()
    assert "epoch 4/4" in text
    assert "left" in text
    panel = Console(file=(still := io.StringIO()), width=50)
    many = report(subproblems=list(range(20)), losses=torch.ones(20, 2), frozen=[3])
    panel.print(_display.report_panel(many, 0.3, 6.0))
    assert "and 8 more" in still.getvalue()
    assert "3 frozen" in still.getvalue()
    assert "hypervolume on training 1.25" in still.getvalue()
    assert all(len(line) <= 50 for line in still.getvalue().splitlines())


def test_signs_of_life_inside_an_epoch(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    class Watch:
        def __init__(self) -> None:
            self.shares: list[float] = []
            self.closed = 0

        def __call__(self, report: Report) -> None:
            pass

        def tick(self, share: float, seconds: float) -> None:
            self.shares.append(share)

        def close(self) -> None:
            self.closed += 1

    monkeypatch.setattr("paretomtl.training.run.reporting._TICK_SECONDS", 0.0)
    watch = Watch()
    fit(callbacks=[watch])
    assert watch.shares == pytest.approx([n / 12 for n in range(1, 13)])
    assert watch.closed == 1
    monkeypatch.setattr(_display, "PLAIN_SECONDS", 0.0)
    plain = _display.PlainProgress()
    plain.tick(0.25, 30.0)
    assert capsys.readouterr().err == "25.0% done, 0:30 gone, 1:30 left\n"


def test_reports_of_several_seeds_have_a_row_for_every_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the first seed first; each is what a run of that seed alone reports."""
    monkeypatch.setattr("paretomtl.training.run.reporting._REPORT_SECONDS", 0.0)
    options: dict[str, Any] = {"epochs": 2, "device": "cpu", "strategy": "sequential", "progress": "quiet"}
    seen: list[Report] = []
    quadratic = pm.problems.quadratic()
    pm.fit_seeds(quadratic, "random-search", 2, seeds=[4, 7], callbacks=[seen.append], **options)
    alone: list[list[Report]] = [[], []]
    for seed, reports in zip((4, 7), alone, strict=True):
        pm.fit(quadratic, "random-search", 2, seed=seed, callbacks=[reports.append], **options)
    assert [each.epoch for each in seen] == [1, 2]
    for both, first, second in zip(seen, *alone, strict=True):
        assert (list(both.subproblems), list(both.seeds)) == ([0, 1, 0, 1], [4, 4, 7, 7])
        torch.testing.assert_close(both.losses, torch.cat([first.losses, second.losses]))
        torch.testing.assert_close(both.weights, torch.cat([first.weights, second.weights]))
        assert not first.seeds
        means = (first.losses + second.losses) / 2
        assert _display._mean_rows(both) == [(k, pytest.approx(row)) for k, row in enumerate(means.tolist())]
    assert "losses on training (means of 2 seeds) 0: " in _display.describe(seen[0])
    assert seen[0].numbers()["seeds"] == [4, 4, 7, 7]
    assert "seeds" not in alone[0][0].numbers()
