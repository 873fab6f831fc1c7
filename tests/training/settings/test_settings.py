"""Options of a run that cannot be."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import paretomtl as pm
from paretomtl.methods import Method
from paretomtl.problems import OptimizerFactory

SYNTHETIC = pm.problems.synthetic()


def sgd(parameters: Any) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr=1.0)


def fit(method: str | Method = "pareto-mtl", preferences: Any = 5, epochs: int = 60, **options: Any) -> pm.Front:
    options = {"optimizer": sgd, "precision": "float64", "device": "cpu", **options}
    return pm.fit(options.pop("problem", SYNTHETIC), method, preferences, epochs=epochs, **options)


class Empty(nn.Module):
    def forward(self) -> Tensor:
        return torch.ones(2)


def lbfgs(parameters: Any) -> torch.optim.Optimizer:
    return torch.optim.LBFGS([p for _, p in parameters])


def test_clipping_is_part_of_a_recipe() -> None:
    """As epochs and optimizer are; an option of the run comes before it."""
    made = replace(pm.problems.quadratic(), recipe=pm.Recipe(epochs=3, clip_norm=1e-3))
    settings: dict[str, Any] = {"optimizer": sgd, "device": "cpu", "progress": "quiet"}
    clipped, free = pm.fit(made, "linear", 2, **settings), pm.fit(made, "linear", 2, clip_norm=1e9, **settings)
    same = pm.fit(pm.problems.quadratic(), "linear", 2, epochs=3, clip_norm=1e-3, **settings)
    assert torch.equal(clipped.losses["train"], same.losses["train"])
    assert not torch.equal(clipped.losses["train"], free.losses["train"])
    assert "clip_norm=0.001" in str(made)
    with pytest.raises(ValueError, match="'clip_norm' must be positive"):
        pm.fit(replace(made, recipe=pm.Recipe(epochs=3, clip_norm=-1.0)), "linear", 2, **settings)


@pytest.mark.parametrize(
    ("scheduler", "told"),
    [
        (lambda o: torch.optim.lr_scheduler.OneCycleLR(o, 0.1, total_steps=500), "OneCycleLR"),
        (lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, 500), "CosineAnnealingLR"),
        (lambda o, total: torch.optim.lr_scheduler.CosineAnnealingLR(o, total), None),
        (lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, 7), None),
        (lambda o: torch.optim.lr_scheduler.StepLR(o, 500), None),
    ],
)
@pytest.mark.parametrize("schedule", ["epoch", "step"])
def test_a_schedule_of_steps_that_moves_once_an_epoch_is_named(scheduler: Any, told: str | None, schedule: str) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit("linear", 2, epochs=4, scheduler=scheduler, schedule=schedule)
    found = [str(each.message) for each in caught if "of 500 steps, and takes 4, one an epoch" in str(each.message)]
    assert len(found) == (told is not None and schedule == "epoch")
    assert all(f"{told}(optimizer, ..., total)" in text for text in found)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epochs": 0}, "'epochs' must be a whole number of at least 1. Got 0"),
        ({"preferences": 0}, "'preferences' must be a whole number of at least 1. Got 0"),
        ({"preferences": 10**9}, "'preferences' must be at most 10,000, as a front holds no more. Got 1,000,000,000"),
        ({"preferences": torch.ones(3, 3)}, r"'preferences' must be a number or have shape \[K, 2\]. Got \[3, 3\]"),
        ({"preferences": [[1.0, -1.0]]}, "'preferences' must be finite and non-negative"),
        ({"preferences": [[1.0, 1.0], [2.0, 2.0]]}, "'preferences' must be distinct"),
        ({"method": "linear", "preferences": [[0.0, 0.0]]}, "'preferences' must be finite, non-negative and not all"),
        ({"only": [5]}, r"'only' must be distinct models from 0 to 4. Got \[5\]"),
        ({"only": []}, "'only' must be"),
        ({"seed": -1}, "'seed' must be a whole number that is not negative. Got -1"),
        (
            {"method": pm.ParetoMTL(release_steps=60)},
            r"'release_steps' must be fewer than the steps planned.* Got 60 of 60",
        ),
        ({"seed": 2**50}, r"'seed' must be under 2\*\*38"),
        ({"precision": "half"}, r"'precision' must be one of \['bfloat16', 'float32', 'float64', 'tf32'\]. Got 'half'"),
        ({"optimizer": lbfgs}, r"'optimizer' must step without a closure. Got LBFGS"),
        ({"problem": pm.Problem(Empty, lambda x: x, ["a", "b"])}, "'model' must have parameters to train. Got none"),
        (
            {"problem": pm.Problem(SYNTHETIC.model, lambda x: x[:3], ["a", "b"])},
            r"'losses' must return shape \[2\], one per task. Got \[3\]",
        ),
        ({"method": "single-task", "preferences": 5}, r"'preferences' must be the number of tasks \(2\)"),
    ],
)
def test_bad_input_is_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fit(**options)


def test_losses_that_are_no_tensor_or_not_attached_are_named() -> None:
    with pytest.raises(TypeError, match=r"'losses' must return a tensor of shape \[2\], .* Got set instead"):
        fit(problem=pm.Problem(SYNTHETIC.model, lambda x: {x.sum(), x.mean()}, ["a", "b"]))  # type: ignore[arg-type, return-value]
    with pytest.raises(TypeError, match=r"'method' must be a name or a configured method.* Got <class"):
        fit(pm.ParetoMTL)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"'model' must be a function or class that makes a module. Got Point"):
        pm.Problem(SYNTHETIC.model(), SYNTHETIC.losses, ["a", "b"])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="'losses' must depend on the model's parameters"):
        fit(problem=pm.Problem(SYNTHETIC.model, lambda x: torch.ones(2), ["a", "b"]))


def test_a_factory_of_an_optimizer_is_typed() -> None:
    factory: OptimizerFactory = sgd
    assert isinstance(factory([("x", nn.Parameter(torch.ones(1)))]), torch.optim.SGD)
