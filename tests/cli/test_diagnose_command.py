from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from paretomtl.cli._app import app

PROBLEMS = """
import dataclasses

import torch

import paretomtl as pm

plain = pm.problems.quadratic()

def make():
    # No loss is less than 1, and the second one is in other units.
    units = torch.tensor([1.0, 1000.0])
    return dataclasses.replace(plain, losses=lambda x: (plain.losses(x) + 1.0) * units, truth=None, name="toy")

def agree():
    return dataclasses.replace(plain, losses=lambda x: plain.losses(x)[..., :1].repeat(2), truth=None, name="agree")
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with problems of one's own."""
    (tmp_path / "diagnosed.py").write_text(PROBLEMS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "diagnosed", raising=False)
    return tmp_path


def call(*arguments: str, code: int = 0) -> str:
    found = CliRunner().invoke(app, list(arguments), env={"COLUMNS": "80", "NO_COLOR": "1"})
    assert found.exit_code == code, found.output + repr(found.exception)
    return found.output if code else found.stdout  # progress of slow machines is on standard error


@pytest.mark.study
@pytest.mark.parametrize(
    ("problem", "optimizer", "rate"), [("quadratic", "sgd", "0.05"), ("diagnosed:make", "adam", "0.02")]
)
def test_diagnose_prints_a_command_that_works(here: Path, problem: str, optimizer: str, rate: str) -> None:
    """The run trains the proposed preferences, in the proposed units, and all of them are met."""
    settings = ["--optimizer", optimizer, "--learning-rate", rate]
    text = call("diagnose", problem, "--epochs", "300", "--device", "cpu", *settings)
    assert "Verdict: front." in text
    *lines, command = text.splitlines()
    assert max(map(len, lines)) <= 80
    name, *words = shlex.split(command.removeprefix("Next: "))
    assert (name, words[:5]) == ("paretomtl", ["run", problem, "--method", "pareto-mtl", "--preferences"])
    wanted = [[float(part) for part in row.split(",")] for row in words[5].split(":")]
    assert len(wanted) == 5
    assert words[-6:] == [*settings, "--epochs", "300"]
    scale = words[6:-6]
    assert (scale == []) == (problem == "quadratic")
    if scale:
        assert scale[0] == "--set"
        assert float(scale[1].removeprefix("scale=1,")) == pytest.approx(1e-3, rel=0.1)
    call(*words, "--out", "next", "--progress", "quiet", "--device", "cpu")
    facts = json.loads(call("show", "next", "--json"))
    assert facts["preferences"] == [pytest.approx(row, abs=2e-3) for row in wanted]
    assert facts["reading"] == "direction"
    assert "infeasible" not in facts["status"]


@pytest.mark.study
def test_diagnose_prints_what_to_run_where_it_cannot_tell(here: Path) -> None:
    settings = ["--optimizer", "sgd", "--learning-rate", "0.05", "--device", "cpu"]
    text = call("diagnose", "quadratic", "--epochs", "300", "--seeds", "1", *settings)
    assert "Verdict: cannot-tell-yet. One seed cannot tell" in text
    words = shlex.split(text.splitlines()[-1].removeprefix("Next: paretomtl "))
    assert words == ["diagnose", "quadratic", "--seeds", "3", "--epochs", "300", *settings]
    assert "Verdict: front." in call(*words)


def test_diagnose_prints_no_command_without_a_front(here: Path) -> None:
    text = call("diagnose", "diagnosed:agree", "--epochs", "300", "--learning-rate", "0.02", "--device", "cpu")
    assert "Verdict: one-model." in text
    assert "Next:" not in text


def test_diagnose_prints_json_and_nothing_else(here: Path) -> None:
    arguments = ["diagnose", "multi-digits", "--epochs", "1", "--seeds", "2", "--strategy", "batched", "--json"]
    found = CliRunner().invoke(app, arguments, env={"COLUMNS": "80", "NO_COLOR": "1"})
    facts = json.loads(found.stdout)
    assert facts["split"] == "val"
    assert facts["tasks"] == ["top-left", "bottom-right"]
    assert len(facts["joint"]) == 2
    assert facts["verdict"] == "cannot-tell-yet", "two seeds and one epoch"
    assert {gap["verdict"] for gap in facts["gaps"]} <= {"worse", "better", "as good", "open"}
    assert facts["again"]["seeds"] >= 3


@pytest.mark.parametrize(
    "arguments",
    [["quadratic", "--epochs", "0"], ["quadratic", "--seeds", "0"], ["quadratic", "--split", "val"], ["nothing"]],
    ids=" ".join,
)
def test_diagnose_refuses_bad_input_in_one_line(here: Path, arguments: list[str]) -> None:
    text = call("diagnose", *arguments, code=2)
    assert text.startswith("Error: '")
    assert len(text.strip().splitlines()) == 1


@pytest.mark.parametrize("text", ["some", "1,2:", "1,0:1", "1:2,3", ":", "1,x:2,3", "1.5"])
def test_preferences_that_are_none(here: Path, text: str) -> None:
    said = " ".join(call("run", "quadratic", "--preferences", text, "--epochs", "2", code=2).split())
    assert "'--preferences' must be a whole number, vectors" in said or "'preferences" in said
    assert not (here / "runs").exists()


@pytest.mark.parametrize("text", ["1,0,0:0,1,0", "0,0:1,1", "1,1:2,2", "-1,1:1,1", "nan,1:1,1", "0"])
def test_preferences_that_no_problem_takes(here: Path, text: str) -> None:
    given = ("--method", "pareto-mtl", f"--preferences={text}")  # linear scalarization takes equal rows
    said = call("run", "quadratic", *given, "--epochs", "2", "--device", "cpu", code=2)
    assert said.startswith("Error: '")
    assert "preferences" in said


def test_losses_are_scaled_for_a_diagnosis_and_a_comparison(here: Path) -> None:
    def run(command: str) -> Any:
        return CliRunner().invoke(app, shlex.split(command))

    found = run("diagnose diagnosed:make --epochs 20 --seeds 2 --set scale=auto --device cpu --json")
    assert found.exit_code == 0, found.output
    factors = json.loads(found.stdout)["scaled_by"]
    assert factors[0] > 100 * factors[1]
    options = "--methods pareto-mtl,mgda --seeds 1 --epochs 2 --preferences 2 --device cpu"
    found = run(f"compare diagnosed:make {options} --set scale=auto --set epsilon=0.2")
    assert found.exit_code == 0, found.output
    assert "epsilon is not an option of mgda" in found.stderr
    assert "differ by a factor" not in found.stderr
    for command in ("diagnose diagnosed:make", f"compare diagnosed:make {options}"):
        refused = run(f"{command} --set mu=3")
        assert refused.exit_code == 2
        assert "'--set' must be NAME=VALUE with NAME one of" in refused.stderr
