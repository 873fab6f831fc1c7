from __future__ import annotations

import dataclasses
import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

import paretomtl as pm
from paretomtl._support.files.atomic_files import write_record
from paretomtl.cli._app import app
from paretomtl.diagnosis import Proposal

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

def chance():
    # A large network learns noise of few samples by heart: on others, each seed guesses in its own way.
    g = torch.Generator().manual_seed(0)
    x, y = torch.randn(24, 8, generator=g), torch.randn(24, 2, generator=g)
    model = lambda: torch.nn.Sequential(torch.nn.Linear(8, 64), torch.nn.Tanh(), torch.nn.Linear(64, 2))
    return pm.Problem(model, lambda o, y: (o - y).square().mean(0), ["a", "b"], train=(x[:20], y[:20]),
                      val=(x[20:], y[20:]), recipe=pm.Recipe(epochs=30, batch_size=20), name="chance")
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


def next_command(text: str) -> list[str]:
    """The arguments of the first command at the end."""
    return next_commands(text)[0]


def next_commands(text: str) -> list[list[str]]:
    """The same of all of them."""
    lines = [line for line in text.partition("\nNext:\n")[2].splitlines() if line.startswith("  paretomtl ")]
    return [shlex.split(line, comments=True)[1:] for line in lines]


def store(name: str = "quadratic", **changes: Any) -> Proposal:
    """Store a proposal as diagnose does."""
    fields = {"problem": name, "tasks": ("f1", "f2"), "method": "pareto-mtl", "scale": None}
    proposal = Proposal(**{**fields, "preferences": ((1.0, 0.2), (0.2, 1.0)), **changes})
    proposal.save(f"runs/{name}-proposal.json")
    return proposal


RUN = ["run", "quadratic", "--epochs", "3", "--device", "cpu", "--out", "next", "--progress", "quiet"]


@pytest.mark.parametrize("name", ["quadratic", "runs/quadratic-proposal.json"])
def test_a_proposal_is_taken_by_its_name_or_file(here: Path, name: str) -> None:
    store(scale=(1.0, 0.5))
    facts = json.loads(call(*RUN, "--proposal", name, "--json"))
    assert facts["method"] == "pareto-mtl"
    assert facts["preferences"] == [
        pytest.approx([0.9806, 0.1961], abs=1e-3),
        pytest.approx([0.1961, 0.9806], abs=1e-3),
    ]
    asked = json.loads((here / "next" / "asked.json").read_text())
    assert asked["method"] == "pareto-mtl"
    assert asked["set_"] == ["scale=1,0.5"]
    again = call(*RUN, "--proposal", name, "--resume", "--json")
    assert json.loads(again)["preferences"] == facts["preferences"]


def test_a_proposal_of_a_number_of_models(here: Path) -> None:
    store(method="auto", preferences=4)
    facts = json.loads(call(*RUN, "--proposal", "quadratic", "--json"))
    assert (facts["method"], len(facts["preferences"])) == ("auto", 4)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--proposal", "quadrati"], "Got 'quadrati': 'runs/quadrati-proposal.json' does not exist. Did you mean"),
        (["--proposal", "quadratic", "--method", "mgda"], "'--method' must not be given with '--proposal'"),
        (["--proposal", "quadratic", "--preferences", "3"], "'--preferences' must not be given with '--proposal'"),
        (["--proposal", "quadratic", "--set", "scale=auto"], "'--set scale' must not be given with '--proposal'"),
        (["--proposal", "broken.json"], "'broken.json' must be a JSON file. It is damaged"),
        (["--proposal", "three"], "'--proposal' must be of the problem 'quadratic'"),
    ],
)
def test_proposals_that_cannot_be_taken(here: Path, words: list[str], message: str) -> None:
    store()
    store("three", tasks=("a", "b", "c"), preferences=((1.0, 0.0, 0.0), (0.0, 1.0, 0.0)))
    (here / "broken.json").write_text("{")
    said = call(*RUN, *words, code=2)
    assert message in " ".join(said.split())
    assert not (here / "next" / "config.json").exists()


@pytest.mark.parametrize(
    "changes",
    [
        {"method": "evil.py:method"},
        {"method": "torchjd:UPGrad"},
        {"preferences": 0},
        {"preferences": True},
        {"preferences": [[1.0]]},
        {"preferences": [[1.0, -1.0]]},
        {"preferences": []},
        {"scale": [1.0]},
        {"tasks": []},
        {"problem": 3},
        {"more": 1},
    ],
)
def test_a_file_that_holds_no_proposal_is_refused(here: Path, changes: dict[str, Any]) -> None:
    """Above all one that names code."""
    write_record(here / "a.json", {**vars(store()), **changes}, format=1)
    with pytest.raises(ValueError, match=r"'a.json' must hold the proposal of a diagnosis. (Got|It is damaged)"):
        Proposal.load("a.json")


