"""The script that follows a minibatch, a checkpoint and commands through the files."""

from __future__ import annotations

import pytest

from _helpers.places import ROOT
from walk import files_of, walks_of


@pytest.mark.study
def test_walks_pass_the_files_that_do_the_work() -> None:
    walks = walks_of(ROOT)
    files = {name: files_of(walk) for name, walk in walks.items()}
    assert {"training/run/loop.py", "engine/step.py", "methods/_pareto_mtl.py", "core/_min_norm.py"} <= files[
        "one step"
    ]
    assert {"engine/runners/cuda_graph.py", "engine/step.py"} <= files["one step, captured"]
    assert "engine/step.py" not in files["one step, replayed"], "the graph has the step"
    assert "training/settings/settings.py" in files["before the first step"] - files["one step"]
    assert "_support/files/atomic_files.py" in files["checkpoint, written"]
    assert "engine/step.py" not in files["checkpoint, written"], "what a step passes anyway does not count"
    assert "runs/checkpoint_file.py" in files["checkpoint, resumed"]
    assert "cli/commands/run.py" in files["command run"]
    assert {"cli/commands/reproduce.py", "paper/runner.py", "engine/step.py"} <= files["one study"]
    for walk in walks.values():
        assert len(set(walk)) == len(walk) > 0
        assert all(caller.split(":")[0] != callee.split(":")[0] for caller, callee in walk)
