"""A study whose data is not prepared says which command comes first, before anything is trained."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from paretomtl.cli._app import app
from paretomtl.paper import STUDIES
from paretomtl.paper.runner import run_study
from paretomtl.problems import PROBLEMS
from paretomtl.problems.data_set import PrepareOptions
from paretomtl.problems.registry import DATA_SETS, find_data_set, prepare_command

NEEDS = {
    "images-lenet": ["multi-mnist", "multi-fashion", "multi-fashion-mnist"],
    "census": ["census"],
    "faces": ["utkface"],
    "localization": ["localization"],
    "three-digits": ["multi-mnist-3"],
}


@pytest.fixture(autouse=True)
def nothing_is_trained(monkeypatch: pytest.MonkeyPatch) -> None:
    def train(*arguments: Any) -> Any:
        raise AssertionError("nothing may be trained")

    monkeypatch.setattr("paretomtl.paper.runner.train_cell", train)


@pytest.mark.parametrize("name", STUDIES)
def test_every_study_looks_for_its_data_first(name: str, tmp_path: Path) -> None:
    study = STUDIES[name]
    needed = list(dict.fromkeys(getattr(cell, "data_set", None) for cell in study.cells("full")))
    assert name not in NEEDS or needed == NEEDS[name]
    needed = [each for each in needed if each is not None]
    if not needed:
        assert name in ("synthetic", "many-tasks")
        return
    data = tmp_path / "my data"
    for missing in needed:  # one after another is made
        path = find_data_set(missing).file(PrepareOptions(cache=data))
        if path.exists():  # two problems may have the same file
            continue
        with pytest.raises(FileNotFoundError, match="First run: ") as error:
            run_study(name, study, tmp_path, data=data)
        assert prepare_command(missing, data) in str(error.value)
        assert shlex.split(prepare_command(missing, data))[3] in DATA_SETS
        with pytest.raises(FileNotFoundError, match=f"'{path}' does not exist yet"):
            PROBLEMS[missing](folder=data)  # where training looks for it
        data.mkdir(exist_ok=True)
        path.touch()
    with pytest.raises(AssertionError, match="nothing may be trained"):
        run_study(name, study, tmp_path, data=data)


def test_all_studies_are_looked_at_before_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARETOMTL_DATA", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for words in (["all"], ["images-lenet", "--quick"], ["all", "--only", "linear"]):
        found = CliRunner().invoke(app, ["reproduce", *words])
        assert found.exit_code == 2
        text = " ".join(found.output.split())
        assert "First run: paretomtl data prepare multi-mnist; paretomtl data prepare multi-fashion" in text
    found = CliRunner().invoke(app, ["reproduce", "faces", "--smoke"])
    assert isinstance(found.exception, AssertionError), "made-up samples need no data"
