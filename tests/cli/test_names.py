"""Names that users give are printed as they are, whatever rich would make of them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import paretomtl as pm
from paretomtl.cli._app import app
from paretomtl.cli._lookup import find_problem
from paretomtl.training import Report
from paretomtl.training.progress.display import RichProgress, report_panel

HOSTILE = ["[red]x[/]", "[/]", "[bold", ":smile:", r"\[a]", "[link=a]b[/link]"]

PROBLEM = """
import torch
import paretomtl as pm

x = torch.randn(40, 3, generator=torch.Generator().manual_seed(0))

def made(first, second):
    return pm.Problem(
        lambda: torch.nn.Linear(3, 2), lambda o, t: (o - t).square().mean(0), [first, second],
        train=(x[:30], x[:30, :2]), val=(x[30:], x[30:, 1:]), name=f"of {first}",
        metrics={f"worst {second}": pm.Metric(lambda o, t: (o - t).abs().max(), "lower")},
    )

problem = made(FIRST, SECOND)
"""


@pytest.fixture(params=[(0, 1), (2, 3), (4, 5)])
def names(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    found = [HOSTILE[i] for i in request.param]
    (tmp_path / "hostile.py").write_text(PROBLEM.replace("FIRST", repr(found[0])).replace("SECOND", repr(found[1])))
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "hostile", raising=False)
    monkeypatch.setenv("COLUMNS", "200")
    return found


def call(*arguments: str, code: int = 0) -> str:
    found = CliRunner().invoke(app, list(arguments), env={"NO_COLOR": "1"})
    assert found.exit_code == code, found.output + repr(found.exception)
    return found.output


def test_every_command_prints_names_as_they_are(names: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    folder = f"run {names[0].replace('/', '')}"
    options = ("--epochs", "2", "--device", "cpu", "--strategy", "sequential")
    trained = call("run", "hostile:problem", *options, "--preferences", "3", "--out", folder, "--progress", "quiet")
    shown = call("show", folder)
    chosen = call("select", folder, "--importance", "1,1")
    bounded = call("select", folder, "--at-most", f"{names[0]}=1e-9", "--best", names[1], code=3)
    compared = call(
        "compare", "hostile:problem", *options, "--seeds", "1", "--methods", "linear,mgda", "--out", folder + "2"
    )
    diagnosed = call("diagnose", "hostile:problem", "--epochs", "2", "--seeds", "1", "--device", "cpu")
    for text in (trained, shown, chosen, compared, diagnosed):
        assert names[0] in text
        assert names[1] in text
    assert folder in trained
    assert names[0] in bounded
    assert f"of {names[0]}" in shown
    monkeypatch.setattr("paretomtl.cli._interview.at_terminal", lambda: True)
    asked = CliRunner().invoke(app, ["select", folder], input="1\n" * 20)
    assert asked.exit_code == 0, asked.output
    assert f"{names[0]} loss" in asked.output


def test_errors_print_names_as_they_are(names: list[str]) -> None:
    for name in names:
        assert f"Got '{name}'" in call("show", name, code=2)
        assert repr(name) in call("run", name, code=2)


def test_the_bar_prints_names_as_they_are(names: list[str]) -> None:
    reports: list[Report] = []
    problem = find_problem("hostile:problem")
    pm.fit(problem, epochs=1, preferences=2, device="cpu", progress="quiet", callbacks=[reports.append])
    console = RichProgress()._live.console
    with console.capture() as captured:
        console.print(report_panel(reports[0], 0.5, 1.0))
    assert names[0] in captured.get()
    assert names[1] in captured.get()
