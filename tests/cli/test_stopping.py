"""How commands end that are stopped, find no room, or find somebody else at work."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import paretomtl as pm
from cli.test_training_commands import call, here, run
from paretomtl._support.files.locks import Lock
from paretomtl.cli._app import app
from paretomtl.cli._resume_command import resume_command

__all__ = ["here"]

STOPS = """
import itertools, os, signal
import paretomtl as pm
from toys import losses, make, nn, x, y

calls = itertools.count(1)  # a number would be found to be counted, and refused

def stopping(outputs, targets):
    if next(calls) == int(os.environ.get("STOP_AT", "0")):
        if os.environ["STOP_BY"] == "ERROR":
            1 / 0
        os.kill(os.getpid(), getattr(signal, os.environ["STOP_BY"]))
    return losses(outputs, targets)

def stopped():
    return pm.Problem(make().model, stopping, ["sum", "product"], train=(x, y), name="stopped")

def busy():
    os.kill(os.getpid(), signal.SIGTERM)
"""


@pytest.fixture
def stops(here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a problem that is stopped at one of its first evaluations."""
    (here / "stops.py").write_text(STOPS)
    monkeypatch.delitem(sys.modules, "stops", raising=False)
    monkeypatch.setenv("STOP_BY", "SIGINT")
    monkeypatch.setenv("STOP_AT", "60")
    return here


def printed_command(text: str, words: str) -> list[str]:
    """The arguments of the command that is printed after some words."""
    line = next(line for line in text.splitlines() if words in line)
    name, *arguments = shlex.split(line.partition(f"{words}: ")[2])
    assert name == "paretomtl"
    return arguments


