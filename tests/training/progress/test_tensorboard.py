"""TensorBoard files."""

from __future__ import annotations

from pathlib import Path

import pytest

import paretomtl as pm
from _helpers.networks import classes, fit, problem
from _helpers.reports import report


def test_tensorboard_files_can_be_read(tmp_path: Path) -> None:
    loading = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    fit(problem(val=classes(30, seed=1)), callbacks=[pm.TensorBoard(tmp_path)])
    events = loading.EventAccumulator(str(tmp_path))
    events.Reload()
    names = events.Tags()["scalars"]
    assert {"train/a/0", "weight/b/2", "val/a/1", "val/hypervolume"} <= set(names)
    assert [event.step for event in events.Scalars("train/a/0")] == [1, 2, 3, 4]


def test_tensorboard_tells_seeds_apart(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    names: list[str] = []
    board = pm.TensorBoard(tmp_path)
    monkeypatch.setattr(board, "_add", lambda name, value, epoch: names.append(name))
    board(report(subproblems=[0, 0], seeds=[4, 7]))
    board.close()
    assert {"train/a/0/seed-4", "weight/b/0/seed-7"} <= set(names)
