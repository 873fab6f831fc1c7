"""The options of ``paretomtl run``: the same as those of fit, and stored for later commands."""

import inspect
import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from paretomtl.cli._app import app
from paretomtl.cli._run_options import RunOptions
from paretomtl.cli.commands.compare import compare
from paretomtl.cli.commands.diagnose import diagnose
from paretomtl.cli.commands.run import run
from paretomtl.runs.options import OPTIONS, write_options
from paretomtl.training.options import DEFAULTS, STORED, TrainingOptions

ASKED = RunOptions("synthetic", ["dimension=3"], "pareto-mtl", [], None, 0.1, None, TrainingOptions(epochs=3))
PYTHON_ONLY = {"scheduler", "schedule", "distributed", "executor", "callbacks"}
TOY = """
import os, signal
import torch
import paretomtl as pm

class Toy(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.x = torch.nn.Parameter(torch.zeros(2))

    def forward(self, batch):
        return self.x - batch

def losses(model, batch):
    out = model(batch)
    if os.environ.get("TOY_END") and float(batch.min()) < 0:
        end(os.environ["TOY_END"])
    return torch.stack([(out - 1).square().mean(), (out + 1).square().mean()])

def end(how):
    if how == "kill" and os.path.exists("run/config.json"):
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "raise" and os.path.exists("run/config.json"):
        raise RuntimeError("the first epoch fails")

train = torch.ones(64, 2)
train[40] = -1.0
problem = pm.Problem(Toy, losses, ["a", "b"], train=train)
"""


def command_defaults(command: Any) -> dict[str, Any]:
    return {name: each.default for name, each in inspect.signature(command).parameters.items()}


def test_run_has_the_options_of_fit_with_their_defaults() -> None:
    seen = command_defaults(run)
    assert {name: seen[name] for name in DEFAULTS if name in seen} == {
        name: value for name, value in DEFAULTS.items() if name not in PYTHON_ONLY
    }


@pytest.mark.parametrize("command", [compare, diagnose])
def test_other_commands_have_the_same_defaults(command: Any) -> None:
    seen = command_defaults(command)
    common = [name for name in DEFAULTS if name in seen]
    assert {"epochs", "strategy", "precision"} <= set(common)
    assert {name: seen[name] for name in common} == {name: DEFAULTS[name] for name in common}


def test_options_are_read_as_they_were_stored(tmp_path: Path) -> None:
    write_options(tmp_path, ASKED.stored())
    assert RunOptions.load(tmp_path) == ASKED
    assert set(STORED) - set(json.loads((tmp_path / OPTIONS).read_text())) == {
        "patience",
        "branch",
        "average",
        "minutes",
    }


def test_names_in_the_file_stay(tmp_path: Path) -> None:
    names = "problem with_ method set_ epochs batch_size optimizer learning_rate weight_decay seed strategy device "
    names += "precision weigh_every workers clip_norm compile keep accumulate patience branch average minutes"
    assert set(ASKED.stored()) == set(names.split())


def test_a_file_without_later_options_is_read(tmp_path: Path) -> None:
    stored = {
        name: value
        for name, value in ASKED.stored().items()
        if name not in ("accumulate", "patience", "branch", "average", "minutes")
    }
    (tmp_path / OPTIONS).write_text(json.dumps(stored))
    assert RunOptions.load(tmp_path) == ASKED


def test_objects_of_python_are_not_stored() -> None:
    training = replace(ASKED.training, preferences=7, resume=True, out="somewhere")
    assert replace(ASKED, training=training).stored() == ASKED.stored()


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "toy.py").write_text(TOY)
    return tmp_path


COMMAND = ["run", "toy.py:problem", "--epochs", "2", "--batch-size", "8", "--preferences", "2", "--seed", "3"]
COMMAND += ["--strategy", "sequential", "--device", "cpu", "--progress", "quiet", "--out", "run"]


def test_a_run_that_fails_in_its_first_epoch_says_what_it_was(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOY_END", "raise")
    assert CliRunner().invoke(app, COMMAND).exit_code != 0
    assert json.loads((here / "run" / OPTIONS).read_text())["seed"] == 3
    assert CliRunner().invoke(app, ["doctor", "run"]).exit_code == 0
    monkeypatch.delenv("TOY_END")
    result = CliRunner().invoke(app, [*COMMAND, "--resume"])
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize("wrong", [["--preferences", "x"], ["--method", "toy.py:losses"], ["--precision", "half"]])
def test_a_run_that_is_refused_leaves_no_file(here: Path, wrong: list[str]) -> None:
    assert CliRunner().invoke(app, [*COMMAND, *wrong]).exit_code == 2
    assert not list((here).glob("run/*"))


def test_a_resumption_that_is_refused_changes_nothing(here: Path) -> None:
    assert CliRunner().invoke(app, COMMAND).exit_code == 0
    before = (here / "run" / OPTIONS).read_bytes()
    (here / "run" / OPTIONS).unlink()
    assert CliRunner().invoke(app, [*COMMAND, "--resume", "--seed", "4"]).exit_code == 2
    assert not (here / "run" / OPTIONS).exists()
    assert CliRunner().invoke(app, [*COMMAND, "--resume"]).exit_code == 0
    assert (here / "run" / OPTIONS).read_bytes() == before


@pytest.mark.system
def test_a_run_that_is_killed_in_its_first_epoch_says_what_it_was(here: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    call = [sys.executable, "-m", "paretomtl", *COMMAND]
    killed = subprocess.run(call, env={**environment, "TOY_END": "kill"}, capture_output=True, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert "epoch" not in [json.loads(line)["event"] for line in (here / "run" / "log.jsonl").read_text().splitlines()]
    asked = RunOptions.load(here / "run")
    assert (asked.training.seed, asked.training.epochs) == (3, 2)
    assert CliRunner().invoke(app, ["doctor", "run"]).exit_code == 0
    assert CliRunner().invoke(app, [*COMMAND, "--resume"]).exit_code == 0
