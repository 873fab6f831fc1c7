from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from typer.testing import CliRunner

import paretomtl as pm
from paretomtl.cli._app import app
from paretomtl.cli._lookup import find_method, find_problem
from paretomtl.cli._ray import with_place
from paretomtl.compare import load_rows
from paretomtl.methods import METHODS, describe

PROBLEM = """
import torch
from torch import nn
import paretomtl as pm

torch.manual_seed(0)
x = torch.randn(60, 4)
y = torch.stack([x.sum(-1), x.prod(-1)], -1)

def losses(outputs, targets):
    return (outputs - targets).square().mean(0)

def worst(outputs, targets):
    return (outputs - targets).abs().max()

def make():
    return pm.Problem(
        lambda: nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2)), losses, ["sum", "product"],
        train=(x[:40], y[:40]), val=(x[40:50], y[40:50]), test=(x[50:], y[50:]),
        metrics={"worst": pm.Metric(worst, "lower")}, name="toy",
    )

ready = make()
number = 3

def needs(size):
    return ready

def raises():
    return pm.Problem(lambda: nn.Linear(4, 2), lambda outputs, targets: 1 / 0, ["a", "b"], train=(x, y))
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a problem of one's own."""
    (tmp_path / "toys.py").write_text(PROBLEM)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken.py").write_text("from toys import pm, nn; problem = pm.Problem(nn.Identity, min, [1, 2])")
    for name in ("toys", "broken"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return tmp_path


def call(*arguments: str, code: int = 0) -> str:
    found = CliRunner().invoke(app, list(arguments), env={"COLUMNS": "80", "NO_COLOR": "1"})
    assert found.exit_code == code, found.output + repr(found.exception)
    return found.output


def run(*arguments: str, code: int = 0) -> str:
    return call(
        "run", "toys:make", "--epochs", "3", "--progress", "quiet", "--strategy", "sequential", *arguments, code=code
    )


def test_run_show_and_select(here: Path) -> None:
    text = run("--preferences", "3", "--out", "first", "--method", "pareto-mtl")
    assert "direction" in text
    assert "Stored in first" in text
    shown = call("show", "first")
    assert "toy, pareto-mtl, seed 0; ranked by losses on validation, test next to it" in shown
    assert "in their own region on training" in shown
    assert "seed 0; losses on test" in call("show", "first", "--split", "test")
    facts = json.loads(call("show", "first", "--json"))
    assert facts["subproblems"] == [0, 1, 2]
    assert len(facts["losses"]) == 3
    assert facts["metrics"]["worst"][0] > 0
    choice = json.loads(call("select", "first", "--importance", "1,0", "--json", "--save", "chosen.safetensors"))
    assert (facts["split"], facts["test"]["split"], choice["split"]) == ("val", "test", "val")
    assert json.loads(call("show", "first", "--split", "val", "--json"))["losses"] == facts["losses"]
    assert choice["losses"]["sum"] == min(row[0] for row in facts["losses"])
    assert choice["test"]["losses"]["sum"] == facts["test"]["losses"][choice["k"]][0]
    weights = load_file(here / "chosen.safetensors")
    front = pm.Front.load(here / "first")
    assert (weights["0.weight"] == front.state_dict(choice["k"])["0.weight"]).all()
    assert "Model" in call("select", "first", "--direction", "1,1")
    text = call("select", "first", "--bound", "sum<=100", "--best", "product")
    assert "it has the best product" in " ".join(text.split())
    text = call("select", "first", "--at-most", "sum=100", "--at-least", "loss:sum=0", "--best", "product")
    assert "with sum at least 0 and sum at most 100 on validation" in " ".join(text.split())
    balanced = front.select(max_regret=True).reason
    assert " ".join(call("select", "first", "--max-regret").split()).startswith(balanced)


def test_json_is_all_that_is_printed(here: Path) -> None:
    facts = json.loads(run("--preferences", "2", "--json"))
    assert facts["folder"] == "runs/toy-auto-0"
    assert facts["complete"] is True


def test_no_solution_has_its_own_exit_code(here: Path) -> None:
    run("--preferences", "2", "--out", "first")
    text = call("select", "first", "--bound", "sum=0.0000001", "--best", "product", code=3)
    assert "No model on validation has sum at most 1e-07" in text
    assert "comes nearest: its sum is" in " ".join(text.split())
    facts = json.loads(call("select", "first", "--at-most", "loss:sum=1e-9", "--best", "sum", "--json", code=3))
    assert facts["k"] is None
    assert facts["nearest"] in (0, 1)
    assert facts["misses"]["sum"] > 0


def test_a_second_run_does_not_overwrite_the_first(here: Path) -> None:
    run("--preferences", "2")
    assert "holds a run already" in run("--preferences", "2", code=2)
    assert "Stored in" in run("--preferences", "2", "--resume")
    assert "'preferences' must be that of the run" in run("--preferences", "3", "--resume", code=2)


def test_a_run_is_trained_longer_and_another_begins_with_its_weights(here: Path) -> None:
    rows = ("--preferences", "2", "--method", "pareto-mtl")
    run(*rows, "--out", "first")
    run(*rows, "--out", "first", "--epochs", "4", "--resume")
    asked = json.loads((here / "first" / "asked.json").read_text())
    assert (asked["epochs"], "patience" in asked) == (4, False)
    first = json.loads(call("show", "first", "--json"))
    assert (first["epochs"], first["ended"]) == ([4, 4], "after 4 epochs")
    call("doctor", "first")
    still = ("--optimizer", "sgd", "--lr", "0", "--patience", "1")
    assert "'start' must be a front whose" in run(*still, "--method", "linear", "--start", "first", code=2)
    assert "is not there. This came from '--start'." in " ".join(run(*rows, *still, "--start", "tb", code=2).split())
    text = " ".join(run(*rows, *still, "--start", "first", "--out", "second").split())
    assert (
        "Ended by patience: no model improved on validation in 1 epoch, after 2 of 3 epochs. Stored in second" in text
    )
    assert json.loads((here / "second" / "asked.json").read_text())["patience"] == 1
    assert json.loads(call("show", "second", "--json"))["losses"] == first["losses"]


def test_every_option_reaches_the_library(here: Path) -> None:
    run(
        "--method", "pareto-mtl", "--set", "epsilon=0.3", "--set", "rescale=True", "--batch-size", "16", "--seed", "4",
        "--optimizer", "sgd", "--learning-rate", "0.02", "--weight-decay", "0.1", "--precision", "float64",
        "--clip-norm", "0.5", "--keep", "best", "--only", "2,0", "--preferences", "3", "--device", "cpu",
        "--out", "x", "--tensorboard", "tb",
    )  # fmt: skip
    config = json.loads((here / "x" / "config.json").read_text())
    assert config["method"] == describe(pm.ParetoMTL(epsilon=0.3, rescale=True))
    assert config["optimizer"].startswith("SGD")
    assert "'weight_decay': 0.1" in config["optimizer"]
    assert "learning rates [0.02]" in config["optimizer"]
    expected = {
        "seed": 4,
        "batch_size": 16,
        "precision": "float64",
        "clip_norm": 0.5,
        "keep": "best",
        "subproblems": [2, 0],
    }
    assert {name: config[name] for name in expected} == expected
    assert list((here / "tb").iterdir())


def test_defaults_are_the_librarys(here: Path) -> None:
    import inspect

    from paretomtl.cli.commands.run import run as command

    library = inspect.signature(pm.fit).parameters
    for name, parameter in inspect.signature(command).parameters.items():
        known = name.rstrip("_")
        if known in library and known not in ("problem", "out"):
            assert parameter.default == library[known].default, name


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "nope"], "'PROBLEM' must be one of synthetic, quadratic, multi-digits, multi-mnist, multi-fashion"),
        (["run", "nowhere:x"], "'PROBLEM' must name a module that can be imported. Got 'nowhere'"),
        (["run", "toys:other"], "'PROBLEM' must name an attribute of 'toys'. Got 'other'"),
        (["run", "toys:number"], "'PROBLEM' must be a Problem or make one. 'toys:number' is a int"),
        (["run", "toys:make"], "'epochs' must be given"),
        (["run", "toys:make", "--epochs", "0"], "'epochs' must be a whole number of at least 1"),
        (["run", "toys:make", "--epochs", "1", "--method", "magic"], "'method' must be one of auto, pareto-mtl"),
        (["run", "toys:make", "--epochs", "1", "--set", "eps=1"], "'--set' must be NAME=VALUE"),
        (
            ["run", "multi-mnist", "--with", "size=1"],
            "'--with' must be NAME=VALUE with NAME one of ['validation', 'folder'",
        ),
        (["run", "toys:number", "--with", "a=1"], "'--with' must go with a function that makes a problem"),
        (["run", "multi-mnist", "--with", "recipe=weak"], "'recipe' must be one of strong, paper. Got 'weak'"),
        (["run", "toys:make", "--epochs", "1", "--optimizer", "magic"], "'--optimizer' must be one of sgd"),
        (["run", "toys:make", "--epochs", "1", "--only", "a"], "'--only' must be whole numbers"),
        (["run", "toys:make", "--epochs", "1", "--out", "toys.py/x"], "'out' must be a folder that can be written"),
        (["show", "nowhere"], "'RUN' must be the folder of a front or run. Got 'nowhere', which does not exist."),
        (["compare", "toys:make", "--epochs", "1", "--seeds", "0"], "'--seeds' must be at least 1"),
        (
            ["select", "toys.py", "--knee"],
            "'RUN' must be the folder of a front or run. Got 'toys.py', which is a file, but not",
        ),
        (
            ["run", "toys:make", "--epochs", "1", "--method", "pareto-mtl", "--set", "epsilon=abc"],
            "'epsilon' must be at least 0 and under 1. Got",
        ),
        (
            ["run", "toys:make", "--epochs", "1", "--method", "pareto-mtl", "--set", "rescale=false"],
            "'rescale' must be True or False. Got 'false'",
        ),
        (
            ["run", "toys:make", "--epochs", "1", "--method", "torchjd:UPGrad", "--set", "options=a"],
            "'--set' must fit the options of 'torchjd:UPGrad'. Got options=a: 'options' must be a dictionary",
        ),
        (["run", "toys:needs"], "'PROBLEM' must be a Problem, or a function that makes one from what --with sets. Got"),
        (["run", "broken:problem"], "'tasks' must be names. Got 1 instead. This came from importing 'broken'."),
        (["run", "toys:make", "--epochs", "1", "--device", "foo"], "'device' must be available. Got 'foo'"),
        (["run", "toys:make", "--epochs", "1", "--learning-rate", "-1"], "'--learning-rate' must not be negative"),
        (["compare", "toys:make", "--epochs", "1", "--methods", "linear,typo"], "'method' must be one of"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_two(here: Path, arguments: list[str], message: str) -> None:
    text = " ".join(call(*arguments, code=2).split())
    assert message in text
    assert "Traceback" not in text


def test_errors_in_the_users_code_keep_their_traceback(here: Path) -> None:
    found = CliRunner().invoke(app, ["run", "toys:raises", "--epochs", "1"])
    assert found.exit_code == 1
    assert isinstance(found.exception, ZeroDivisionError)


def test_bad_selections_are_named(here: Path) -> None:
    run("--preferences", "2", "--out", "first")
    assert "numbers separated by commas" in call("select", "first", "--direction", "a,b", code=2)
    assert "'--bound' must be NAME=NUMBER" in call("select", "first", "--bound", "sum", "--best", "sum", code=2)
    assert "'--at-least' must be NAME=NUMBER" in call("select", "first", "--at-least", "sum=x", "--best", "sum", code=2)
    twice = call("select", "first", "--at-most", "sum=1", "--at-most", "sum=2", "--best", "sum", code=2)
    assert "must be given once for each name. Got 'sum' twice" in " ".join(twice.split())
    names = call("select", "first", "--at-most", "accuracy:sum=1", "--best", "sum", code=2)
    assert "must name one of ['sum', 'product', 'worst'], measured on 'val'" in " ".join(names.split())
    assert "must be given" in call("select", "first", code=2)
    assert "'--split' must be one of" in call("show", "first", "--split", "dev", code=2)
    call("select", "first", "--importance", "1,1", "--save", "first/config.json/x.safetensors", code=2)


def test_compare_prints_a_table_and_a_verdict(here: Path) -> None:
    arguments = ["compare", "toys:make", "--epochs", "2", "--seeds", "2", "--methods", "pareto-mtl,linear,single-task"]
    text = call(*arguments, "--preferences", "3", "--out", "c")
    assert "±" in text
    assert "single-task" in text
    assert "separate networks" in text
    assert "has the largest mean hypervolume on validation" in text
    table = text[: text.index("Ranked by")]
    assert max(len(line.rstrip()) for line in table.splitlines()) <= 80
    for words in ("tight", "% of", "Δm %", "region", "angle", "regret", "R2", "IGD+"):
        assert words in table
    assert "Tight hypervolume: just beyond the best models of all methods, (" in text
    assert "below zero is better" in text
    assert (
        "Regret: what users with random utilities lose who choose from one run on validation and are measured on test."
        in text
    )
    rows = json.loads((here / "c" / "compare.json").read_text())["rows"]
    assert len(rows) == 6
    assert {row["preferences"] for row in rows if row["method"] == "single-task"} == {2}
    assert (here / "c" / "compare.png").stat().st_size > 5000
    costs = json.loads((here / "c" / "compare-cost.json").read_text())
    assert [len(curve["hypervolumes"]) for curve in costs["curves"]] == [2] * 4, "two epochs, two methods, two seeds"
    assert "Hypervolume against cost: c/compare-cost.png" in text
    before = (here / "c" / "compare.json").read_text()
    again = json.loads(call(*arguments, "--preferences", "3", "--out", "c", "--json"))
    assert (here / "c" / "compare.json").read_text() == before, "what is there is not trained again"
    assert again["split"] == "val"
    assert [(each["split"], each["test"]["split"]) for each in again["methods"]] == [("val", "test")] * 3
    assert set(again["tight_reference"]) == {"val", "test"}
    for each in again["methods"]:
        apart = each["method"] == "single-task"
        for part in (each, each["test"]):
            assert part["tight_hypervolume"]["mean"] >= 0
            assert (part["box_share"] is None, part["delta_m"] is None) == (apart, apart)
            assert all((part[name] is None) == apart for name in ("regret", "r2", "igd_plus"))
            assert len(part["regrets"]) == len(part["r2_values"]) == len(part["igd_plus_values"]) == (0 if apart else 2)
        assert (each["in_region"] is None) == (each["median_angle"] is None) == (each["method"] != "pareto-mtl")
    assert "must hold results of the same problem" in call(*arguments, "--preferences", "4", "--out", "c", code=2)


def test_an_interrupted_comparison_has_exit_code_130(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*arguments: Any, **options: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr("paretomtl.compare._runs.fit", stop)
    assert "Stopped" in call("compare", "toys:make", "--epochs", "2", "--seeds", "1", code=130)


def test_compare_with_one_seed_shows_the_fronts(here: Path) -> None:
    text = call(
        "compare", "toys:ready", "--epochs", "2", "--seeds", "1", "--methods", "pareto-mtl,mgda", "--preferences", "2"
    )
    assert "pareto-mtl, 2 models, ranked by losses on validation, test next to it" in text
    assert "One run each cannot tell" in text
    assert max(map(len, text.splitlines()[:12])) <= 80


def test_completion_knows_the_names() -> None:
    from paretomtl.cli._options import complete_method, complete_problem

    assert complete_problem("multi-f") == ["multi-fashion", "multi-fashion-mnist", "multi-fashion-3"]
    assert set(complete_method("")) == set(METHODS)
    assert "--install-completion" in call("--help")


def test_methods_come_from_the_recipe() -> None:
    digits = pytest.importorskip("sklearn.datasets")
    assert digits
    problem = find_problem("multi-digits")
    assert find_method("pareto-mtl", [], problem) == pm.ParetoMTL(rescale=True)
    assert find_method("pareto-mtl", ["epsilon=0.2"], problem) == pm.ParetoMTL(rescale=True, epsilon=0.2)
    assert find_method("gradnorm", [], problem) == pm.GradNorm()


@pytest.mark.system
def test_ctrl_c_leaves_a_checkpoint_and_exit_code_130(here: Path) -> None:
    arguments = [
        "run",
        "toys:make",
        "--epochs",
        "100000",
        "--out",
        "long",
        "--progress",
        "quiet",
        "--strategy",
        "sequential",
    ]
    command: list[Any] = [sys.executable, "-m", "paretomtl", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={**os.environ})
    log = here / "long" / "log.jsonl"
    for _ in range(600):
        if log.exists() and log.read_text().count("epoch") > 3:
            break
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    text, _ = process.communicate(timeout=60)
    assert process.returncode == 130, text
    assert "Stopped early." in text
    assert not pm.Front.load(here / "long").complete
    assert (here / "long" / "checkpoint.safetensors").exists()


def test_refine_trains_around_a_solution_as_the_run_was_trained(here: Path) -> None:
    run = ("run", "toys:make", "--epochs", "3", "--seed", "4", "--batch-size", "16", "--out", "first")
    call(*run, "--method", "pareto-mtl", "--set", "epsilon=0.3", "--progress", "quiet", "--device", "cpu")
    proposed = call("refine", "first", "--around", "1", "--count", "3", "--propose")
    assert "Directions around model 1 of first, by its losses on validation:" in proposed
    assert not (here / "first-around-1").exists()
    found = CliRunner().invoke(
        app, ["refine", "first", "--trust", "--around", "1", "--count", "3", "--progress", "quiet", "--json"]
    )
    facts = json.loads(found.stdout)
    assert facts["folder"] == "first-around-1"
    configs = [json.loads((here / name / "config.json").read_text()) for name in ("first", "first-around-1")]
    assert len(configs[1]["preferences"]) == 3
    same = ("method", "epochs", "batch_size", "optimizer", "seed", "data", "precision")
    assert [configs[0][name] for name in same] == [configs[1][name] for name in same]
    call("refine", "first", "--trust", "--around", "1", "--epochs", "2", "--out", "second", "--progress", "quiet")
    assert json.loads((here / "second" / "config.json").read_text())["epochs"] == 2


@pytest.mark.parametrize(
    "words",
    [("--preferences", "1"), ("--preferences", "1", "--method", "auto", "--set", "scale=(1.0,2.0)"),
     ("--preferences", "reachable:1", "--method", "pareto-mtl", "--set", "epsilon=0.2")],
)  # fmt: skip
def test_refine_goes_on_with_weights_where_a_probe_found_no_directions(here: Path, words: tuple[str, ...]) -> None:
    """One model of two tasks has no ratios to tell apart, so that its rows stay importances."""
    run(*words, "--out", "first")
    assert json.loads(call("show", "first", "--json"))["reading"] == "importance"
    text = call("refine", "first", "--trust", "--around", "0", "--count", "3", "--progress", "quiet", "--out", "closer")
    assert text.startswith("Importances around model 0 of first:")
    front = pm.Front.load(here / "closer")
    assert (front.method, front.reading, len(front)) == ("linear", "importance", 3)
    assert front.scale is not None
    assert torch.equal(front.scale, pm.Front.load(here / "first").scale.expand(3, 2))  # type: ignore[union-attr]


def test_refine_names_what_cannot_be_refined(here: Path) -> None:
    assert "must be the folder of a front" in call("refine", "nowhere", "--around", "1", code=2)
    call("run", "toys:make", "--epochs", "1", "--out", "first", "--progress", "quiet", "--device", "cpu")
    assert "'k' must be one of the models trained" in call("refine", "first", "--around", "9", code=2)
    assert "'angle' must be over 0" in call("refine", "first", "--around", "1", "--angle", "0", code=2)
    asked = here / "first" / "asked.json"
    asked.write_text('{"problem": 1}')
    assert "must hold the options of a run. It is damaged" in call("refine", "first", "--around", "1", code=2)
    asked.unlink()
    text = " ".join(call("refine", "first", "--around", "1", code=2).split())
    assert "'first' has no asked.json; in Python, use pm.fit(problem, method, front.around(k))" in text


@pytest.mark.parametrize(
    ("arguments", "parsed"),
    [
        (["p", "--ray"], ["p", "--ray=here"]),
        (["--ray", "p"], ["--ray=here", "p"]),
        (["p", "--ray", "--seed", "1"], ["p", "--ray=here", "--seed", "1"]),
        (["--ray", "package.module:problem"], ["--ray=here", "package.module:problem"]),
        (["p", "--ray", "10.0.0.1:6379"], ["p", "--ray", "10.0.0.1:6379"]),
        (["p", "--ray", "ray://head:10001"], ["p", "--ray", "ray://head:10001"]),
        (["p", "--ray", "auto"], ["p", "--ray", "auto"]),
        (["p", "--ray=head:1"], ["p", "--ray=head:1"]),
    ],
)
def test_an_address_of_ray_may_be_left_out(arguments: list[str], parsed: list[str]) -> None:
    assert with_place(arguments) == parsed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--ray=nonsense"], "'--ray' must be HOST:PORT, ray://HOST:PORT or auto, or stand alone. Got 'nonsense'"),
        (["--shard-size", "2"], "'--cpus' and '--shard-size' must come with --ray"),
        (["--ray", "--shard-size", "0"], "'shard_size' must be a whole number of at least 1"),
        (["--ray", "--device", "cuda:1"], "'device' must be"),
    ],
)
def test_bad_options_for_ray(here: Path, arguments: list[str], message: str) -> None:
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'paretomtl[ray]'")
    assert message in " ".join(run(*arguments, code=2).split())


@pytest.mark.system
def test_run_and_compare_on_ray(here: Path) -> None:
    """On a Ray of its own, with a problem that only this folder has."""
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'paretomtl[ray]'")
    with pm.RayExecutor():
        three = ("--method", "pareto-mtl", "--preferences", "3")  # the probe of auto needs all models in one place
        run(*three, "--out", "whole")
        run(*three, "--out", "parts", "--ray", "--shard-size", "2")
        whole, parts = (json.loads(call("show", name, "--json")) for name in ("whole", "parts"))
        assert parts["losses"] == whole["losses"]
        assert parts["strategy"].startswith("2 shards; ")
        call("refine", "parts", "--around", "1", "--propose")
        common = ["--epochs", "2", "--methods", "linear,mgda", "--seeds", "2", "--strategy", "sequential"]
        call("compare", "toys:make", *common, "--out", "here")
        call("compare", "toys:make", *common, "--out", "there", "--ray")
    rows = [load_rows(here / name / "compare.json") for name in ("here", "there")]
    assert [row["losses"] for row in rows[0]] == [row["losses"] for row in rows[1]]
