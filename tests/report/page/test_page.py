from __future__ import annotations

import base64
import dataclasses
import gzip
import itertools
import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import paretomtl as pm
from _helpers.fronts import front_of
from _helpers.pages import page_front, payload_in
from paretomtl.cli._app import app
from paretomtl.report import write_page
from paretomtl.report.page import Watched, page_text, payload_of, read_views, view_of
from paretomtl.report.page._page import names_of, pack
from paretomtl.report.page.hypervolume_curve import hypervolume_curve
from paretomtl.report.page.view import history_of, rounded, thinned

ROWS = [[0.1, 0.9], [0.3, 0.4], [0.8, 0.2]]
HOSTILE = "</script><script>alert(1)</script><!--\u2028\u2029]]>&lt;"


def call(*arguments: Any, code: int = 0) -> str:
    found = CliRunner().invoke(app, [str(each) for each in arguments], env={"COLUMNS": "300", "NO_COLOR": "1"})
    assert found.exit_code == code, found.output + repr(found.exception)
    return " ".join(found.output.split())


class Page(HTMLParser):
    """The tags that a parser of HTML sees."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attributes)))


def test_a_view_says_what_the_front_says() -> None:
    front = dataclasses.replace(page_front(9, 2), scale=torch.rand(9, 2).double() + 0.5, ideal=(0.01, 0.02))
    view = view_of(front, "first", "runs/first")
    assert view["in_region"] == front.in_region("train").tolist()
    assert view["angles"] == pytest.approx(front.angle("train").tolist(), rel=1e-3)
    for split in ("train", "val", "test"):
        assert view["nondominated"][split] == front.nondominated(split).tolist()
        assert view["hypervolume"][split] == pytest.approx(front.hypervolume(split=split), rel=1e-5)
        for i, task in enumerate(front.tasks):
            assert view["values"][split][f"loss:{task}"] == pytest.approx(front.losses[split][:, i].tolist(), rel=1e-5)
    assert view["better"] == {
        "loss:task 0": "lower",
        "loss:task 1": "lower",
        "task 0 accuracy": "higher",
        "task 1 accuracy": "higher",
    }
    json.dumps(view, allow_nan=False)


def test_a_part_of_a_front_has_the_vectors_of_the_others() -> None:
    whole = page_front(5, 2)
    part = dataclasses.replace(
        whole,
        subproblems=(1, 3),
        losses={split: table[[1, 3]] for split, table in whole.losses.items()},
        metrics={},
        status=["feasible"] * 2,
    )
    view = view_of(part, "part", "part")
    assert view["preferences"] == rounded(whole.preferences[[1, 3]])
    assert view["others"] == rounded(whole.preferences[[0, 2, 4]])


def test_what_is_not_finite_is_none_and_no_candidate() -> None:
    view = view_of(front_of([[0.1, torch.nan], [0.2, 0.5], [torch.inf, 0.0], [0.9, 0.9]]), "x", "x")
    assert view["values"]["train"] == {"loss:a": [0.1, 0.2, None, 0.9], "loss:b": [None, 0.5, 0, 0.9]}
    assert view["nondominated"]["train"] == [False, True, False, False]
    assert view["hypervolume"]["train"] is None
    json.dumps(view, allow_nan=False)


def test_a_metric_that_is_called_like_a_loss() -> None:
    front = front_of([[1.0, 2.0]], metrics={"train": {"loss:a": torch.tensor([0.5])}}, better={"loss:a": "higher"})
    view = view_of(front, "x", "x")
    assert view["values"]["train"] == {"loss:a": [1], "loss:b": [2], "loss:a (metric)": [0.5]}
    assert view["better"]["loss:a (metric)"] == "higher"
    assert view["better"]["loss:a"] == "lower"


@given(total=st.integers(0, 3000), points=st.integers(1, 300))
def test_curves_are_thinned_evenly(total: int, points: int) -> None:
    kept = thinned(total, points)
    assert len(kept) == min(total, points)
    assert kept == sorted(set(kept))
    if total:
        assert kept[-1] == total - 1
    if total and points > 1:
        assert kept[0] == 0
        gaps = [b - a for a, b in itertools.pairwise(kept)]
        assert not gaps or max(gaps) - min(gaps) <= 1


def test_curves_keep_their_epochs() -> None:
    history = {name: torch.arange(50.0)[:, None, None].expand(50, 2, 3) for name in ("losses", "weights")}
    found = history_of(history, 10)
    assert found["val"] is None
    assert [rows[0][0] + 1 for rows in found["losses"]] == found["epochs"]
    assert found["epochs"][0] == 1
    assert found["epochs"][-1] == 50
    assert history_of({}, 10) == {"epochs": [], "losses": [], "weights": [], "val": None, "hypervolume": None}


@given(text=st.text())
def test_any_text_comes_back_out_of_the_page(text: str) -> None:
    inside = pack(text)
    assert re.fullmatch(r"[A-Za-z0-9+/=]+", inside)
    assert gzip.decompress(base64.b64decode(inside)).decode() == text
    assert pack(text) == inside


def test_the_page_is_one_file_that_asks_nobody() -> None:
    front = page_front(4, [HOSTILE, "b"], problem=HOSTILE, method=HOSTILE)
    payload = payload_of([view_of(front, HOSTILE, HOSTILE)])
    text = page_text(payload)
    page = Page(text)
    assert payload_in(text) == payload
    assert sum(tag == "script" for tag, _ in page.tags) == 3
    for tag, attributes in page.tags:
        assert not {"src", "srcset", "action", "ping"} & set(attributes), (tag, attributes)
        assert not any(name.startswith("on") for name in attributes)
        if "href" in attributes:
            assert attributes["href"] in ("data:,", "#choose")
    policy = next(each["content"] for _, each in page.tags if each.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert policy.startswith("default-src 'none';")
    assert policy.endswith("connect-src 'none'")
    assert not re.search(r"\{\{|\}\}", text[: text.index('id="payload"')].split("<style>")[0])
    live = Page(page_text(payload_of([], live={"every": 1000})))
    assert any("connect-src 'self'" in str(each.get("content")) for _, each in live.tags)


def test_names_tell_runs_apart() -> None:
    assert names_of([Path("runs/a"), Path("other/a"), Path("runs/b/front")]) == ["runs/a", "other/a", "b"]
    with pytest.raises(ValueError, match=r"'runs' must name each run once\. Got 'a' twice"):
        names_of([Path("a"), Path("runs/../a/front")])


def test_the_command_writes_a_page_of_several_runs(tmp_path: Path) -> None:
    page_front(5, 2).save(tmp_path / "one")
    page_front(3, 2, seed=1, method="linear", reading="importance", epochs=1).save(tmp_path / "two" / "front")
    out = tmp_path / "new" / "page.html"
    said = call("report", tmp_path / "one", tmp_path / "two", "--out", out, "--title", "A & B")
    assert f"Written: {out} (" in said
    text = out.read_text(encoding="utf-8")
    assert "<title>A &amp; B</title>" in text
    runs = payload_in(text)["runs"]
    assert [run["name"] for run in runs] == ["one", "two"]
    assert [run["folder"] for run in runs] == [str(tmp_path / "one"), str(tmp_path / "two")]
    assert [run["reference"] for run in runs] == [[3, 3]] * 2


def test_hypervolumes_of_one_page_compare(tmp_path: Path) -> None:
    fronts = [dataclasses.replace(page_front(5, 2), reference=point) for point in ((2.0, 3.0), (4.0, 1.5))]
    for i, front in enumerate(fronts):
        front.save(tmp_path / str(i))
    path = write_page([tmp_path / "0", tmp_path / "1"], tmp_path / "page.html")
    runs = payload_in(path.read_text(encoding="utf-8"))["runs"]
    assert [run["reference"] for run in runs] == [[4, 3]] * 2
    assert runs[0]["hypervolume"] == runs[1]["hypervolume"]
    curve = rounded(hypervolume_curve(fronts[0].history["val"], (4.0, 3.0)), 4)
    assert [run["history"]["hypervolume"] for run in runs] == [curve] * 2


def test_a_run_without_a_reference_is_measured_at_that_of_the_others(tmp_path: Path) -> None:
    """It used to have no hypervolume, so that a worse run was recommended."""
    worse = dataclasses.replace(page_front(5, 2, shift=0.2), reference=(1.5, 1.4))
    better = dataclasses.replace(page_front(5, 2, method="mgda"), reference=None)
    worse.save(tmp_path / "worse")
    better.save(tmp_path / "better")
    views, verdict = read_views([tmp_path / "worse", tmp_path / "better"])
    assert [view["reference"] for view in views] == [[1.5, 1.4]] * 2
    assert [view["own_reference"] for view in views] == [[1.5, 1.4], None]
    for view, front in zip(views, (worse, better), strict=True):
        for split, volume in view["hypervolume"].items():
            assert volume == pytest.approx(front.hypervolume((1.5, 1.4), split), rel=1e-5)
        assert view["history"]["hypervolume"] == rounded(hypervolume_curve(front.history["val"], (1.5, 1.4)), 4)
    assert verdict.startswith("MOO-MTL has the largest hypervolume on validation, ")
    live = json.loads(Watched([tmp_path / "worse", tmp_path / "better"]).data()[0])
    assert live["verdict"] == verdict
    assert [view["hypervolume"] for view in live["runs"]] == [view["hypervolume"] for view in views]


def test_without_any_reference_hypervolumes_are_at_one_beyond_the_best_models(tmp_path: Path) -> None:
    one, other = front_of([[0.2, 0.9], [0.9, 0.2], [7.0, 7.0]]), front_of([[0.1, 1.0], [0.8, 0.3]])
    alone = front_of([[0.05, 40.0]], method="single-task")
    for name, front in (("one", one), ("other", other), ("alone", alone)):
        front.save(tmp_path / name)
    views, verdict = read_views([tmp_path / name for name in ("one", "other", "alone")])
    point = one.tight_reference(other)
    assert [view["reference"] for view in views] == [rounded(point)] * 3, "separate networks do not move it"
    for view, front in zip(views[:2], (one, other), strict=True):
        assert view["hypervolume"]["train"] == pytest.approx(front.hypervolume(point), rel=1e-5)
    first = max(views[:2], key=lambda view: view["hypervolume"]["train"])["name"]
    assert verdict.startswith(f"{first} has the largest hypervolume on training, ")


def test_runs_that_cannot_be_measured_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, rows in (("fine", ROWS), ("too", ROWS), ("lost", [[torch.nan, 1.0]]), ("far", [[3.0, 0.1]])):
        front_of(rows, reference=None if name in ("lost", "far") else (2.0, 2.0)).save(tmp_path / name)
    names = [tmp_path / name for name in ("fine", "lost", "far", "too")]
    verdict = read_views(names)[1]
    assert verdict.startswith("fine has the largest hypervolume on training, and so has too.")
    assert verdict.endswith(" lost and far are left out: they have no hypervolume on training.")
    views, verdict = read_views(names[1:2])
    assert (views[0]["reference"], verdict) == (None, "")

    def missing(*_: object) -> float:
        raise ModuleNotFoundError("moocore")

    monkeypatch.setattr("paretomtl.front.indicators.hypervolume", missing)
    assert read_views(names)[1] == "No run has a hypervolume on training, so the runs are not compared."


def test_runs_of_one_problem_are_measured_against_each_other(tmp_path: Path) -> None:
    one, other = page_front(5, 2), page_front(4, 2)
    other = dataclasses.replace(other, losses={split: losses * 1.1 for split, losses in other.losses.items()})
    strange = dataclasses.replace(page_front(3, 2), problem="another")
    for name, front in (("one", one), ("other", other), ("strange", strange)):
        front.save(tmp_path / name)
    views, verdict = read_views([tmp_path / name for name in ("one", "other", "strange")])
    assert verdict == "", "they are of different problems"
    assert views[2]["union"] is None
    for view, front, rival in ((views[0], one, other), (views[1], other, one)):
        split = view["union"]["split"]
        assert (split, view["union"]["chosen_on"]) == (front.shown_splits[-1], front.ranking_split)
        assert view["union"]["regret"] == pytest.approx(front.regret(rival), rel=1e-5)
        assert view["union"]["r2"] == pytest.approx(front.r2(rival, split=split), rel=1e-5)
        assert view["union"]["igd_plus"] == pytest.approx(front.igd_plus(rival, split, scaled=True), rel=1e-5)
    assert [view["union"] for view in read_views([tmp_path / "one", tmp_path / "strange"])[0]] == [None, None]
    assert read_views([tmp_path / "one", tmp_path / "other"])[1].startswith("one has the largest hypervolume")


def test_bad_input_is_named(tmp_path: Path) -> None:
    page_front(3, 2).save(tmp_path / "two")
    page_front(3, ["x", "y", "z"]).save(tmp_path / "three")
    (tmp_path / "empty").mkdir()
    (tmp_path / "begun").mkdir()
    (tmp_path / "begun" / "config.json").write_text("{}")
    out = tmp_path / "page.html"

    def refused(*arguments: Any) -> str:
        return call("report", *arguments, code=2)

    assert f"Got '{tmp_path / 'empty'}', which contains neither a run nor a front" in refused(
        tmp_path / "empty", "--out", out
    )
    assert "an unfinished run: repeat its command with --resume, or look at it: paretomtl watch" in refused(
        tmp_path / "begun", "--out", out
    )
    said = refused(tmp_path / "two", tmp_path / "three", "--out", out)
    assert "'runs' must have the same tasks, in the same order." in said
    assert "Got ['task 0', 'task 1'] in 'two' and ['x', 'y', 'z'] in 'three'" in said
    assert "'out' must end in .html" in refused(tmp_path / "two", "--out", tmp_path / "page.pdf")
    assert "'runs' must name each run once" in refused(tmp_path / "two", tmp_path / "two", "--out", out)
    (tmp_path / "file").write_text("")
    assert "Error:" in refused(tmp_path / "two", "--out", tmp_path / "file" / "page.html")
    (tmp_path / "folder.html").mkdir()
    said = refused(tmp_path / "two", "--out", tmp_path / "folder.html")
    assert f"Error: '--out' must be a file. Got '{tmp_path / 'folder.html'}', which is a folder." in said
    damaged = tmp_path / "two" / "front.json"
    damaged.write_text(damaged.read_text()[:100])
    assert "It is damaged" in refused(tmp_path / "two", "--out", out)
    assert not out.exists()


def test_an_old_page_stays_where_a_new_one_cannot_be_made(tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    out.write_text("old")
    call("report", tmp_path / "nowhere", "--out", out, code=2)
    assert out.read_text() == "old"


def test_a_subproblem_is_selected_by_its_number(tmp_path: Path) -> None:
    front = page_front(5, 2)
    front.save(tmp_path / "run")
    dominated = front.nondominated("val").tolist().index(False)
    said = call("select", tmp_path / "run", "--k", dominated, "--export", tmp_path / "out")
    assert f"Model {dominated}: asked for by its number; values on validation." in said
    card = json.loads((tmp_path / "out" / "model.json").read_text())
    assert card["k"] == dominated
    assert "'--k' must be one of the models trained" in call("select", tmp_path / "run", "--k", 5, code=2)
    both = call("select", tmp_path / "run", "--k", 1, "--knee", code=2)
    assert "'--k' must be the only way of choosing. Got 1 with another one." in both


def test_a_comparison_keeps_its_fronts_on_request(tmp_path: Path) -> None:
    few = ["compare", "synthetic", "--methods", "linear", "--seeds", 2, "--preferences", 2, "--epochs", 2]
    call(*few, "--out", tmp_path, "--fronts")
    assert [len(pm.Front.load(tmp_path / "fronts" / f"linear-{seed}")) for seed in (0, 1)] == [2, 2]
    assert "'--fronts' must come with '--out'" in call(*few, "--fronts", code=2)


def test_plotly_is_imported_where_it_is_used() -> None:
    code = "import sys, paretomtl.report.page; assert 'plotly' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