@pytest.mark.parametrize(("by", "code"), [("SIGTERM", 143), ("SIGINT", 130)])
def test_a_run_that_is_stopped_prints_what_goes_on(
    by: str, code: int, stops: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STOP_BY", by)
    arguments = ["run", "stops:stopped", "--epochs", "20", "--strategy", "sequential", "--out", "a b"]
    arguments += ["--progress", "quiet"]
    handler = signal.getsignal(signal.SIGTERM)
    with pytest.warns(UserWarning, match="training was stopped after .* The last checkpoint is in 'a b'"):
        text = call(*arguments, code=code)
    assert signal.getsignal(signal.SIGTERM) is handler
    assert "Stopped early." in text
    again = shlex.split(next(line for line in text.splitlines() if "--resume" in line), comments=True)[1:]
    assert again == [*arguments, "--resume"]
    call(*again)
    assert pm.Front.load(stops / "a b").complete
    assert '"state": "ok"' in call("doctor", "a b", "--json")


@pytest.mark.parametrize(("by", "code"), [("SIGTERM", 143), ("SIGINT", 130)])
def test_a_comparison_that_is_stopped_prints_what_goes_on(
    by: str, code: int, stops: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STOP_BY", by)
    monkeypatch.setenv("STOP_AT", "25")
    arguments = ["compare", "stops:stopped", "--epochs", "2", "--strategy", "sequential", "--preferences", "2"]
    arguments += ["--methods", "mgda,linear", "--seeds", "2"]
    text = call(*arguments, "--out", "r", code=code)
    stored = len(json.loads((stops / "r" / "compare.json").read_text())["rows"])
    assert 0 < stored < 4
    assert f"Stopped.\n{stored} of 4 runs {'is' if stored == 1 else 'are'} stored in 'r/compare.json'." in text
    again = printed_command(text, "Go on with")
    assert again == [*arguments, "--out", "r"]
    assert "Results go to r/compare.json." in call(*again)
    assert len(json.loads((stops / "r" / "compare.json").read_text())["rows"]) == 4


def test_a_comparison_without_a_folder_says_how_to_keep_it(stops: Path) -> None:
    arguments = ["compare", "stops:stopped", "--epochs", "2", "--methods", "mgda", "--seeds", "2"]
    text = call(*arguments, code=130)
    assert "Results are not stored: --out FOLDER keeps every run." in text
    assert "of 2 runs was done, and nothing is stored: 'folder' (--out) keeps each run as it ends." in text
    assert printed_command(text, "To keep runs next time") == [*arguments, "--out", "FOLDER"]


def test_a_diagnosis_that_is_stopped_says_that_nothing_is_kept(stops: Path) -> None:
    text = call("diagnose", "stops:stopped", "--epochs", "20", "--seeds", "1", code=130)
    assert "Stopped.\nA diagnosis stores nothing: it starts over." in text


def test_an_error_in_the_users_code_keeps_the_command_that_goes_on(
    stops: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STOP_BY", "ERROR")
    arguments = ["run", "stops:stopped", "--epochs", "20", "--strategy", "sequential", "--progress", "quiet"]
    found = CliRunner().invoke(app, arguments)
    assert isinstance(found.exception, ZeroDivisionError)
    step, kept, command = found.exception.__notes__
    assert re.match(r"This came from step \d+ of epoch \d+. Its tensors: ", step)
    assert kept.startswith("The last checkpoint, after ")
    assert "of 20 epochs, is in 'runs/stopped-auto-0'" in kept
    assert shlex.split(command.removeprefix("Go on with: paretomtl ")) == [*arguments, "--resume"]


def test_the_command_of_several_processes_names_torchrun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paretomtl.cli._resume_command._arguments", ["run", "a b", "--resume"])
    assert resume_command() == "paretomtl run 'a b' --resume"
    monkeypatch.setattr("paretomtl.cli._resume_command.is_torchrun", lambda: True)
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    for world, options in (("2", "--nproc-per-node 2"), ("4", "...")):
        monkeypatch.setenv("WORLD_SIZE", world)
        assert resume_command() == f"torchrun {options} -m paretomtl run 'a b' --resume"


def test_a_method_that_fails_does_not_cost_the_others(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any, **__: Any) -> Any:
        raise RuntimeError("no room\nat all")

    monkeypatch.setattr(pm.MGDA, "init", fails)
    arguments = ["compare", "toys:make", "--epochs", "1", "--methods", "mgda,linear", "--preferences", "1"]
    arguments += ["--strategy", "sequential", "--seeds", "2"]
    found = CliRunner().invoke(app, [*arguments, "--out", "r", "--json"])
    assert found.exit_code == 6, found.output
    facts = json.loads(found.stdout)
    assert [each["method"] for each in facts["methods"]] == ["linear"]
    (wrong,) = facts["failed"]
    assert (wrong["method"], wrong["seed"]) == ("mgda", 0)
    assert wrong["error"].startswith("RuntimeError: no room at all (test_stopping.py, line")
    assert found.stderr.count("mgda, seed 0 failed: RuntimeError: no room at all") == 2, "at once, and at the end"
    monkeypatch.undo()
    monkeypatch.chdir(here)
    again = CliRunner().invoke(app, printed_command(found.stderr, "To try them again"))
    assert len(json.loads(again.stdout)["methods"]) == 2


def test_sigterm_outside_of_training_ends_with_its_code(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "stops.py").write_text(STOPS)
    monkeypatch.delitem(sys.modules, "stops", raising=False)
    assert "Stopped." in call("run", "stops:busy", code=143)


def test_sigterm_ends_a_study_with_its_code(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def trained(*_: Any, **__: Any) -> Any:
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr("paretomtl.paper.runner.train_cell", trained)
    text = call("reproduce", "weights", "--smoke", "--out", "r", code=143)
    assert "Stopped.\nNone of 4 cells was done, so nothing is stored yet: each goes to 'r/weights.json'" in text
    assert printed_command(text, "Go on with") == ["reproduce", "weights", "--smoke", "--out", "r"]


def test_a_front_that_could_not_be_stored_has_its_code(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("paretomtl.runs.folder.write_front", full)
    monkeypatch.setattr("paretomtl.front._front.write_front", full)
    with pytest.warns(UserWarning, match="the front cannot be stored in 'full/front'.*Nor can it be stored elsewhere"):
        text = run("--out", "full", code=5)
    assert "Not stored in full: a warning above says why" in text
    monkeypatch.undo()
    monkeypatch.chdir(here)
    assert "Stored in full" in run("--out", "full", "--resume")


def test_a_run_that_is_being_written_is_named(here: Path) -> None:
    (here / "taken").mkdir()
    lock = Lock(here / "taken" / ".lock")
    assert lock.take() is None
    try:
        text = run("--out", "taken", code=2)
    finally:
        lock.release()
    assert f"'out' is locked by process {os.getpid()} on" in text
