"""Ends of a run: patience, callbacks that stop or fail, more epochs, and runs that begin with the weights of others."""

from __future__ import annotations

import sys
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.optim.lr_scheduler import CosineAnnealingLR, OneCycleLR, StepLR

import paretomtl as pm
from _helpers import networks
from _helpers.networks import Normed, classes, problem
from paretomtl.runs import inspect_run, read_log
from paretomtl.runs.doctor import worst
from paretomtl.training import SerialExecutor
from paretomtl.training._state import RunState
from training.test_resume import assert_equal

STEPS = 2
"""In an epoch."""


def sgd(parameters: Any) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr=1.0)


def adam(parameters: Any) -> torch.optim.Optimizer:
    return torch.optim.Adam(parameters, lr=0.1)


def standing(parameters: Any) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr=0.0)


def small(**options: Any) -> pm.Problem:
    return problem(train=classes(24), val=classes(16, seed=3), **options)


def fit(of: pm.Problem | None = None, method: Any = "linear", preferences: Any = 2, **options: Any) -> pm.Front:
    usual = {"epochs": 4, "batch_size": 12, "optimizer": sgd, "strategy": "sequential"}
    return networks.fit(of or small(), method, preferences, **{**usual, **options})


def leave_at(epoch: int) -> Any:
    """A callback in which the process ends; there is a checkpoint, and no front is made."""

    def leave(report: Any) -> None:
        if report.epoch == epoch:
            sys.exit()

    return leave


def left(epoch: int, **options: Any) -> None:
    with pytest.raises(SystemExit):
        fit(callbacks=[leave_at(epoch)], **options)


# Patience.


def test_patience_ends_a_run_once_no_model_is_better_than_so_many_epochs_ago() -> None:
    """Of each number of epochs, ``keep="best"`` says which was the last one that was taken for any model."""
    ended = fit(epochs=30, patience=2)
    count = len(ended.history["val"])
    last = [max(fit(epochs=epoch, keep="best").epochs) for epoch in range(1, count + 1)]
    assert [epoch - best for epoch, best in enumerate(last, 1)][-1] == 2
    assert all(epoch - best < 2 for epoch, best in enumerate(last[:-1], 1))
    assert_equal(ended, fit(epochs=count))
    assert ended.ended == f"patience: no model improved on val in 2 epochs, after {count} of 30 epochs"
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
    assert torch.equal(front.parameters["trunk.0.weight"], fit(epochs=2).parameters["trunk.0.weight"])
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
    monkeypatch.setattr("paretomtl.training._reporting._TICK_SECONDS", 0.0)
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
    assert "could not be closed, either" in caught.value.__notes__[-1]


# More epochs.


def without_plan(state: RunState, stored: Any = RunState.stored) -> dict[str, Any]:
    """A checkpoint of a version that did not say for how many epochs it was planned."""
    return {name: value for name, value in stored(state).items() if name != "epochs"}


@pytest.mark.parametrize(
    ("method", "optimizer", "keep"),
    [(pm.ParetoMTL(initial_steps=3), sgd, "best"), ("linear", adam, "last")],
    ids=["best by SGD", "last by Adam"],
)
def test_a_run_that_is_trained_longer_is_that_of_so_many_epochs(
    method: Any, optimizer: Any, keep: str, tmp_path: Path
) -> None:
    """Though its process is killed while it goes on, and once more before it does."""
    options: dict[str, Any] = {"method": method, "optimizer": optimizer, "keep": keep}
    fit(epochs=2, out=tmp_path, **options)
    left(3, epochs=4, out=tmp_path, resume=True, **options)
    assert not pm.Front.load(tmp_path).complete
    with pytest.raises(ValueError, match=r"'epochs' must be that of the run in .*, or more, to resume it: 4. Got 2"):
        fit(epochs=2, out=tmp_path, resume=True, **options)
    front = fit(epochs=5, out=tmp_path, resume=True, **options)
    assert_equal(front, fit(epochs=5, **options))
    assert front.ended == "after 5 epochs"
    assert worst(inspect_run(tmp_path)) == "ok"
    assert [event["epochs"] for event in read_log(tmp_path) if event["event"] == "resume"] == [4, 5]


def test_a_kill_before_the_configuration_is_written_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = fit(epochs=2, out=tmp_path)
    monkeypatch.setattr("paretomtl.runs.folder.RunFolder.begin", lambda *_: sys.exit())
    with pytest.raises(SystemExit):
        fit(epochs=3, out=tmp_path, resume=True)
    monkeypatch.undo()
    assert not pm.Front.load(tmp_path).complete
    assert_equal(fit(epochs=2, out=tmp_path, resume=True), whole)
    assert worst(inspect_run(tmp_path)) == "ok"


