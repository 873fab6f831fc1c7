"""Every example runs, and prints what its reader is promised."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "examples"
PROMISED = {
    "own_model.py": ["Front of 5 solutions: sensors", "failures…", "chosen: Sensors of subproblem"],
    "own_loop.py": ["direction (1.00, 0.00)", "direction (0.71, 0.71)", "direction (0.00, 1.00)", "feasible"],
    "shared_loop.py": ["1 processes: losses", "feasible"],
    "missing_labels.py": ["Front of 3 solutions: half-labelled", "topic"],
    "four_tasks.py": ["Front of 10 solutions: feed", "weighted by (1, 1, 1, 5)"],
}


def test_no_example_is_forgotten() -> None:
    assert {path.name for path in FOLDER.glob("*.py")} == set(PROMISED)


@pytest.mark.parametrize("name", PROMISED)
def test_it_runs(name: str) -> None:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    found = subprocess.run([sys.executable, str(FOLDER / name)], capture_output=True, text=True, env=environment)
    assert found.returncode == 0, found.stderr
    for words in PROMISED[name]:
        assert words in found.stdout
    assert "nan" not in found.stdout
    assert "non-finite" not in found.stdout
