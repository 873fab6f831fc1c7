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
    found = runner.invoke(app, ["reproduce", "synthetic", "--smoke", "--out", str(tmp_path)])
    assert found.exit_code == 0, found.output
    assert "What the paper claims" in found.output
    assert "A smoke run" in found.output
    names = {path.name for path in tmp_path.iterdir()}
    assert {"synthetic.json", "synthetic-convergence.png", "synthetic-difficulty.svg"} <= names
    stored = json.loads((tmp_path / "synthetic.json").read_text())
    assert stored["command"] == "paretomtl reproduce synthetic --smoke"
    assert all(len(line) <= 100 for line in found.output.splitlines() if "│" in line)


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


def test_a_missing_extra_says_what_brings_it(tmp_path: Path) -> None:
    """With typer out of reach the command exits with two and a remedy; the library itself still trains."""
    (tmp_path / "typer.py").write_text("raise ModuleNotFoundError(\"No module named 'typer'\", name='typer')")
    (tmp_path / "moocore.py").write_text("raise ModuleNotFoundError(\"No module named 'moocore'\", name='moocore')")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    found = subprocess.run([sys.executable, "-m", "paretomtl"], capture_output=True, text=True, env=environment)
    assert found.returncode == 2
    assert "pip install 'paretomtl[cli]'" in found.stderr
    code = (
        "import paretomtl as pm; f = pm.fit(pm.problems.synthetic(), preferences=2, epochs=2, device='cpu')\n"
        "try: f.hypervolume([1, 1])\nexcept ModuleNotFoundError as e: print(e)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert "pip install 'paretomtl[indicators]'" in found.stdout


def test_importing_the_library_imports_torch_and_numpy_alone() -> None:
    code = (
        "import sys, paretomtl\n"
        "print([m for m in ('moocore', 'matplotlib', 'torchjd', 'typer', 'rich', 'scipy') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
