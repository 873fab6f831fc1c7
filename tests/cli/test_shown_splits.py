"""Commands rank by validation, show test next to it, and name the split of every number; in 60 columns, too."""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from _helpers.fronts import front_of
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
    assert "ranked by losses on validation, test next to it" in " ".join(text.split())
    lines = [line.split() for line in text.splitlines()]
    assert ["val", "val", "test", "test"] in lines
    assert ["val", "test"] in lines
    assert ["1", "0.87", "0.50", "0.3", "0.3", "0.95", "0.85", "feasible"] in lines
    assert ["1", "-0.6", "-1.8"] in lines
    assert "on validation: hypervolume 0.53 at (1.0, 1.0); spread 1.131; 3 of 4 not dominated" in text
    assert "on test: hypervolume 0.67 at (1.0, 1.0); spread 0.5099; 2 of 4 not dominated" in text
    assert "\n  65.4 % of the box; hypervolume 0.5121 at the tight reference (0.99, 0.99)\n" in text
    assert "\n  93.1 % of the box; hypervolume 0.0184 at the tight reference (0.77, 0.22)\n" in text
    angles = sorted(front("val", "test").angle("train").tolist())
    middle = f"median {sum(angles[1:3]) / 2:.1f}, largest {angles[-1]:.1f}; "
    assert f" in their own region on training; degrees from their preferences on training: {middle}" in text
    assert "on training: hypervolume" in call("show", stored / "without")
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
        assert part["box_share"] == pytest.approx(found.box_share(split=split))
        assert part["tight_reference"] == pytest.approx(found.tight_reference(split=split))
        assert part["tight_hypervolume"] == pytest.approx(found.hypervolume(part["tight_reference"], split))
    assert (facts["regions_split"], facts["in_region"]) == ("train", found.region_hits("train"))
    assert facts["region_share"] == found.region_hits("train") / 4
    assert facts["median_angle"] == pytest.approx(statistics.median(found.angle("train").tolist()))
    assert facts["largest_angle"] == pytest.approx(float(found.angle("train").max()))
    alone = json.loads(call("show", stored / "all", "--split", "test", "--json"))
    assert (alone["split"], alone["test"], alone["regions_split"]) == ("test", None, "test")


def test_what_is_unknown_is_left_out(tmp_path: Path) -> None:
    """Without a reference there is no box, and without directions there are no regions."""
    table = tmp_path / "table.csv"
    table.write_text("left,right\n0.2,0.4\n0.4,0.2\n")
    text = call("show", table)
    assert "\n  hypervolume 0.0176 at the tight reference (0.44, 0.44)\n" in text
    assert "box" not in text
    facts = json.loads(call("show", table, "--json"))
    assert [facts[name] for name in ("hypervolume", "box_share", "in_region", "median_angle")] == [None] * 4
    assert facts["tight_reference"] == pytest.approx([0.44, 0.44])
    broken = front_of([[float("nan"), 1.0], [1.0, float("nan")]], reference=(2.0, 2.0))
    broken.save(tmp_path / "broken")
    lost = json.loads(call("show", tmp_path / "broken", "--json"))
    assert [lost[name] for name in ("box_share", "tight_reference", "tight_hypervolume")] == [None] * 3
    assert (lost["median_angle"], lost["region_share"]) == (None, 0.0)
    assert "box" not in call("show", tmp_path / "broken")


def test_select_goes_by_validation_and_shows_test(stored: Path, tmp_path: Path) -> None:
    text = call("select", stored / "all", "--max-regret", "--export", tmp_path / "model")
    lines = [line.split() for line in text.splitlines()]
    assert text.startswith("Model 1: its largest regret on validation")
    assert ["val", "test"] in lines
    assert ["a", "loss", "0.3", "0.95"] in lines
    assert ["score", "-0.6", "-1.8"] in lines
    card = json.loads((tmp_path / "model" / "model.json").read_text())
    assert (card["k"], card["chosen_on"]) == (1, "val")
    choice = json.loads(call("select", stored / "all", "--best", "score", "--json"))
    assert (choice["k"], choice["split"], choice["losses"]) == (1, "val", {"a": 0.3, "b": 0.3})
    assert choice["test"] == {"losses": {"a": 0.95, "b": 0.85}, "metrics": {"score": pytest.approx(-1.8)}}
    assert json.loads(call("select", stored / "without", "--best", "score", "--json"))["split"] == "train"
    asked = json.loads(call("select", stored / "all", "--best", "score", "--split", "test", "--json"))
    assert (asked["k"], asked["split"], asked["test"]) == (0, "test", None)


def test_refine_names_the_split_of_its_losses(stored: Path) -> None:
    assert "by its losses on validation:" in " ".join(
        call("refine", stored / "all", "--around", 1, "--propose").split()
    )
    assert "by its losses on training:" in " ".join(
        call("refine", stored / "without", "--around", 1, "--propose").split()
    )


@pytest.mark.parametrize("columns", [60, 80, 130])
@pytest.mark.parametrize("name", ["all", "digits", "seven"])
def test_tables_fit_into_the_terminal(stored: Path, name: str, columns: int) -> None:
    """And nothing is cut: each number is there, whole."""
    text = call("show", stored / name, columns=columns)
    table = text[text.index("\n") : text.index("on validation: hyper")]  # sentences are wrapped on terminals alone
    table = "\n".join(
        line for line in table.splitlines() if not line.startswith(("dominated:", "infeasible:", "Losses "))
    )
    assert max(len(line.rstrip()) for line in table.splitlines()) <= columns
    facts: Any = json.loads(call("show", stored / name, "--json"))
    words = table.split()
    for part in (facts, facts["test"]):
        values = [value for row in part["losses"] for value in row]
        values += [value for column in part["metrics"].values() for value in column]
        assert {f"{value:.4g}" for value in values} <= set(words)
