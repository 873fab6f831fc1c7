"""Time budgets: the number of models and epochs that fit, and a run that ends when its time is over."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import DataLoader

import paretomtl as pm
from _helpers.networks import classes, fit, problem
from paretomtl.problems import Recipe
from paretomtl.training import budget
from paretomtl.training.budget import Pace, choose_count, measure_pace, plan_by_time
from paretomtl.training.options import TrainingOptions
from paretomtl.training.settings.settings import make_settings
from paretomtl.training.shards.executor import SerialExecutor


@pytest.fixture
def paced(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Each model takes a second for an epoch, and nothing else takes time; the models of each trial."""
    seen: list[int] = []

    def pace(settings: Any, seconds: float) -> Pace:
        seen.append(len(settings.subproblems))
        return Pace(seen[-1], float(seen[-1]), 0.0, 0.0)

    monkeypatch.setattr(budget, "measure_pace", pace)
    return seen


def small(**options: Any) -> pm.Problem:
    return problem(recipe=Recipe(epochs=20), **options)


@pytest.mark.parametrize(
    ("minutes", "given", "planned"),
    [
        (2.0, {}, (5, 23)),  # 120 seconds: 23 epochs of five models, near the 20 of the recipe
        (0.5, {}, (3, 9)),  # 30 seconds: 5.9 epochs of five models would be too short, 9.8 of three are better
        (20.0, {}, (25, 47)),  # 1,200 seconds: 235 epochs would be too long; there are five times as many models
        (2.0, {"preferences": 2}, (2, 58)),
        (2.0, {"epochs": 30}, (3, 30)),
        (4.0, {"epochs": 30}, (7, 30)),
        (2.0, {"preferences": "reachable", "method": "pareto-mtl"}, ("reachable:5", 23)),
        (2.0, {"preferences": "reachable:4", "method": "pareto-mtl"}, ("reachable:4", 29)),
        (2.0, {"branch": 0.5}, (5, 39)),  # the shared half costs one model of five
        (0.001, {"preferences": 4}, (4, 1)),
    ],
)
@pytest.mark.usefixtures("paced")
def test_models_and_epochs_follow_from_the_time(minutes: float, given: dict[str, Any], planned: Any) -> None:
    options, plan = plan_by_time(small(), TrainingOptions(minutes=minutes, **given))
    assert (options.preferences, options.epochs) == planned
    assert plan.seconds == 60 * minutes
    assert f"for {options.epochs} epochs" in plan.plan


@pytest.mark.usefixtures("paced")
def test_rows_and_methods_stay_as_they_are_given() -> None:
    rows = torch.tensor([[0.3, 0.7], [0.8, 0.2], [0.5, 0.5]])
    options, _ = plan_by_time(small(), TrainingOptions(minutes=1.0, preferences=rows, method="linear"))
    assert options.preferences is rows
    assert options.epochs == 19


def test_a_changed_number_of_models_is_measured_again(paced: list[int]) -> None:
    plan_by_time(small(), TrainingOptions(minutes=0.5))
    assert paced == [5, 3]
    plan_by_time(problem(), TrainingOptions(minutes=0.5))  # without a recipe, the usual number
    assert paced == [5, 3, 5]


@given(
    usual=st.integers(1, 50),
    tasks=st.integers(1, 10),
    affordable=st.floats(0.0, 1e6),
    recipe=st.integers(1, 1000),
    fixed=st.booleans(),
)
def test_more_time_never_means_fewer_models(
    usual: int, tasks: int, affordable: float, recipe: int, fixed: bool
) -> None:
    counts = [choose_count(usual, tasks, affordable * x, recipe, fixed=fixed) for x in (1.0, 1.5, 4.0)]
    assert counts == sorted(counts)
    assert all(min(usual, tasks + 1) <= count <= 5 * usual for count in counts)
    count = counts[0]
    if min(usual, tasks + 1) < count < usual:  # fewer models train for at least half of the recipe
        assert usual * affordable / count >= 0.5 * recipe - 1e-6
    if not fixed and usual < count < 5 * usual:  # more models train for at least twice the recipe
        assert usual * affordable / count >= 2.0 * recipe - 1e-6


