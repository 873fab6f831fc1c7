"""A run's file names a problem, and nothing of it is imported or called unless the user says so."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from typer.testing import CliRunner

import paretomtl as pm
from paretomtl._support.files.atomic_files import read_record, write_record
from paretomtl.cli._app import app
from paretomtl.cli._trust import needs_trust
from paretomtl.problems import PROBLEMS, NamedProblem

TRAP = "from pathlib import Path\nPath('imported').touch()\n\ndef make(width=1):\n    Path('called').touch()\n"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made") / "run"
    options = ("--epochs", "2", "--preferences", "2", "--progress", "quiet", "--device", "cpu")
    found = CliRunner().invoke(app, ["run", "quadratic", "--method", "pareto-mtl", *options, "--out", str(folder)])
    assert found.exit_code == 0, found.output
    return folder


@pytest.fixture
def here(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a module that leaves a trace when it is imported or its function is called, and a run."""
    shutil.copytree(made, tmp_path / "run")
    (tmp_path / "trap.py").write_text(TRAP)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "trap", raising=False)
    return tmp_path


def ask(problem: str, with_: list[str] | None = None) -> None:
    path = Path("run/asked.json")
    write_record(path, {**read_record(path, [1]), "problem": problem, "with_": with_ or []}, format=1)


def call(*arguments: str, code: int = 0) -> str:
    found = CliRunner().invoke(app, list(arguments), env={"COLUMNS": "100", "NO_COLOR": "1"})
    assert found.exit_code == code, found.output + repr(found.exception)
    return " ".join(found.output.split())


REFINE = ("refine", "run", "--around", "1", "--epochs", "1", "--progress", "quiet")
SELECT = ("select", "run", "--importance", "1,1")


def test_weights_need_no_problem(here: Path) -> None:
    ask("trap:make")
    text = call(*SELECT, "--export", "chosen", "--save", "saved.safetensors")
    assert "Written without importing 'trap:make', so the names of the weights are not compared with it" in text
    card = json.loads((here / "chosen" / "model.json").read_text())
    assert "model = ...  # the module as it was made for training" in card["load"]
    weights = load_file(here / "chosen" / "model.safetensors")
    assert torch.equal(weights["x"], pm.Front.load("run").state_dict(card["k"])["x"])
    assert not (here / "imported").exists()


@pytest.mark.parametrize("words", [REFINE, (*SELECT, "--torchscript", "a.pt"), (*SELECT, "--onnx", "a.onnx")])
def test_what_needs_the_problem_asks_first(words: tuple[str, ...], here: Path) -> None:
    ask("trap:make", ["width=2"])
    text = call(*words, code=2)
    assert "'--trust' must be given for a problem that 'run/asked.json' names: it runs as code" in text
    assert "It would import 'trap', from the current folder first, and use its 'make' with width=2." in text
    assert f"type: paretomtl {words[0]} run" in text
    assert "--trust. Or name the problem yourself: --problem NAME." in text
    assert not (here / "imported").exists()
    call(*words, "--trust", code=2)
    assert (here / "called").exists(), "who trusts it gets what it does"


def test_the_users_own_name_needs_no_trust(here: Path) -> None:
    ask("trap:make")
    call(*REFINE, "--problem", "quadratic", "--with", "dimension=2")
    assert not (here / "imported").exists()
    assert "'--with' must go with '--problem'" in call(*REFINE, "--with", "dimension=2", code=2)


def test_a_built_in_problem_needs_none_unless_it_is_told_a_folder(here: Path) -> None:
    ask("quadratic", ["dimension=2"])
    call(*REFINE)
    ask("census", ["folder=/somewhere/else"])
    assert "It would take 'census' with folder=/somewhere/else." in call(*REFINE, code=2)
    for name, make in PROBLEMS.items():
        assert not needs_trust(name, [])
        paths = [key for key in make.__annotations__ if "Path" in str(make.__annotations__[key])]
        assert all(needs_trust(name, [f"{key}=x"]) for key in paths if key != "return")


@pytest.mark.parametrize("name", ["os:system", "builtins:print", "subprocess:run", "shutil:rmtree", "pathlib:Path"])
def test_what_python_brings_is_never_called(name: str, here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    arguments = {"os:system": "command=echo owned", "subprocess:run": "input=owned", "shutil:rmtree": "path=run"}
    ask(name, [arguments[name]] if name in arguments else [])
    text = call(*REFINE, "--trust", code=2)
    assert f"'{name}' is a part of Python itself" in text
    assert "owned" not in capfd.readouterr().out
    assert (here / "run").exists()


@pytest.mark.parametrize(
    "name", ["a", ":b", "a:", "a.:b", "a b:c", "a:b\nimport os", "a:b;c", "a:b.c", "../a:b", "a:b:c"]
)
def test_a_name_is_made_of_names(name: str) -> None:
    with pytest.raises(ValueError, match=r"must be package\.module:attribute"):
        NamedProblem(name)
