from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from paretomtl.cli._app import app

runner = CliRunner(env={"COLUMNS": "100", "NO_COLOR": "1"})


def test_reproduce_writes_results_and_figures_and_prints_the_claims(tmp_path: Path) -> None:
    found = runner.invoke(app, ["reproduce", "weights", "--smoke", "--out", str(tmp_path)])
    assert found.exit_code == 0, found.output
    assert "What the paper claims" in found.output
    assert "A smoke run" in found.output
    names = {path.name for path in tmp_path.iterdir()}
    assert {"weights.json", "weights.png", "weights.svg"} <= names
    stored = json.loads((tmp_path / "weights.json").read_text())
    assert stored["command"] == "paretomtl reproduce weights --smoke"
    assert all(len(line) <= 100 for line in found.output.splitlines() if "│" in line)


@pytest.mark.study
def test_a_study_goes_on_where_it_stopped_and_is_drawn_without_training(tmp_path: Path) -> None:
    """One cell at first; the rest by the same command; then nothing but the figures."""
    asked = ["reproduce", "ablation-init", "--smoke", "--out", str(tmp_path)]
    first = runner.invoke(app, [*asked, "--only", "no initial phase"])
    assert first.exit_code == 0, first.output
    assert "Missing 2 cells: multi-fashion / paper's settings / pareto-mtl;" in " ".join(first.output.split())
    assert "Not judged before all cells are trained" in first.output
    second = runner.invoke(app, asked)
    assert "6 runs, 2 cells trained now" in second.output
    assert "without the initial phase" in second.output
    more = runner.invoke(app, [*asked, "--seeds", "3"])
    assert "9 runs, 3 cells trained now" in more.output
    stored = json.loads((tmp_path / "ablation-init.json").read_text())
    assert stored["command"] == "paretomtl reproduce ablation-init --smoke --seeds 3"
    drawn = runner.invoke(app, [*asked, "--draw", "--json"])
    assert drawn.exit_code == 0, drawn.output
    facts = json.loads(drawn.stdout)
    assert (facts["size"], facts["missing"], len(facts["claims"])) == ("smoke", [], 2)


@pytest.mark.study
def test_rows_of_other_settings_are_named_and_trained_anew_when_asked(tmp_path: Path) -> None:
    asked = ["reproduce", "ablation-init", "--smoke", "--out", str(tmp_path)]
    runner.invoke(app, asked)
    path = tmp_path / "ablation-init.json"
    path.write_text(path.read_text().replace("epochs=2;", "epochs=7;", 1))
    found = runner.invoke(app, asked)
    assert found.exit_code == 2
    assert "the first differs in epochs: stored 7, now 2. --again trains" in " ".join(found.output.split())
    again = runner.invoke(app, [*asked, "--again"])
    assert again.exit_code == 0, again.output
    assert "6 runs, 1 cells trained now" in again.output
    assert (tmp_path / "ablation-init-old.json").exists()


def test_list_names_everything() -> None:
    found = runner.invoke(app, ["list", "--json"])
    assert found.exit_code == 0
    groups = json.loads(found.output)
    assert list(groups) == ["method", "problem", "study"]
    assert "pareto-mtl" in groups["method"]
    assert "synthetic" in groups["problem"]
    assert "synthetic" in runner.invoke(app, ["list"]).output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["reproduce", "unknown"], "must be one of synthetic"),
        (["reproduce", "synthetic", "--quick", "--smoke"], "must not both be given"),
        (["reproduce", "synthetic", "--seeds", "0"], "'seeds' must be 1 or more. Got 0 instead."),
        (["reproduce", "synthetic", "--out", "/proc/nowhere"], "must be a folder that can be written"),
        (["unknown"], "No such command"),
    ],
)
def test_bad_input_is_named_and_exits_with_two(arguments: list[str], message: str) -> None:
    found = runner.invoke(app, arguments)
    assert found.exit_code == 2
    assert message in " ".join(found.output.replace("│", " ").split())


def test_the_installed_command_runs() -> None:
    found = subprocess.run([sys.executable, "-m", "paretomtl", "--version"], capture_output=True, text=True, check=True)
    assert found.stdout.startswith("paretomtl 0.")


@pytest.mark.system
def test_a_missing_extra_says_what_brings_it(tmp_path: Path) -> None:
    """With typer out of reach the command exits with two and a remedy; the library itself still trains."""
    (tmp_path / "typer.py").write_text("raise ModuleNotFoundError(\"No module named 'typer'\", name='typer')")
    (tmp_path / "moocore.py").write_text("raise ModuleNotFoundError(\"No module named 'moocore'\", name='moocore')")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    found = subprocess.run([sys.executable, "-m", "paretomtl"], capture_output=True, text=True, env=environment)
    assert found.returncode == 2
    assert "pip install typer rich (or pip install '.[cli]'" in found.stderr
    code = (
        "import paretomtl as pm; f = pm.fit(pm.problems.synthetic(), preferences=2, epochs=2, device='cpu')\n"
        "try: f.hypervolume([1, 1])\nexcept ModuleNotFoundError as e: print(e)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert "pip install moocore (or" in found.stdout


def test_importing_the_library_imports_torch_and_numpy_alone() -> None:
    code = (
        "import sys, paretomtl\n"
        "print([m for m in ('moocore', 'matplotlib', 'torchjd', 'typer', 'rich', 'scipy') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
