"""Ends of a run: patience, and callbacks that stop or fail."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import paretomtl as pm
from _helpers.fronts import assert_equal
from _helpers.networks import problem
from _helpers.short_runs import fit, left, sgd, small
from paretomtl.runs import read_log
from paretomtl.training import SerialExecutor

# Patience.


def test_patience_ends_a_run_once_no_model_is_better_than_so_many_epochs_ago() -> None:
    """Of each number of epochs, ``keep="best"`` says which was the last one that was taken for any model."""
    ended = fit(epochs=30, patience=2)
    count = len(ended.history["val"])
    last = [max(fit(epochs=epoch, keep="best").epochs) for epoch in range(1, count + 1)]
    assert [epoch - best for epoch, best in enumerate(last, 1)][-1] == 2
    assert all(epoch - best < 2 for epoch, best in enumerate(last[:-1], 1))
    assert_equal(ended, fit(epochs=count))
    assert ended.ended == f"patience: no model improved on validation in 2 epochs, after {count} of 30 epochs"
    assert f"seed 0, ended by {ended.ended};" in repr(ended)


@pytest.mark.parametrize("keep", ["last", "best"])
def test_patience_outlives_a_kill(keep: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {"epochs": 30, "patience": 2, "keep": keep}
    whole = fit(**options)
    count = len(whole.history["val"])
    left(count - 1, **options, out=tmp_path)
    front = fit(**options, out=tmp_path, resume=True)
    assert_equal(front, whole)
    assert front.ended == whole.ended == pm.Front.load(tmp_path).ended == read_log(tmp_path)[-1]["ended"]
    assert_equal(fit(**options, out=tmp_path, resume=True), whole)


def test_patience_counts_the_models_of_all_seeds() -> None:
    options: dict[str, Any] = {"epochs": 30, "batch_size": 12, "optimizer": sgd, "strategy": "sequential"}
    fronts = pm.fit_seeds(small(), "linear", 2, seeds=[0, 1], patience=2, device="cpu", **options)
    (count,) = {len(front.history["val"]) for front in fronts}
    best = pm.fit_seeds(small(), "linear", 2, seeds=[0, 1], keep="best", device="cpu", **{**options, "epochs": count})
    assert max(epoch for front in best for epoch in front.epochs) == count - 2
    assert all(front.complete and front.ended.startswith("patience") for front in fronts)


def test_patience_that_cannot_be_is_refused() -> None:
    for patience in (0, -1, True, 2.0, "2"):
        with pytest.raises(ValueError, match=r"'patience' must be a whole number of at least 1. Got"):
            fit(patience=patience)
    with pytest.raises(ValueError, match="'patience' must be None for a problem without a validation split"):
        fit(problem(), patience=1)
    with pytest.raises(ValueError, match="'patience' must be None for a run in shards"):
        fit(patience=1, executor=SerialExecutor(1))


# Callbacks that stop, or fail.


def test_a_callback_stops_a_run_that_can_be_resumed(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        front = fit(out=tmp_path, callbacks=[lambda report: report.epoch == 2, lambda report: None])
    assert (front.complete, front.ended) == (False, "callback, after 2 of 4 epochs")
    assert torch.equal(front.models.stacked()["trunk.0.weight"], fit(epochs=2).models.stacked()["trunk.0.weight"])
    assert ", stopped early (callback, after 2 of 4 epochs);" in repr(pm.Front.load(tmp_path))
    assert_equal(fit(out=tmp_path, resume=True), fit())


def test_a_callback_that_stops_at_the_last_epoch_changes_nothing() -> None:
    front = fit(epochs=1, callbacks=[lambda report: True])
    assert (front.complete, front.ended) == (True, "after 1 epoch")


def test_a_callback_that_returns_something_else_is_named() -> None:
    def chatty(report: Any) -> Any:
        return "epoch done"

    with pytest.raises(TypeError, match=r"'callbacks' must return None, or True.*chatty' returned 'epoch done'") as e:
        fit(callbacks=[chatty])
    assert len(e.value.front.history["losses"]) == 1  # type: ignore[attr-defined]


class Pruned(Exception):
    """As optuna.TrialPruned."""


class Failing:
    """A listener that fails in one of its calls."""

    def __init__(self, where: str) -> None:
        self.where = where

    def _fail(self, where: str) -> None:
        if self.where == where:
            raise Pruned

    def __call__(self, report: Any) -> None:
        if report.epoch == 2:
            self._fail("call")

    def tick(self, share: float, seconds: float) -> None:
        self._fail("tick")

    def close(self) -> None:
        self._fail("close")


@pytest.mark.parametrize(("where", "epochs"), [("call", 2), ("tick", 0), ("close", 4)])
def test_a_listener_that_fails_loses_nothing(
    where: str, epochs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("paretomtl.training.run.reporting._TICK_SECONDS", 0.0)
    for out in (None, tmp_path):
        with pytest.raises(Pruned) as caught:
            fit(callbacks=[Failing(where)], out=out)
        front = caught.value.front  # type: ignore[attr-defined]
        assert len(front.history["losses"]) == epochs
        assert front.complete == (epochs == 4)
        notes = " ".join(caught.value.__notes__)
        assert "this error has it as its attribute 'front'" in notes
        assert (f"; stored in '{tmp_path}', too." in notes) == (out is not None)
        assert where == "close" or (f"is in '{tmp_path}': the same call with resume" in notes) == (out is not None)
    assert torch.equal(pm.Front.load(tmp_path).losses["val"], front.losses["val"])
    assert_equal(fit(out=tmp_path, resume=True), fit())


def test_an_error_of_the_run_is_not_hidden_by_one_of_closing() -> None:
    with pytest.raises(ValueError, match="'losses' must return") as caught:
        fit(small(losses=lambda outputs, targets: outputs[0].mean()), callbacks=[Failing("close")])
    assert "Closing a callback failed, too" in caught.value.__notes__[-1]


# Shards.


def test_a_callback_stops_shards_and_its_error_keeps_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paretomtl.training.shards.job._SEND_SECONDS", 0.0)
    parts: dict[str, Any] = {"out": tmp_path, "executor": SerialExecutor(1)}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        front = fit(callbacks=[lambda report: True], **parts)
    assert (front.complete, front.ended) == (False, "callback, after 0 of 2 shards")
    with pytest.raises(Pruned) as caught:
        fit(callbacks=[Failing("call")], resume=True, **parts)
    assert not caught.value.front.complete  # type: ignore[attr-defined]
    (note,) = [note for note in caught.value.__notes__ if "Nothing that was trained" in note]
    assert f"stored in '{tmp_path}', too" in note
    assert_equal(fit(resume=True, **parts), fit())


# What is stored.


def test_a_front_that_does_not_say_why_it_ended_is_read(tmp_path: Path) -> None:
    stored = fit(epochs=1)
    replace(stored, ended="").save(tmp_path)
    assert '"ended"' not in (tmp_path / "front.json").read_text()
    assert pm.Front.load(tmp_path).ended == ""
    stored.save(tmp_path)
    assert pm.Front.load(tmp_path).ended == "after 1 epoch"
