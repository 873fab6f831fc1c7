"""Every command says in one line what was wrong, by the name that its help uses, and what to do."""

from __future__ import annotations

import re
import shutil
import traceback
from pathlib import Path

import pytest
from typer.testing import CliRunner

import paretomtl as pm
from paretomtl.cli._app import app

SHORT = ("--epochs", "1", "--device", "cpu", "--strategy", "sequential")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run, half of one, a file and an empty folder."""
    here = tmp_path_factory.mktemp("made")
    pm.fit(pm.problems.quadratic(), preferences=2, epochs=1, device="cpu", progress="quiet", out=here / "runs" / "one")
    shutil.copytree(here / "runs" / "one", here / "half")
    shutil.rmtree(here / "half" / "front")
    (here / "file").write_text("")
    (here / "empty").mkdir()
    return here


@pytest.fixture
def here(made: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(made)
    monkeypatch.setenv("PARETOMTL_DATA", str(made / "data"))
    return made


def refused(*arguments: str) -> str:
    found = CliRunner().invoke(app, list(arguments), env={"COLUMNS": "100", "NO_COLOR": "1"})
    assert found.exit_code == 2, found.output + repr(found.exception)
    return " ".join(found.output.split())


READERS = [("show",), ("select", "--knee"), ("report",), ("refine", "--around", "0")]


@pytest.mark.parametrize("words", READERS)
def test_a_folder_without_a_front(here: Path, words: tuple[str, ...]) -> None:
    rule = "'RUN' must be the folder of a front or run. Got "
    for run, found in {
        "runs/ona": "'runs/ona', which does not exist. Did you mean 'runs/one'?",
        "nothing": "'nothing', which does not exist. Runs here: runs/one.",
        "empty": "'empty', which contains neither a run nor a front.",
        "file": "'file', which is a file, but not a .csv file of losses.",
        "half": "'half', which has an unfinished run: repeat its command with --resume, or look at it: paretomtl watch",
    }.items():
        assert rule + found in refused(words[0], run, *words[1:])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("show", "runs/one", "--plot", "file/a.png"), "'--plot' must be in a folder that can be written. Got"),
        (("show", "runs/one", "--plot", "empty"), "'--plot' must be a file. Got 'empty', which is a folder."),
        (("report", "runs/one", "--out", "file/a.html"), "'--out' must be in a folder that can be written."),
        (("select", "runs/one", "--k", "0", "--save", "file/a"), "'--save' must be in a folder that can be"),
        (("select", "runs/one", "--k", "0", "--onnx", "empty"), "'--onnx' must be a file. Got 'empty'"),
        (("select", "runs/one", "--best", "f11"), "Got 'f11' instead. Did you mean 'f1'?"),
        (
            ("run", "quadratic", *SHORT, "--method", "pareto-mtl", "--set", "epsilo=1"),
            "Got 'epsilo=1' instead. Did you mean 'epsilon'?",
        ),
        (("run", "quadratic", *SHORT, "--set", "prob=1"), "for 'auto'. Got 'prob=1' instead. Did you mean 'probe'?"),
        (("run", "quadratic", *SHORT, "--set", "epsilon"), "'--set' must be NAME=VALUE with NAME one of"),
        (("run", "quadratic", *SHORT, "--preferences", "0"), "'preferences' must be a whole number of at least 1"),
        (("run", "quadratic", *SHORT, "--out", "file"), "'out' must be a folder that can be written."),
        (("compare", "quadratic", *SHORT, "--methods", "lin"), "Did you mean 'linear'?"),
        (("compare", "quadratic", *SHORT, "--out", "file"), "'out' must be a folder that can be written."),
        (("diagnose", "quadratc"), "Did you mean 'quadratic'?"),
        (("diagnose", "quadratic", "--seeds", "0"), "'seeds' must be a whole number of at least 1. Got 0 instead."),
        (("diagnose", "quadratic", "--split", "val"), "'split' must be one that the problem has: train. Got 'val'"),
        (("reproduce", "sinthetic"), "'STUDY' must be one of synthetic, many-tasks"),
        (("reproduce", "sinthetic"), "Did you mean 'synthetic'?"),
        (("reproduce", "synthetic", "--smoke", "--only", "zz"), "Got 'zz'; the cells are: convergence / random-search"),
        (("reproduce", "all", "--smoke", "--only", "zz"), "Got 'zz'; the cells are: convergence / random-search"),
        (("reproduce", "synthetic", "--smoke", "--seconds", "-1"), "'seconds' must not be negative. Got -1.0"),
        (("reproduce", "synthetic", "--draw"), "'--draw' must come with an '--out' that has results."),
        (("data", "prepare", "mulit-mnist"), "Did you mean 'multi-mnist'?"),
        (
            ("run", "multi-mnist"),
            "multi-mnist-seed0.npz' does not exist yet. Make it with: paretomtl data prepare multi-",
        ),
        (("show",), "Missing argument 'RUN'"),
        (("run",), "Missing argument 'PROBLEM'"),
        (("lst",), "No such command 'lst'. Did you mean 'list'?"),
    ],
)
def test_bad_input_is_one_helpful_line(here: Path, words: tuple[str, ...], message: str) -> None:
    assert message in refused(*words)


def test_in_python() -> None:
    with pytest.raises(ValueError, match=r"'seeds' must be a whole number of at least 1. Got 1\.5 instead"):
        pm.diagnose(pm.problems.quadratic(), seeds=1.5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="'out' must be a path without null bytes"):
        pm.fit(pm.problems.quadratic(), epochs=1, device="cpu", out="a\0b")


def test_help_reads_well_on_a_narrow_screen() -> None:
    commands = [[], *([name] for name in app_names()), ["data", "prepare"]]
    for words in commands:
        found = CliRunner().invoke(app, [*words, "--help"], env={"COLUMNS": "60", "NO_COLOR": "1", "TERM": "dumb"})
        assert found.exit_code == 0
        assert "Usage" in found.output
        assert "--json" in found.output or words in ([], ["report"], ["watch"])
        assert max(map(len, found.output.splitlines())) <= 60
        assert "…" not in re.sub(r"--[\w-]+…", "", found.output), words


def app_names() -> list[str]:
    return [command.name or "" for command in app.registered_commands]


def test_an_error_in_the_users_code_shows_the_users_code_alone(tmp_path: Path) -> None:
    """Of a dozen frames, those of this library and of torch say nothing that a user could change."""
    code = (
        "import torch\nimport paretomtl as pm\n\ndef picked(outputs):\n    return outputs['a']\n\n"
        "problem = pm.Problem(lambda: torch.nn.Linear(3, 2), lambda outputs, targets: picked(outputs), ['a', 'b'], "
        "train=(torch.zeros(4, 3), torch.zeros(4, 2)))\n"
    )
    (tmp_path / "mistaken.py").write_text(code)
    found = CliRunner().invoke(app, ["run", f"{tmp_path / 'mistaken.py'}:problem", "--epochs", "1", "--device", "cpu"])
    assert isinstance(found.exception, IndexError | TypeError)
    files = [Path(frame.filename).name for frame in traceback.extract_tb(found.exception.__traceback__)]
    assert files[-2:] == ["mistaken.py", "mistaken.py"]
    assert not any("engine" in frame.filename for frame in traceback.extract_tb(found.exception.__traceback__))
    assert any("first batch of 'train'" in note for note in found.exception.__notes__)