def test_schedules_of_runs_that_are_trained_longer(tmp_path: Path) -> None:
    """The user's own go on as they are; a recipe's are planned for the new number, and moved to where they stand."""
    options: dict[str, Any] = {"scheduler": lambda o: StepLR(o, 1, 0.5)}
    fit(epochs=1, out=tmp_path / "own", **options)
    assert_equal(fit(epochs=3, out=tmp_path / "own", resume=True, **options), fit(epochs=3, **options))
    cycle = {"scheduler": lambda o: OneCycleLR(o, 0.1, total_steps=2)}
    fit(epochs=2, out=tmp_path / "cycle", **cycle)
    with pytest.raises(ValueError, match=r"'scheduler' must have room for the 3 times .* total_steps=2"):
        fit(epochs=3, out=tmp_path / "cycle", resume=True, **cycle)


@pytest.mark.parametrize(("schedule", "saved"), [("epoch", True), ("step", False)])
def test_a_planned_schedule_is_moved_to_the_present_step_of_its_new_plan(
    schedule: str, saved: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the process is killed before there is a checkpoint of the new plan, and an old version began."""
    rates: list[float] = []

    def noted(parameters: Any) -> torch.optim.Optimizer:
        made = torch.optim.SGD(parameters, lr=1.0)
        made.register_step_post_hook(lambda o, *_: rates.append(o.param_groups[0]["lr"]))
        return made

    recipe = pm.Recipe(optimizer=noted, scheduler=CosineAnnealingLR, schedule=schedule)
    of, options = small(recipe=recipe), {"preferences": 1, "optimizer": None, "out": tmp_path}
    if not saved:
        monkeypatch.setattr("paretomtl.training._state.RunState.stored", without_plan)
    fit(of, epochs=2, **options)
    monkeypatch.undo()
    planned = "the schedule was planned for 2 epochs, and goes on as planned for 4"
    if not saved:
        monkeypatch.setattr("paretomtl.training._checkpoint.Checkpoints.save", lambda self: None)
    with pytest.warns(UserWarning, match=planned):
        left(3, of=of, epochs=4, resume=True, **options)
    monkeypatch.undo()
    rates.clear()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        fit(of, epochs=4, resume=True, **options)
    assert [planned in str(each.message) for each in said] == [True] * (not saved)
    found = rates[-STEPS:]
    rates.clear()
    fit(of, epochs=4, **{**options, "out": None})
    assert found == pytest.approx(rates[-STEPS:])


def test_phases_of_a_method_stay_where_the_first_plan_put_them(tmp_path: Path) -> None:
    """The initial phase takes a fifth of the steps at most: of those that were planned when the run was begun."""
    options: dict[str, Any] = {"preferences": 3, "optimizer": lambda p: torch.optim.SGD(p, lr=0.01)}
    left(1, method="pareto-mtl", epochs=5, out=tmp_path, **options)
    longer = fit(method="pareto-mtl", epochs=10, out=tmp_path, resume=True, **options)
    one, other = (
        fit(method=pm.ParetoMTL(initial_steps=epochs * STEPS // 5), epochs=10, **options) for epochs in (5, 10)
    )
    assert_equal(longer, one)
    assert not torch.equal(one.losses["train"], other.losses["train"])
    assert_equal(fit(method="pareto-mtl", epochs=10, out=tmp_path, resume=True, **options), longer)


def test_a_run_whose_last_steps_are_special_is_not_trained_longer(tmp_path: Path) -> None:
    method = pm.ParetoMTL(release_steps=2)
    fit(method=method, out=tmp_path, epochs=2)
    with pytest.raises(ValueError, match=r"'epochs' must be that of the run .*: 2. Got 3 instead: the last steps"):
        fit(method=method, out=tmp_path, epochs=3, resume=True)
    assert pm.Front.load(tmp_path).complete


def test_a_run_that_patience_ended_goes_on_with_more_of_it_or_more_epochs(tmp_path: Path) -> None:
    options: dict[str, Any] = {"out": tmp_path, "resume": True}
    ended = fit(epochs=10, patience=1, **options)
    count = len(ended.history["val"])
    assert count < 9
    more = fit(epochs=10, patience=2, **options)
    assert_equal(more, fit(epochs=10, patience=2))
    with pytest.raises(ValueError, match=r"'patience' must be that of the run in .*, or more, .*: 2. Got 1 instead"):
        fit(epochs=10, patience=1, **options)
    longer = fit(epochs=12, patience=2, **options)
    assert len(longer.history["val"]) >= len(more.history["val"]) + 2
    assert worst(inspect_run(tmp_path)) == "ok"
    assert_equal(fit(epochs=12, **options), fit(epochs=12))


# Warm starts.


@pytest.fixture(scope="module")
def stored() -> pm.Front:
    return fit(preferences=[[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]], epochs=1, only=[0, 2])


def test_models_begin_with_the_weights_of_the_nearest_preference(stored: pm.Front) -> None:
    vectors = [[0.0, 2.0], [0.8, 0.2], [1.0, 0.0]]
    front = fit(preferences=vectors, start=stored, optimizer=standing, epochs=1)
    for name, tensor in stored.parameters.items():
        assert torch.equal(front.parameters[name], tensor[[1, 0, 0]]), name
    assert len(front.history["losses"]) == 1
    assert front.reference == stored.reference
    chosen = fit(preferences=vectors, start=stored, optimizer=standing, epochs=1, only=[2])
    assert torch.equal(chosen.parameters["trunk.0.weight"], front.parameters["trunk.0.weight"][2:])


def test_a_start_goes_with_its_number_where_rows_are_alike_or_mean_nothing() -> None:
    for method in ("linear", "mgda"):
        alike = fit(method=method, preferences=[[0.5, 0.5]] * 2, epochs=1)
        again = fit(method=method, preferences=[[0.5, 0.5]] * 2, epochs=1, start=alike, optimizer=standing)
        assert torch.equal(again.parameters["trunk.0.weight"], alike.parameters["trunk.0.weight"])
    with pytest.raises(ValueError, match=r"'start' must have the subproblems \[0, 1, 2\] .* without \[2\]"):
        fit(method="mgda", preferences=3, start=alike)


def test_a_start_belongs_to_the_run(stored: pm.Front, tmp_path: Path) -> None:
    left(1, start=stored, out=tmp_path, epochs=2)
    for other in (None, replace(stored, parameters={n: t + 1 for n, t in stored.parameters.items()})):
        with pytest.raises(ValueError, match=r"'start' must be that of the run in .* to resume it"):
            fit(start=other, out=tmp_path, epochs=2, resume=True)
    whole = fit(start=stored, epochs=2)
    assert_equal(fit(start=stored, out=tmp_path, epochs=2, resume=True), whole)
    assert_equal(fit(start=stored, epochs=2, executor=SerialExecutor(1)), replace(whole, strategy=""))


def test_a_start_that_cannot_be_is_refused(stored: pm.Front, tmp_path: Path) -> None:
    broken = {name: tensor.clone() for name, tensor in stored.parameters.items()}
    broken["heads.0.bias"][1, 0] = torch.nan
    for start, message in (
        (tmp_path, r"'start' must be a Front, such as Front.load\(folder\) returns. Got \w*Path"),
        (broken, "'start' must be a Front, .*; pretrained weights are loaded by 'model'. Got dict"),
        (
            replace(stored, tasks=("a", "c")),
            r"'start' must be a front of the tasks \['a', 'b'\]. Got one of \['a', 'c'\]",
        ),
        (replace(stored, reading="direction"), "'start' must be a front whose preferences are read as 'importance'"),
        (replace(stored, parameters={}), "'start' must be a front with weights. Got one without"),
        (replace(stored, parameters=broken), "finite weights. Got NaN or infinity in 'heads.0.bias' of its solution 2"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            fit(start=start)
    with pytest.raises(ValueError, match=r"'start' must be a front of this model.* differs in \['trunk.1"):
        fit(problem(Normed), start=stored)


# Shards.


def test_a_run_in_shards_is_trained_longer(tmp_path: Path) -> None:
    parts: dict[str, Any] = {"out": tmp_path, "executor": SerialExecutor(1), "method": "pareto-mtl"}
    fit(epochs=1, **parts)
    front = fit(epochs=3, resume=True, **parts)
    assert_equal(front, fit(method=pm.ParetoMTL(initial_steps=STEPS // 5), epochs=3))
    assert worst(inspect_run(tmp_path)) == "ok"
    assert front.ended == "after 3 epochs"


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


def test_a_front_that_does_not_say_why_it_ended_is_read(stored: pm.Front, tmp_path: Path) -> None:
    replace(stored, ended="").save(tmp_path)
    assert '"ended"' not in (tmp_path / "front.json").read_text()
    assert pm.Front.load(tmp_path).ended == ""
    stored.save(tmp_path)
    assert pm.Front.load(tmp_path).ended == "after 1 epoch"