@pytest.mark.parametrize(
    "train", [classes(), DataLoader(list(zip(*classes(), strict=True)), batch_size=16)], ids=["tensors", "loader"]
)
def test_the_pace_is_that_of_whole_epochs(train: Any) -> None:
    """Twice the steps in an epoch take longer; every part takes some time."""
    settings = make_settings(small(train=train, val=classes(40)), TrainingOptions(epochs=50, batch_size=16))
    pace = measure_pace(settings, 0.01)
    assert pace.models == 5
    assert min(pace.epoch, pace.start, pace.end) > 0.0


def test_data_of_unknown_length_are_measured_for_an_epoch() -> None:
    class Stream(torch.utils.data.IterableDataset[Any]):
        def __iter__(self) -> Any:
            return iter(zip(*classes(), strict=True))

    made = small(train=DataLoader(Stream(), batch_size=32))
    settings = make_settings(made, TrainingOptions(epochs=50))
    assert measure_pace(settings, 0.01).epoch > 0.0


@pytest.mark.parametrize("strategy", ["sequential", "batched"])
def test_a_run_ends_when_its_time_is_over(strategy: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The trial promises a pace that the run does not keep."""
    monkeypatch.setattr(budget, "measure_pace", lambda settings, seconds: Pace(3, 1e-6, 0.0, 0.0))
    options: dict[str, Any] = {"epochs": None, "minutes": 0.01, "strategy": strategy, "out": tmp_path}
    front = fit(pm.problems.quadratic(), "linear", 3, **options)
    assert front.complete
    assert front.ended is not None
    assert front.ended.startswith("time: 0.01 minutes used up, after")
    assert bool(front.losses["train"].isfinite().all())
    assert front.decisions[0].startswith("0.01 minutes: 3 models for")
    again = fit(pm.problems.quadratic(), "linear", 3, **options, resume=True)
    assert torch.equal(again.losses["train"], front.losses["train"])


@pytest.mark.study
def test_a_resumed_run_keeps_its_plan(paced: list[int], tmp_path: Path) -> None:
    made = small(val=classes(40))
    options: dict[str, Any] = {"epochs": None, "out": tmp_path, "optimizer": None}
    first = fit(made, "linear", None, minutes=2.0, callbacks=[lambda report: report.epoch == 3], **options)
    assert not first.complete
    measured = len(paced)
    resumed = fit(made, "linear", None, minutes=2.0, resume=True, **options)
    assert len(paced) == measured
    straight = fit(made, "linear", 5, epochs=23, optimizer=None)
    assert torch.equal(resumed.losses["val"], straight.losses["val"])
    assert "as planned when the run began" in resumed.decisions[0]


@pytest.mark.usefixtures("paced")
def test_the_plan_is_printed_before_the_run(capsys: pytest.CaptureFixture[str]) -> None:
    fit(small(), "linear", 2, epochs=None, minutes=0.1, progress="plain")
    assert capsys.readouterr().err.startswith("0.1 minutes: 2 models for 2 epochs of 2 s, measured\n")
    fit(small(), "linear", 2, epochs=None, minutes=0.1)
    assert capsys.readouterr().err == ""
    _, plan = plan_by_time(small(), TrainingOptions(minutes=0.001, preferences=4))
    assert plan.plan.endswith("; that is too short for one epoch, in which the run is going to end")


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"minutes": 0, "epochs": None}, "'minutes' must be positive. Got 0"),
        ({"minutes": float("nan"), "epochs": None}, "'minutes' must be positive. Got nan"),
        ({"minutes": "ten", "epochs": None}, "'minutes' must be positive. Got 'ten'"),
        ({"minutes": 1, "epochs": 3}, "'minutes' must leave the number of models or of epochs open"),
        ({"minutes": 1, "epochs": None, "executor": SerialExecutor()}, "'minutes' must be None for a run in shards"),
    ],
)
def test_bad_budgets_are_refused(options: dict[str, Any], rule: str) -> None:
    with pytest.raises(ValueError, match=rule):
        fit(small(), "linear", 3, **options)
