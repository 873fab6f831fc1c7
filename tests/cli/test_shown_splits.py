"""Commands rank by validation, show test next to it, and name the split of every number; in 60 columns, too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from _helpers.pages import page_front
from _support.test_splits import front
from paretomtl.cli._app import app


def call(*arguments: object, columns: int = 60) -> str:
    found = CliRunner().invoke(app, list(map(str, arguments)), env={"COLUMNS": str(columns), "NO_COLOR": "1"})
    assert found.exit_code == 0, found.output + repr(found.exception)
    return found.output


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("splits")
    front("val", "test").save(folder / "all")
    front("test").save(folder / "without")
    page_front(5, ["top-left", "bottom-right"]).save(folder / "digits")
    page_front(4, 7).save(folder / "seven")
    return folder


def test_show_has_test_beside_the_split_that_ranks(stored: Path) -> None:
    text = call("show", stored / "all")
    assert "ranked by losses on val, test next to it" in " ".join(text.split())
    lines = [line.split() for line in text.splitlines()]
    assert ["val", "val", "test", "test", "val", "test"] in lines
    assert ["1", "0.87", "0.50", "0.3", "0.3", "0.95", "0.85", "-0.6", "-1.8", "feasible"] in lines
    assert "on val: hypervolume 0.53 at (1.0, 1.0); spread 1.131; 3 of 4 not dominated" in text
    assert "on test: hypervolume 0.67 at (1.0, 1.0); spread 0.5099; 2 of 4 not dominated" in text
    assert "in their own region on train; degrees from their preferences on train" in text
    assert "on train: hypervolume" in call("show", stored / "without")
    alone = call("show", stored / "all", "--split", "test")
    assert "seed 0; losses on test" in alone
    assert "on val" not in alone


def test_numbers_in_json_have_a_split_beside_them(stored: Path) -> None:
    found = front("val", "test")
    facts = json.loads(call("show", stored / "all", "--json"))
    for part, split in ((facts, "val"), (facts["test"], "test")):
        assert part["split"] == split
        assert part["losses"] == found.losses[split].tolist()
        assert part["metrics"] == {"score": found.metrics[split]["score"].tolist()}
        assert part["hypervolume"] == pytest.approx(found.hypervolume(split=split))
        assert part["spread"] == pytest.approx(found.spread(split))
        assert part["nondominated"] == int(found.nondominated(split).sum())
    assert (facts["regions_split"], facts["in_region"]) == ("train", found.region_hits("train"))
    alone = json.loads(call("show", stored / "all", "--split", "test", "--json"))
    assert (alone["split"], alone["test"], alone["regions_split"]) == ("test", None, "test")


def test_select_goes_by_validation_and_shows_test(stored: Path, tmp_path: Path) -> None:
    text = call("select", stored / "all", "--max-regret", "--export", tmp_path / "model")
    lines = [line.split() for line in text.splitlines()]
    assert text.startswith("Subproblem 1: its largest regret on val")
    assert ["val", "test"] in lines
    assert ["a", "0.3", "0.95"] in lines
    assert ["score", "-0.6", "-1.8"] in lines
    card = json.loads((tmp_path / "model" / "model.json").read_text())
    assert (card["subproblem"], card["chosen_on"]) == (1, "val")
    choice = json.loads(call("select", stored / "all", "--best", "score", "--json"))
    assert (choice["k"], choice["split"], choice["losses"]) == (1, "val", {"a": 0.3, "b": 0.3})
    assert choice["test"] == {"losses": {"a": 0.95, "b": 0.85}, "metrics": {"score": pytest.approx(-1.8)}}
    assert json.loads(call("select", stored / "without", "--best", "score", "--json"))["split"] == "train"
    asked = json.loads(call("select", stored / "all", "--best", "score", "--split", "test", "--json"))
    assert (asked["k"], asked["split"], asked["test"]) == (0, "test", None)


def test_refine_names_the_split_of_its_losses(stored: Path) -> None:
    assert "by its losses on val:" in " ".join(call("refine", stored / "all", "--around", 1, "--propose").split())
    assert "by its losses on train:" in " ".join(call("refine", stored / "without", "--around", 1, "--propose").split())


@pytest.mark.parametrize("columns", [60, 80, 130])
@pytest.mark.parametrize("name", ["all", "digits", "seven"])
def test_tables_fit_into_the_terminal(stored: Path, name: str, columns: int) -> None:
    """And nothing is cut: each number is there, whole."""
    text = call("show", stored / name, columns=columns)
    table = text[: text.index("on val: hyper")]
    assert max(len(line.rstrip()) for line in table.splitlines()) <= columns
    facts: Any = json.loads(call("show", stored / name, "--json"))
    words = table.split()
    for part in (facts, facts["test"]):
        values = [value for row in part["losses"] for value in row]
        values += [value for column in part["metrics"].values() for value in column]
        assert {f"{value:.4g}" for value in values} <= set(words)
