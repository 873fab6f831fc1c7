"""What `paretomtl reproduce` needs besides rows is found missing before anything is trained."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from typer.testing import CliRunner

from paretomtl.cli._app import app
from paretomtl.paper.registry import REGISTRY, Entry
from paretomtl.paper.study import Study


@pytest.fixture(autouse=True)
def nothing_is_trained(monkeypatch: pytest.MonkeyPatch) -> None:
    def train(*arguments: Any) -> Any:
        raise AssertionError("nothing may be trained")

    monkeypatch.setattr("paretomtl.paper.runner.train_cell", train)


def invoke(*words: str) -> tuple[Any, str]:
    result = CliRunner().invoke(app, ["reproduce", *words])
    return result, " ".join(result.output.split())


@pytest.mark.parametrize("name", ["bare", "all"])
@pytest.mark.parametrize("option", ["--smoke", "--draw"])
def test_a_study_without_figures(name: str, option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib.pyplot", reason="matplotlib is not installed: pip install 'paretomtl[figures]'")
    module = ModuleType("paretomtl.paper.bare")
    module.STUDY = Study(lambda size: [], {})  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "paretomtl.paper.bare", module)
    monkeypatch.setitem(REGISTRY, "bare", Entry("bare", "no figures", "A study without figures."))
    result, text = invoke(name, option, "--out", str(tmp_path))
    assert result.exit_code == 2
    assert "The study 'bare' must have figures: at least one name with a function that draws rows. Got none." in text


def test_matplotlib_that_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    result, text = invoke("synthetic", "--smoke", "--out", str(tmp_path))
    assert result.exit_code == 2
    assert "'matplotlib' is needed for this and is not installed: pip install matplotlib" in text


@pytest.mark.parametrize("name", ["broken", "all"])
def test_a_study_that_cannot_be_imported(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(REGISTRY, "broken", Entry("no_such_study", "not there", "A study whose module is not there."))
    result, _ = invoke(name, "--smoke", "--out", str(tmp_path))
    assert isinstance(result.exception, ImportError)
    assert "The study 'broken' must be a module that can be imported" in str(result.exception)
