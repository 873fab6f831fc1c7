"""Runs that are trained for more epochs than they were begun for."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.optim.lr_scheduler import CosineAnnealingLR, OneCycleLR, StepLR

import paretomtl as pm
from _helpers.fronts import assert_equal
from _helpers.short_runs import STEPS, adam, fit, left, sgd, small
from paretomtl.runs import inspect_run, read_log
from paretomtl.runs.doctor import worst
from paretomtl.training import SerialExecutor
from paretomtl.training.run.state import RunState


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
        monkeypatch.setattr("paretomtl.training.run.state.RunState.stored", without_plan)
    fit(of, epochs=2, **options)
    monkeypatch.undo()
    planned = "the schedule was planned for 2 epochs, and goes on as planned for 4"
    if not saved:
        monkeypatch.setattr("paretomtl.training.run.checkpoint.Checkpoints.save", lambda self: None)
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


def test_a_run_in_shards_is_trained_longer(tmp_path: Path) -> None:
    parts: dict[str, Any] = {"out": tmp_path, "executor": SerialExecutor(1), "method": "pareto-mtl"}
    fit(epochs=1, **parts)
    front = fit(epochs=3, resume=True, **parts)
    assert_equal(front, fit(method=pm.ParetoMTL(initial_steps=STEPS // 5), epochs=3))
    assert worst(inspect_run(tmp_path)) == "ok"
    assert front.ended == "after 3 epochs"
