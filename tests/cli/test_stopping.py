"""How commands end that are stopped, find no room, or find somebody else at work."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

import paretomtl as pm
from cli.test_training_commands import call, here, run
from paretomtl._locks import Lock

__all__ = ["here"]

STOPS = """
import itertools, os, signal
import paretomtl as pm
from toys import losses, make, nn, x, y

calls = itertools.count(1)  # a number would be found to be counted, and refused

def stopping(outputs, targets):
    if next(calls) == int(os.environ.get("STOP_AT", "0")):
        os.kill(os.getpid(), getattr(signal, os.environ["STOP_BY"]))
    return losses(outputs, targets)

def stopped():
    return pm.Problem(make().model, stopping, ["sum", "product"], train=(x, y), name="stopped")

def busy():
    os.kill(os.getpid(), signal.SIGTERM)
"""


@pytest.mark.parametrize(("by", "code"), [("SIGTERM", 143), ("SIGINT", 130)])
@pytest.mark.parametrize("command", ["run", "compare"])
def test_signals_have_exit_codes_of_their_own(
    command: str, by: str, code: int, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "stops.py").write_text(STOPS)
    monkeypatch.delitem(sys.modules, "stops", raising=False)
    monkeypatch.setenv("STOP_BY", by)
    monkeypatch.setenv("STOP_AT", "60")
    arguments = [command, "stops:stopped", "--epochs", "20", "--strategy", "sequential", "--out", "r"]
    arguments += ["--progress", "quiet"] if command == "run" else ["--methods", "mgda,linear", "--seeds", "1"]
    handler = signal.getsignal(signal.SIGTERM)
    with pytest.warns(UserWarning, match="training was stopped after"):
        text = call(*arguments, code=code)
    assert signal.getsignal(signal.SIGTERM) is handler
    if command == "run":
        assert "Stopped early; --resume goes on" in text
        call(*arguments, "--resume")
        assert pm.Front.load(here / "r").complete
        assert '"state": "sound"' in call("doctor", "r", "--json")
    else:
        assert "Stopped." in text
        call(*arguments)
        assert len(json.loads((here / "r" / "compare.json").read_text())["rows"]) == 2


def test_sigterm_outside_of_training_ends_with_its_code(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "stops.py").write_text(STOPS)
    monkeypatch.delitem(sys.modules, "stops", raising=False)
    assert "Stopped." in call("run", "stops:busy", code=143)


def test_sigterm_ends_a_study_with_its_code(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def trained(*_: Any, **__: Any) -> Any:
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr("paretomtl.cli._reproduce.run_study", trained)
    assert "Stopped." in call("reproduce", "synthetic", "--smoke", code=143)


def test_a_front_that_could_not_be_stored_has_its_code(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("paretomtl.training._run.write_front", full)
    monkeypatch.setattr("paretomtl.front.write_front", full)
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
    assert (
        f"'out' must be a folder that nobody else writes. 'taken' is being written by process {os.getpid()} on" in text
    )
