"""Every example runs, and prints what its reader is promised."""

from __future__ import annotations

import contextlib
import io
import runpy

import pytest

from _helpers.places import ROOT

FOLDER = ROOT / "examples"
PROMISED = {
    "own_model.py": ["Front of 5 models: sensors", "failures found", "chosen: Sensors of model"],
    "own_loop.py": ["direction (1.00, 0.00)", "direction (0.71, 0.71)", "direction (0.00, 1.00)", "feasible"],
    "shared_loop.py": ["1 processes: losses", "feasible"],
    "missing_labels.py": ["Front of 3 models: half-labelled", "topic"],
    "task_loaders.py": ["Front of 3 models: two data sets", "smile", "accuracy"],
    "other_fronts.py": ["Front of 5 models: sensors, fixed weights", "weight 0.9", "hypervolume on val"],
    "four_tasks.py": ["Front of 10 models: feed", "weighted by (1, 1, 1, 5)"],
}


def test_no_example_is_forgotten() -> None:
    assert {path.name for path in FOLDER.glob("*.py")} == set(PROMISED)


@pytest.mark.parametrize("name", PROMISED)
def test_it_runs(name: str) -> None:
    with contextlib.redirect_stdout(io.StringIO()) as stdout:
        runpy.run_path(str(FOLDER / name), run_name="__main__")
    printed = stdout.getvalue()
    for words in PROMISED[name]:
        assert words in printed
    assert "nan" not in printed
    assert "non-finite" not in printed
