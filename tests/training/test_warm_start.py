"""Runs that begin with the weights of a front."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

import paretomtl as pm
from _helpers.fronts import assert_equal
from _helpers.networks import Normed, problem
from _helpers.short_runs import fit, left, standing
from paretomtl.front.models import LOSSES_ALONE, SeparateModules, StackedModels
from paretomtl.training import SerialExecutor


@pytest.fixture(scope="module")
def stored() -> pm.Front:
    return fit(preferences=[[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]], epochs=1, only=[0, 2])


def test_models_begin_with_the_weights_of_the_nearest_preference(stored: pm.Front) -> None:
    vectors = [[0.0, 2.0], [0.8, 0.2], [1.0, 0.0]]
    front = fit(preferences=vectors, start=stored, optimizer=standing, epochs=1)
    for name, tensor in stored.models.stacked().items():
        assert torch.equal(front.models.stacked()[name], tensor[[1, 0, 0]]), name
    assert len(front.history["losses"]) == 1
    assert front.reference == stored.reference
    chosen = fit(preferences=vectors, start=stored, optimizer=standing, epochs=1, only=[2])
    assert torch.equal(chosen.models.stacked()["trunk.0.weight"], front.models.stacked()["trunk.0.weight"][2:])


def test_a_start_goes_with_its_number_where_rows_are_alike_or_mean_nothing() -> None:
    for method in ("linear", "mgda"):
        alike = fit(method=method, preferences=[[0.5, 0.5]] * 2, epochs=1)
        again = fit(method=method, preferences=[[0.5, 0.5]] * 2, epochs=1, start=alike, optimizer=standing)
        assert torch.equal(again.models.stacked()["trunk.0.weight"], alike.models.stacked()["trunk.0.weight"])
    with pytest.raises(ValueError, match=r"'start' must have the models \[0, 1, 2\] .* without \[2\]"):
        fit(method="mgda", preferences=3, start=alike)


def test_a_start_belongs_to_the_run(stored: pm.Front, tmp_path: Path) -> None:
    left(1, start=stored, out=tmp_path, epochs=2)
    for other in (None, replace(stored, models=StackedModels({n: t + 1 for n, t in stored.models.stacked().items()}))):
        with pytest.raises(ValueError, match=r"'start' must be that of the run in .* to resume it"):
            fit(start=other, out=tmp_path, epochs=2, resume=True)
    whole = fit(start=stored, epochs=2)
    assert_equal(fit(start=stored, out=tmp_path, epochs=2, resume=True), whole)
    assert_equal(fit(start=stored, epochs=2, executor=SerialExecutor(1)), replace(whole, strategy=""))


def test_a_start_that_cannot_be_is_refused(stored: pm.Front, tmp_path: Path) -> None:
    broken = {name: tensor.clone() for name, tensor in stored.models.stacked().items()}
    broken["heads.0.bias"][1, 0] = torch.nan
    for start, message in (
        (tmp_path, r"'start' must be a Front, such as Front.load\(folder\) returns. Got \w*Path"),
        (broken, "'start' must be a Front, .*; pretrained weights are loaded by 'model'. Got dict"),
        (
            replace(stored, tasks=("a", "c")),
            r"'start' must be a front of the tasks \['a', 'b'\]. Got one of \['a', 'c'\]",
        ),
        (replace(stored, reading="direction"), "'start' must be a front whose preferences are read as 'importance'"),
        (replace(stored, models=LOSSES_ALONE), "'start' must be a front with weights. Got one without"),
        (
            replace(stored, models=SeparateModules([Normed()] * 3)),
            "'start' must be a front of models that .* makes",
        ),
        (
            replace(stored, models=StackedModels(broken)),
            "finite weights. Got NaN or infinity in 'heads.0.bias' of its model 2",
        ),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            fit(start=start)
    with pytest.raises(ValueError, match=r"'start' must be a front of this model.* differs in \['trunk.1"):
        fit(problem(Normed), start=stored)