def test_a_folder_that_cannot_be_written_loses_no_diagnosis(here: Path) -> None:
    (here / "runs").write_text("a file, not a folder")
    found = CliRunner().invoke(app, ["diagnose", "quadratic", "--epochs", "300", "--device", "cpu"])
    assert found.exit_code == 0
    assert "The proposal is not stored in 'runs/quadratic-proposal.json'" in found.stderr
    _, words = next_commands(found.stdout)
    assert words[:5] == ["run", "quadratic", "--method", "pareto-mtl", "--preferences"], "spelled out instead"
    refused = call("diagnose", "quadratic", "--out", "runs/x.json", code=2)
    assert "'--out' must be in a folder that can be written" in refused


def test_the_proposal_and_the_figure_go_where_they_are_asked_for(here: Path) -> None:
    out = ["--out", "a/b.json", "--plot", "a/b.svg"]
    text = call("diagnose", "quadratic", "--epochs", "300", "--device", "cpu", *out)
    assert [words[:4] for words in next_commands(text)] == [
        ["run", "quadratic", "--epochs", "300"],
        ["run", "quadratic", "--proposal", "a/b.json"],
    ]
    assert Proposal.load("a/b.json").problem == "quadratic"
    assert "\nFigure: a/b.svg\n" in text
    assert "# train a front of 5 models\n" in text
    assert "# train 5 models along the proposed preferences\n" in text
    assert (here / "a" / "b.svg").stat().st_size > 5000


@pytest.mark.study
@pytest.mark.parametrize(
    ("problem", "optimizer", "rate"), [("quadratic", "sgd", "0.05"), ("diagnosed:make", "adam", "0.02")]
)
def test_diagnose_prints_a_command_that_works(here: Path, problem: str, optimizer: str, rate: str) -> None:
    """The run trains the proposed preferences, in the proposed units, and all of them are met."""
    settings = ["--optimizer", optimizer, "--learning-rate", rate]
    text = call("diagnose", problem, "--epochs", "300", "--device", "cpu", *settings)
    assert "Verdict: front." in text
    stored = "toy" if problem.startswith("diagnosed") else problem
    plain, words = next_commands(text)
    assert plain == ["run", problem, *settings, "--epochs", "300"]
    assert words == ["run", problem, "--proposal", stored, *settings, "--epochs", "300"]
    proposal = Proposal.load(f"runs/{stored}-proposal.json")
    assert proposal.method == "pareto-mtl"
    wanted = proposal.preferences
    assert isinstance(wanted, tuple)
    assert len(wanted) == 5
    assert (proposal.scale is None) == (problem == "quadratic")
    if proposal.scale is not None:
        assert proposal.scale == (1.0, pytest.approx(1e-3, rel=0.1))
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
    words = next_command(text)
    assert words == ["diagnose", "quadratic", "--seeds", "3", "--epochs", "300", *settings]
    assert "Verdict: front." in call(*words)


def test_a_front_is_the_next_step_where_no_number_of_seeds_would_tell(here: Path) -> None:
    text = call("diagnose", "diagnosed:chance", "--epochs", "30", "--device", "cpu", "--learning-rate", "0.1")
    assert "Verdict: cannot-tell-yet" in text
    words = next_command(text)
    assert words == ["run", "diagnosed:chance", "--learning-rate", "0.1"]
    call(*words, "--out", "few", "--progress", "quiet")
    assert json.loads(call("show", "few", "--json"))["status"] == ["trained"] * 5


