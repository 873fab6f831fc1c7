"""``paretomtl refine RUN --gaps N``: new models in the gaps of a front, and one front of all."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

import paretomtl as pm
from paretomtl.cli._app import app

QUIET = ("--progress", "quiet", "--device", "cpu", "--strategy", "sequential")
TOY = """
import torch
import paretomtl as pm

class Mine(pm.Linear):
    pass

def fixed():
    return Mine(scale="first")
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "gap_methods.py").write_text(TOY)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "gap_methods", raising=False)
    return tmp_path


def call(*arguments: Any, code: int = 0) -> str:
    found = CliRunner().invoke(app, [str(word) for word in arguments], env={"COLUMNS": "200", "NO_COLOR": "1"})
    assert found.exit_code == code, found.output + repr(found.exception)
    return found.output


def run(*words: str, epochs: int = 60) -> pm.Front:
    call("run", "quadratic", "--epochs", epochs, "--learning-rate", "0.1", "--optimizer", "sgd", "--out", "first",
         *QUIET, *words)  # fmt: skip
    return pm.Front.load("first")


def refine(*words: Any, code: int = 0) -> dict[str, Any]:
    found = CliRunner().invoke(app, ["refine", *map(str, words), "--progress", "quiet", "--json"])
    assert found.exit_code == code, found.output + repr(found.exception)
    return dict(json.loads(found.stdout))


def test_gaps_are_filled_and_joined(here: Path) -> None:
    front = run("--method", "linear", "--preferences", "3")
    proposed = call("refine", "first", "--gaps", 2, "--propose")
    assert "Importances for the largest gaps of first, by its losses on training:" in proposed
    assert "between 0 and 1" in proposed
    assert not (here / "first-gaps").exists()
    facts = refine("first", "--gaps", 2)
    assert (facts["folder"], facts["subproblems"]) == ("first-gaps", [3, 4])
    new, joined = pm.Front.load("first-gaps"), pm.Front.load("first-gaps/joined")
    gaps = front.gaps(2)
    torch.testing.assert_close(new.preferences, gaps.preferences)
    assert joined.subproblems == (0, 1, 2, 3, 4)
    assert torch.equal(joined.losses["train"], torch.cat([front.losses["train"], new.losses["train"]]))
    for name, tensor in new.state_dict(4).items():
        assert torch.equal(joined.state_dict(4)[name], tensor)
    assert new.epochs == [30, 30], "half of those of the run"
    config = json.loads((here / "first-gaps" / "config.json").read_text())
    assert config["warm_start"].startswith("solutions [3, 4] of the front with weights")
    volumes = facts["joined"]["tight_hypervolume"]
    assert volumes["before"] > 0
    assert joined.hypervolume([3.0, 3.0]) > front.hypervolume([3.0, 3.0])
    assert volumes["joined"] == pytest.approx(joined.hypervolume(facts["joined"]["tight_reference"]))
    shown = call("show", "first-gaps/joined")
    assert "2 runs; " in shown
    assert "joined: not part of the run" in call("doctor", "first-gaps")


def test_the_text_says_what_was_gained(here: Path) -> None:
    run("--method", "linear", "--preferences", "3")
    text = call("refine", "first", "--gaps", 1, "--epochs", 5, "--out", "new", "--progress", "quiet")
    assert "Joined with the run: 4 models in new/joined." in text
    assert "paretomtl show new/joined" in text
    assert "before, " in text.split("Joined with")[1]
    assert pm.Front.load("new").epochs == [5]


def test_a_joined_front_is_filled_again(here: Path) -> None:
    run("--method", "linear", "--preferences", "3")
    refine("first", "--gaps", 1)
    facts = refine("first-gaps/joined", "--gaps", 2)
    assert facts["folder"] == "first-gaps-gaps"
    assert pm.Front.load("first-gaps-gaps/joined").subproblems == (0, 1, 2, 3, 4, 5)
    assert pm.Front.load("first-gaps-gaps").epochs == [30, 30], "half of the first run's, not a quarter"


def test_a_run_is_resumed_with_its_start(here: Path) -> None:
    run("--method", "linear", "--preferences", "3")
    facts = refine("first", "--gaps", 2, "--epochs", 4)
    again = refine("first", "--gaps", 2, "--epochs", 4, "--resume")
    assert again["losses"] == facts["losses"]
    assert again["joined"] == facts["joined"]
    refine("first", "--gaps", 2, "--epochs", 4, "--out", "other")
    longer = refine("first", "--gaps", 2, "--epochs", 8, "--resume")
    assert longer["epochs"] == [8, 8]


