"""Fronts of models that were trained elsewhere, by their losses alone."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from typer.testing import CliRunner

import paretomtl as pm
from _helpers.fronts import front_of
from _helpers.pages import page_front, payload_in
from _helpers.places import DOCS
from paretomtl.cli._app import app
from paretomtl.front.choosing.candidates import build_table
from paretomtl.front.choosing.questions import begin
from paretomtl.report.page import page_text, payload_of, view_of
from paretomtl.runs import inspect_run

ROWS = [[0.1, 0.9], [0.3, 0.4], [0.8, 0.2], [0.9, 0.9]]  # the last one is dominated
NAMES = ["alpha=0", "alpha=0.1", "alpha=1", "diverged"]


def given(rows: Any = ROWS, **fields: Any) -> pm.Front:
    return pm.Front.from_losses(rows, tasks=fields.pop("tasks", ["left", "right"]), **fields)


def call(*arguments: Any, code: int = 0, **options: Any) -> str:
    found = CliRunner().invoke(
        app, [str(each) for each in arguments], env={"COLUMNS": "200", "NO_COLOR": "1"}, **options
    )
    assert found.exit_code == code, found.output + repr(found.exception)
    return " ".join(found.output.split())


@pytest.mark.parametrize("tasks", [2, 3])
def test_the_losses_are_all_that_choices_and_indicators_need(tasks: int) -> None:
    """A front made of the losses and metrics of another one chooses what that one chooses, and is as large."""
    front = page_front(9, tasks)
    again = pm.Front.from_losses(
        front.losses, tasks=front.tasks, metrics=front.metrics, better=front.better, reference=front.reference
    )
    first = front.tasks[0]
    for wish in (
        {"direction": [1.0] * tasks},
        {"importance": {first: 1.0}},
        {"knee": True},
        {"max_regret": True},
        {"best": f"{first} accuracy"},
        {"at_least": {f"{first} accuracy": 0.8}, "best": front.tasks[1]},
        {"bounds": {first: -1.0}, "best": first},
    ):
        own, other = front.select(**wish), again.select(**wish)
        assert (own.k, own.nearest, own.losses, own.metrics) == (other.k, other.nearest, other.losses, other.metrics)
    for split in front.losses:
        assert torch.equal(again.losses[split], front.losses[split])
        assert torch.equal(again.nondominated(split), front.nondominated(split))
        assert again.hypervolume(split=split) == front.hypervolume(split=split)
        assert again.spread(split) == front.spread(split)
        points = front.losses["test"]
        assert again.igd_plus(points, split) == front.igd_plus(points, split)
    assert begin(build_table(again, "val")).rows == begin(build_table(front, "val")).rows


def test_preferences_that_are_given_have_angles_and_regions() -> None:
    front = front_of([[0.1, 0.9], [0.5, 0.5], [0.9, 0.1]])
    again = pm.Front.from_losses(
        {"val": front.losses["train"]}, tasks=front.tasks, preferences=3 * front.preferences, reading="direction"
    )
    assert torch.equal(again.angle(), front.angle())
    assert torch.equal(again.in_region(), front.in_region())
    assert torch.equal(again.around(1, 3), front.around(1, 3))
    weighed = given(ROWS[:2], preferences=[[1, 3], [0.5, 0.5]], reading="importance")
    assert "importance" in str(weighed)
    with pytest.raises(ValueError, match="those of 'given' are not"):
        weighed.angle()


@pytest.mark.parametrize(("split", "tasks"), [("train", 2), ("val", 3), ("test", 5)])
def test_a_front_of_one_split_without_preferences_works_everywhere(tmp_path: Path, split: str, tasks: int) -> None:
    """Every command and every figure, whichever split is the only one."""
    losses = page_front(5, tasks).losses["val"]
    columns = [f"task {i}" for i in range(tasks)]
    names = [f"model {i}" for i in range(5)]
    front = given({split: losses}, tasks=columns, names=names, metrics={"score": range(5)}, better="lower")
    assert f"on {split}" in str(front)
    for name in names:
        assert name in str(front)
    assert len(front.nondominated()) == 5
    assert front.hypervolume([2.0] * tasks) > 0 < front.spread()
    assert front.igd_plus(losses) == 0
    front.plot(tmp_path / "front.png")
    table = front.to_frame()
    assert list(table["name"]) == names
    assert not any("none" in column for column in table)

    run = tmp_path / "given"
    front.save(run)
    assert [path.name for path in run.iterdir()] == ["front.json"]
    again = pm.Front.load(run)
    assert str(again) == str(front)
    assert torch.equal(again.losses[split], front.losses[split])
    assert (again.names, again.seed, again.reading) == (tuple(names), None, "none")
    assert [finding.state for finding in inspect_run(run)] == ["ok"]
    assert "5 models, without weights" in call("doctor", run, "--fix")
    shown = call("show", run, "--plot", tmp_path / "shown.svg")
    assert f"losses on {split}" in shown
    assert "model 3" in shown
    assert "seed" not in shown
    assert "trained in" not in shown
    assert json.loads(call("show", run, "--json"))["names"] == names
    chosen = front.select(max_regret=True)
    assert call("select", run, "--max-regret").startswith(f"Model {chosen.k} (model {chosen.k}): ")
    assert "asked for by its number" in call("select", run, "--k", 3)
    page = call("report", run, "--out", tmp_path / "page.html")
    assert page.startswith("Written")


def test_what_needs_weights_or_preferences_says_so(tmp_path: Path) -> None:
    front = given(names=NAMES)
    for refused in (front.angle, front.in_region, front.region_hits):
        with pytest.raises(ValueError, match="need preferences that are directions; this front has none"):
            refused()
    with pytest.raises(ValueError, match="This front has none"):
        front.around(1)
    for refused in (front.model, front.state_dict):
        with pytest.raises(ValueError, match=r"model 1 \(alpha=0.1\) of a front that has only losses"):
            refused(1)
    front.save(tmp_path / "given")
    for option in ("--export", "--save"):
        said = call("select", tmp_path / "given", "--k", 1, option, tmp_path / "out" / "x.safetensors", code=2)
        assert "a front that has only losses" in said
    assert not (tmp_path / "out").exists()
    assert "This front has none" in call("refine", tmp_path / "given", "--around", 1, code=2)


def test_a_front_with_weights_can_be_replaced_by_one_without(tmp_path: Path) -> None:
    front_of(ROWS).save(tmp_path)
    given().save(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["front.json"]
    assert not pm.Front.load(tmp_path).models.stacked()


@pytest.mark.parametrize("kind", [torch.tensor, np.array, list, pd.DataFrame, lambda rows: (row for row in rows)])
def test_rows_come_in_many_forms(kind: Any) -> None:
    rows = pd.DataFrame(ROWS, columns=["left", "right"]) if kind is pd.DataFrame else kind(ROWS)
    assert given(rows).losses["val"].tolist() == pytest.approx(np.array(ROWS), rel=1e-6)


def test_a_table_is_read_by_its_columns() -> None:
    table = pd.DataFrame({"right": [1.0, 2.0], "accuracy": [0.5, 0.6], "left": [3.0, 4.0]})
    front = given(table, metrics=table[["accuracy"]], better="higher")
    assert front.losses["val"].tolist() == [[3.0, 1.0], [4.0, 2.0]]
    assert front.metrics["val"]["accuracy"].tolist() == [0.5, 0.6]


def test_a_file_is_read_by_every_command(tmp_path: Path) -> None:
    """What pandas wrote, and what people write; a front of it is that of its numbers."""
    path = tmp_path / "sweep.csv"
    path.write_text('\ufeffname, left,right,higher:f1\r\na,0.1,0.9,0.5\r\n\r\n"b, c",0.5,5e-1,\r\n', encoding="utf-8")
    front = pm.Front.load(path)
    assert str(front) == str(pm.Front.from_table(str(path)))
    assert (front.problem, front.tasks, front.names) == ("sweep", ("left", "right"), ("a", "b, c"))
    assert front.losses["val"].tolist() == [[0.1, 0.9], [0.5, 0.5]]
    assert front.better == {"f1": "higher"}
    assert front.metrics["val"]["f1"].isnan().tolist() == [False, True]
    assert "b, c" in call("show", path)
    assert call("select", path, "--max-regret").startswith("Model ")
    assert call("report", path, "--out", tmp_path / "page.html").startswith("Written")
    assert "a front that has only losses" in call("select", path, "--k", 0, "--save", tmp_path / "x", code=2)
    pd.DataFrame(ROWS, columns=["left", "right"], index=NAMES).to_csv(path)
    assert pm.Front.load(path).names == tuple(NAMES)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("left,right\n1,2\n1,x\n", "Got 'x' in line 3, column 'right', not a number"),
        ("left,right\n1,2\n1\n", "with 2 columns. Got 1 in line 3"),
        ("left,right\n1,nan\n", "'losses' must be finite. Got nan for 'right' in row 0"),
        ("left,right\n1,\n", "Got '' in line 2, column 'right'"),
        ("left,right\n", "one for each model. Got 1 lines"),
        ("", "Got 0 lines"),
        ("left;right\n1;2\n", "with commas between the columns. Got 'left;right'"),
        ("left,left\n1,2\n", "distinct columns. Got 'left' twice"),
        ("name,left,right\na,1,2\na,1,2\n", "'names' must be distinct"),
        ("left\n1\n", "a trade-off needs two tasks"),
        ('left,right\n"1,2\n', "which is CSV in UTF-8"),
    ],
)
def test_a_bad_file_is_named(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "sweep.csv").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=rf"sweep.csv' must be a table of losses.*{said}"):
        pm.Front.load(tmp_path / "sweep.csv")
    with pytest.raises(FileNotFoundError):
        pm.Front.load(tmp_path / "other.csv")


def test_metrics_are_by_name_or_by_split() -> None:
    splits = {"val": ROWS, "test": ROWS}
    front = given(splits, metrics={"test": {"f1": range(4)}}, better={"f1": "higher"})
    assert list(front.metrics) == ["test"]
    assert given(metrics={"val": {"f1": [1, 2, 3, np.nan]}}, better="lower").select(best="f1").k == 0


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"rows": [[1.0, 2.0], [np.nan, 1.0]], "names": ["a", "b"]}, r"Got nan for 'left' in row 1 \('b'\) on val"),
        ({"rows": {"test": [[1.0, np.inf]]}}, "Got inf for 'right' in row 0 on test: leave that model out"),
        ({"rows": [[1.0, 2.0], [1.0]]}, r"rows of 2 numbers, one for each task. Got \[1.0\] in row 1"),
        ({"rows": [[1.0, "0.5"]]}, r"Got \[1.0, '0.5'\] in row 0"),
        ({"rows": [0.1, 0.2]}, "Got 0.1 in row 0"),
        ({"rows": [[True, False]]}, r"Got \[True, False\] in row 0"),
        ({"rows": "losses.csv"}, "Got str on val"),
        ({"rows": []}, "not empty. Got none on val"),
        ({"rows": {}}, "by split, 'train', 'val', 'test'. Got none"),
        ({"rows": {"left": [1.0], "right": [2.0]}}, "by split, 'train', 'val', 'test'. Got 'left'"),
        ({"rows": {"val": ROWS, "test": ROWS[:2]}}, "Got 4 on val, 2 on test"),
        ({"rows": [[1.0, 2.0]] * 10_001}, "at most 10,000"),
        ({"rows": pd.DataFrame({"left": [1.0]})}, "without 'right'"),
        ({"rows": pd.DataFrame({"left": ["a"], "right": [1.0]})}, r"Got \['a', 1.0\] in row 0"),
        (
            {"rows": SimpleNamespace(best_trials=[], trials=[])},
            r"Got SimpleNamespace on val instead: write \[trial.values for trial in study.best_trials\], negated where",
        ),
        ({"rows": {"test": SimpleNamespace(X=None, F=None)}}, "Got SimpleNamespace on test instead: write result.F"),
        ({"tasks": "left"}, "'tasks' must be a list of names. Got 'left'"),
        ({"tasks": ["left", "left"]}, "'tasks' must be distinct"),
        ({"tasks": ["left", 1]}, "'tasks' must be names. Got 1"),
        ({"tasks": ["left"]}, "tasks"),
        ({"tasks": ["a", "b", "c"]}, "rows of 3 numbers"),
        ({"metrics": {"f1": [1.0]}, "better": "higher"}, "for each of the 4 models. Got 1 for 'f1' on val"),
        ({"metrics": {"f1": ["a"] * 4}, "better": "higher"}, "'metrics' must be numbers"),
        ({"metrics": {"left": [1.0] * 4}, "better": "higher"}, "must not have names of tasks"),
        (
            {"metrics": {"test": {"f1": [1.0] * 4}}, "better": "higher"},
            r"splits that losses are on, \['val'\]. Got 'test'",
        ),
        ({"metrics": [1.0] * 4}, "'metrics' must be a dictionary"),
        ({"metrics": {"rmse": [1.0] * 4}}, "'better' must say .* Got None for 'rmse'"),
        ({"metrics": {"rmse": [1.0] * 4}, "better": {"rsme": "lower"}}, "'better' must be for metrics.*'rsme'"),
        ({"metrics": {"rmse": [1.0] * 4}, "better": "more"}, "Got 'more' for 'rmse'"),
        ({"rows": {"val": ROWS, "test": ROWS}, "metrics": {"f1": [1.0] * 4}}, "'metrics' must be by split"),
        ({"names": ["a", "b", "c", "a"]}, "'names' must be distinct. Got 'a' twice"),
        ({"names": ["a"]}, "one for each of the 4 models. Got 1"),
        ({"names": ["a", "b", "c", ""]}, "'names' must be non-empty strings"),
        ({"names": "abcd"}, "'names' must be a list of strings"),
        ({"preferences": [[1.0, 0.0]] * 4}, "'reading' must say what 'preferences' mean.* Got None"),
        ({"reading": "direction"}, "'reading' must come with 'preferences'"),
        ({"preferences": [[1.0, 0.0]], "reading": "importance"}, r"shape \[4, 2\]. Got \[1, 2\]"),
        ({"preferences": [[0.0, 0.0]] * 4, "reading": "importance"}, "not all zero"),
        ({"reference": [1.0]}, "'reference' must have one finite number per task"),
        ({"reference": [1.0, np.nan]}, "'reference' must have one finite number per task"),
        ({"problem": 3}, "'problem' must be a string"),
    ],
)
def test_bad_input_is_named(fields: dict[str, Any], said: str) -> None:
    with pytest.raises((TypeError, ValueError), match=said):
        given(**fields)


def test_a_hypervolume_needs_a_reference() -> None:
    with pytest.raises(ValueError, match="'reference' must be given: this front has no default"):
        given().hypervolume()
    with pytest.raises(ValueError, match="above the losses of at least one model"):
        given(reference=[0.0, 0.0]).hypervolume()
    assert given(reference=[1.0, 1.0]).hypervolume() > 0


def test_reasons_name_the_solutions() -> None:
    front = given(names=NAMES, reference=[0.85, 0.95])
    said = front.select(max_regret=True).reason
    assert said.startswith("Model 1 (alpha=0.1): ")
    assert "; the next is model " in said
    assert "Model 0 (alpha=0) comes nearest" in front.select(at_most={"left": 0.05}, best="left").reason
    assert (
        "left out: model 3 (diverged)"
        in given([*ROWS[:3], [0.05, 2.0]], names=NAMES, reference=[1, 1]).select(max_regret=True).reason
    )
    assert "Model 2: " in given().select(best="right").reason


def test_questions_show_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paretomtl.cli._interview.at_terminal", lambda: True)
    given(names=NAMES).save(tmp_path)
    said = call("select", tmp_path, input="1\n1\n1\n")
    assert "1: model 0 (alpha=0)" in said
    assert "your preference on val" in said


def test_a_view_says_what_is_not_there() -> None:
    view = view_of(given(names=NAMES), "given", "runs/given")
    assert view["names"] == NAMES
    assert [view[name] for name in ("seed", "seconds", "epoch", "in_region", "angles")] == [None] * 5
    assert view["exports"] is False
    assert view["preferences"] == [[]] * 4
    assert json.loads(json.dumps(payload_of([view], None)))["runs"] == [view]
    text = page_text(payload_of([view, view_of(front_of(ROWS), "trained", "runs/trained")]))
    assert payload_in(text)["runs"][0]["names"] == NAMES


def test_the_examples_of_the_documentation_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (DOCS / "guides" / "other-fronts.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    exec("\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL)), {})
    printed = capsys.readouterr().out
    assert "Front of 4 models: digits, loss weights" in printed
    assert "Model 2 (alpha=0.3): its largest regret" in printed
    assert "Model 2 (alpha=0.3)" in call("select", "runs/loss-weights", "--max-regret")