@pytest.mark.parametrize(("ratio", "first"), [(1.3, "run"), (1.0, "diagnose")])
def test_models_come_first_where_joint_training_is_worse(
    ratio: float, first: str, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether gradients conflict is open in both cases, and a second diagnosis is said to take three times as long."""
    measured = pm.diagnose(pm.problems.quadratic(), epochs=3, seeds=3, device="cpu")
    by_seed = torch.tensor([-0.9, 0.9, -0.2]).double()[:, None, None, None].expand(3, 3, 2, 2)
    joint = ratio + 1e-4 * torch.arange(3.0).double()[:, None].expand(3, 2)
    changed = {"joint": joint, "alone": joint - ratio + 1, "cosines_by_seed": by_seed, "cosines": by_seed.mean(0)}
    scales = dict.fromkeys(("first", "last", "norms", "learnt"), torch.ones(2).double())
    drawn = dataclasses.replace(measured, **changed, **scales, ends=None, planned=9, seconds=30.0)
    monkeypatch.setattr("paretomtl.diagnosis.diagnose", lambda *_, **__: drawn)
    text = call("diagnose", "quadratic")
    assert "Verdict: cannot-tell-yet" in text
    words = next_commands(text)
    assert [each[0] for each in words] == [first, *({"run", "diagnose"} - {first})]
    assert "# diagnose again, in about 90 s" in text


def drawn(monkeypatch: pytest.MonkeyPatch, **changes: Any) -> None:
    """Let the command find this in place of a diagnosis that takes time."""
    measured = pm.diagnose(pm.problems.quadratic(), epochs=3, seeds=3, device="cpu")
    losses = torch.tensor([[1.0, 1.3]]).double() + 1e-4 * torch.arange(3.0).double()[:, None]
    cosines = torch.full((3, 3, 2, 2), 0.5).double()
    given: dict[str, Any] = {"joint": losses, "alone": torch.ones(3, 2).double(), "cosines_by_seed": cosines}
    given |= dict.fromkeys(("first", "last", "norms", "learnt"), torch.ones(2).double())
    found = dataclasses.replace(measured, **{**given, "cosines": cosines.mean(0), "ends": None, "planned": 3} | changes)
    monkeypatch.setattr("paretomtl.diagnosis.diagnose", lambda *_, **__: found)


def test_scaled_losses_are_the_next_step_where_they_keep_a_front_away(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = torch.tensor([18.0, 1.0]).double()
    drawn(monkeypatch, first=sizes, last=sizes)
    text = call("diagnose", "quadratic", "--set", "scale=1,2")
    assert "Verdict: gap-only" in text
    assert next_commands(text) == [
        ["diagnose", "quadratic", "--set", "scale=auto", "--seeds", "3", "--epochs", "3"],
    ]


@pytest.mark.parametrize("setting", [None, "scale=1,10"])
def test_a_front_is_trained_with_the_scale_of_the_diagnosis(
    setting: str | None, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn(monkeypatch)
    given = [] if setting is None else ["--set", setting]
    text = call("diagnose", "quadratic", *given)
    assert "Verdict: front" in text
    plain, proposed = next_commands(text)
    assert plain[:-2] == ["run", "quadratic", *given]
    assert "--set" not in proposed, "the proposal has the scale"
    assert "# train the proposed front of 5 models" in text


def test_a_loss_that_begins_at_its_best_is_left_as_it_is(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small: dict[str, Any] = {"first": torch.tensor([1.0, 0.001]).double(), "last": torch.tensor([1.0, 0.01]).double()}
    drawn(monkeypatch, **small)
    text = call("diagnose", "quadratic")
    assert next_command(text)[:4] == ["run", "quadratic", "--set", "scale=None"]
    given = call("diagnose", "quadratic", "--set", "scale=1,10")
    assert next_command(given)[:4] == ["run", "quadratic", "--set", "scale=1,10"]


def test_a_page_of_all_runs_leaves_proposals_out(here: Path) -> None:
    """As the shell writes runs/quadratic-*."""
    call(*RUN[:-4], "--out", "runs/quadratic-auto-0", "--progress", "quiet")
    store()
    found = sorted(map(str, (here / "runs").glob("quadratic-*")))
    assert len(found) == 2
    call("report", *found, "--out", "page.html")
    assert "must be the folder of a front or run" in call("report", found[1], "--out", "page.html", code=2)


def test_one_model_is_trained_where_it_is_enough(here: Path) -> None:
    text = call("diagnose", "diagnosed:agree", "--epochs", "300", "--learning-rate", "0.02", "--device", "cpu")
    assert "Verdict: one-model." in text
    words = next_command(text)
    assert words[:6] == ["run", "diagnosed:agree", "--method", "linear", "--preferences", "1"]
    assert not (here / "runs").exists(), "there is no proposal to store"
    call(*words, "--out", "one", "--progress", "quiet", "--device", "cpu")
    assert json.loads(call("show", "one", "--json"))["preferences"] == [[0.5, 0.5]]


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


def test_a_proposal_of_another_problem_is_refused(here: Path) -> None:
    store()
    arguments = ["run", "synthetic", *RUN[2:], "--proposal", "quadratic"]
    said = " ".join(call(*arguments, code=2).split())
    assert "'--proposal' must be of the problem 'synthetic'" in said
    assert "Got one of 'quadratic'" in said
    assert not (here / "next").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--plot", "d.foo"], "'--plot' must end in one of"),
        (["--out", "prop.txt"], "'--out' must end in .json"),
        (["--dark"], "'--dark' must go with '--plot'"),
    ],
)
def test_what_cannot_be_written_is_refused_before_anything_is_trained(
    here: Path, words: list[str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("paretomtl.diagnosis.diagnose", lambda *a, **k: pytest.fail("nothing may be trained"))
    assert message in " ".join(call("diagnose", "quadratic", *words, code=2).split())