@pytest.mark.parametrize(
    ("words", "method", "by_row"),
    [
        (("--preferences", "4"), "linear", False),  # auto on a convex front
        (("--preferences", "reachable:4", "--method", "pareto-mtl", "--set", "epsilon=0.2"), "pareto-mtl", False),
        (("--preferences", "4", "--method", "p-norm", "--set", "p=3"), "p-norm", True),
        (("--preferences", "1", "--method", "auto"), None, False),
    ],
)
def test_gaps_of_fronts_after_a_probe(here: Path, words: tuple[str, ...], method: str | None, by_row: bool) -> None:
    front = run(*words)
    assert front.decisions
    if method is None:
        text = " ".join(call("refine", "first", "--gaps", 1, code=2).split())
        assert "'front' must have at least two models with different losses" in text
        return
    refine("first", "--gaps", 2)
    new, joined = pm.Front.load("first-gaps"), pm.Front.load("first-gaps/joined")
    reading = "importance" if method == "linear" else "direction"
    assert (new.method, new.reading, new.subproblems) == (method, reading, (4, 5))
    assert (joined.method, joined.decisions[: len(front.decisions)]) == (front.method, front.decisions)
    assert joined.subproblems == tuple(range(6))
    assert len(joined.preferences) == 6
    assert reading == "importance" or len(joined.in_region()) == 6
    if by_row:
        shares = new.measured["importances"] / new.measured["importances"].sum(-1, keepdim=True)
        torch.testing.assert_close(shares, front.gaps(2).importances[4:])
        assert not torch.equal(shares[0], shares[1])
    refine("first-gaps/joined", "--gaps", 1)
    assert pm.Front.load("first-gaps-gaps/joined").subproblems == tuple(range(7))


def test_factors_that_a_run_measured_are_kept(here: Path) -> None:
    """Factors measured on trained models would differ from those of the run. This holds for custom methods, too."""
    front = run("--method", "gap_methods:Mine", "--set", "scale=first", "--preferences", "3")
    assert front.scale is not None
    refine("first", "--gaps", 2, "--trust")
    new = pm.Front.load("first-gaps")
    assert new.scale is not None
    torch.testing.assert_close(new.scale, front.scale.mean(0).expand(2, 2))
    assert json.loads((here / "first-gaps" / "asked.json").read_text())["method"].endswith(":Mine")
    run("--method", "gap_methods:fixed", "--preferences", "3", "--out", "second")
    text = " ".join(call("refine", "second", "--gaps", 1, "--trust", code=2).split())
    assert "'RUN' must have a method that takes 'scale'" in text
    assert "which takes no options" in text


def test_what_cannot_be_filled_is_named(here: Path) -> None:
    run("--method", "linear", "--preferences", "3", epochs=5)
    for words, message in (
        ((), "one of '--around' and '--gaps' must be given. Got neither"),
        (("--gaps", 1, "--around", 0), "one of '--around' and '--gaps' must be given. Got --around and --gaps"),
        (("--gaps", 0), "'--gaps' must be at least 1. Got 0 instead"),
        (("--gaps", 1, "--count", 3), "'--count' must go with '--around'. Got 3 with '--gaps'"),
        (("--gaps", 1, "--angle", 3), "'--angle' must go with '--around'"),
    ):
        assert message in " ".join(call("refine", "first", *words, code=2).split())
    call("run", "quadratic", "--method", "mgda", "--epochs", 2, "--out", "starts", *QUIET)
    assert "Those of 'mgda' are starts" in call("refine", "starts", "--gaps", 1, code=2)
    front = pm.Front.from_losses(
        [[0.0, 1.0], [1.0, 0.0]], tasks=["f1", "f2"], preferences=[[0.5, 0.5], [0.4, 0.6]], reading="importance"
    )
    front.save("flat")
    text = call("refine", "flat", "--gaps", 3)
    assert "None of 3 gaps are worth a model." in text
    assert "Nothing to train." in text
    assert refine("flat", "--gaps", 3)["gaps"] == []
    assert not (here / "flat-gaps").exists()


def test_a_model_that_is_beaten_at_its_own_weights_is_named(here: Path) -> None:
    pm.Front.from_losses(
        [[0.0, 1.0], [1.0, 0.0]], tasks=["f1", "f2"], preferences=[[0.5, 0.5], [0.8, 0.2]], reading="importance"
    ).save("beaten")
    text = " ".join(call("refine", "beaten", "--gaps", 1, "--propose").split())
    assert "0.6500 0.3500 between 0 and 1, 1.41 of the range apart" in text
    assert "Model 1 is beaten at its own weights by model 0:" in text
