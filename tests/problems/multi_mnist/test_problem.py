from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import paretomtl as pm
from _helpers.sources import use_small_sources
from paretomtl.problems import PROBLEMS, LeNet, prepare_canvases
from paretomtl.problems._multi_mnist.canvases import MIXES
from paretomtl.problems.recipes import IMAGE_RECIPES


@pytest.fixture
def prepared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """All sets of seed 1, from small sources."""
    folder = use_small_sources(tmp_path / "sources", monkeypatch)
    for name in MIXES:
        prepare_canvases(name, source=folder, cache=tmp_path / "cache", seed=1)
    return tmp_path / "cache"


@pytest.mark.parametrize("name", MIXES)
def test_the_splits_are_the_canvases(prepared: Path, name: str) -> None:
    problem: Any = PROBLEMS[name](folder=prepared, seed=1)
    canvases = prepare_canvases(name, cache=prepared, seed=1)
    images, labels = problem.train
    assert images.dtype == torch.uint8
    assert labels.dtype == torch.int64
    assert images.shape == (120, 1, 36, 36)
    assert np.array_equal(images[:, 0].numpy(), canvases.train_images)
    assert np.array_equal(labels.numpy(), canvases.train_labels)
    assert np.array_equal(problem.test[0][:, 0].numpy(), canvases.test_images)
    assert problem.val is None
    assert problem.name == name
    assert problem.tasks == ("top-left", "bottom-right", "top-right")[: labels.shape[1]]
    assert list(problem.metrics) == [f"{task} accuracy" for task in problem.tasks]
    assert problem.reference == (2.0,) * labels.shape[1]
    assert [head.shape for head in problem.model()(images[:3])] == [(3, 10)] * labels.shape[1]


def test_validation_is_the_last_sixth_of_the_training_canvases(prepared: Path) -> None:
    whole: Any = pm.problems.multi_mnist(folder=prepared, seed=1)
    parted: Any = pm.problems.multi_mnist(True, prepared, 1)
    assert [len(parted.train[1]), len(parted.val[1])] == [100, 20]
    for i in range(2):
        assert torch.equal(torch.cat([parted.train[i], parted.val[i]]), whole.train[i])


def rates_of(recipe: pm.Recipe, steps: int) -> tuple[torch.optim.Optimizer, list[float]]:
    assert recipe.optimizer is not None
    assert recipe.scheduler is not None
    optimizer = recipe.optimizer([("w", torch.nn.Parameter(torch.zeros(1)))])
    scheduler = recipe.scheduler(optimizer, steps)
    rates = []
    for _ in range(steps):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return optimizer, rates


@pytest.mark.parametrize("name", MIXES)
def test_the_papers_recipe(prepared: Path, name: str) -> None:
    """Raw bytes, SGD with momentum, halved every 15 epochs; that many however few are asked for."""
    problem = PROBLEMS[name](folder=prepared, seed=1, recipe="paper")
    recipe = problem.recipe
    assert (recipe.epochs, recipe.batch_size, recipe.schedule) == (100, 256, "epoch")
    assert recipe.methods["mgda"] == pm.MGDA(rescale=True)
    assert recipe.methods["pareto-mtl"] == pm.ParetoMTL(rescale=True, initial_steps=2)
    optimizer, rates = rates_of(recipe, 100)
    assert optimizer.param_groups[0]["momentum"] == 0.9
    changes = [epoch for epoch in range(1, 100) if rates[epoch] != rates[epoch - 1]]
    assert changes == [15, 30, 45, 60, 75, 90]
    assert rates[0] == 1e-3
    assert rates[-1] == pytest.approx(1e-3 / 64)
    assert problem.model().scale == 1.0


@pytest.mark.parametrize("name", MIXES)
@pytest.mark.parametrize("steps", [1, 10, 400])
def test_the_strong_recipe_is_the_default(prepared: Path, name: str, steps: int) -> None:
    """Inputs from 0 to 1, AdamW; the rate rises over a twentieth of the steps, however many, and falls to zero."""
    problem = PROBLEMS[name](folder=prepared, seed=1)
    recipe = problem.recipe
    assert (recipe.epochs, recipe.batch_size, recipe.schedule) == (30, 256, "step")
    assert problem.model().scale == pytest.approx(1 / 255)
    assert recipe.methods == PROBLEMS[name](folder=prepared, seed=1, recipe="paper").recipe.methods
    optimizer, rates = rates_of(recipe, steps)
    assert isinstance(optimizer, torch.optim.AdamW)
    top = rates.index(max(rates))
    assert top == max(0, steps // 20 - 1)
    assert all(a < b for a, b in itertools.pairwise(rates[: top + 1]))
    assert all(a > b for a, b in itertools.pairwise(rates[top:]))
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.0, abs=1e-12)
    assert max(rates) == pytest.approx(0.016, rel=0.01)


def test_an_unknown_recipe_is_named(prepared: Path) -> None:
    with pytest.raises(ValueError, match="'recipe' must be one of strong, paper"):
        pm.problems.multi_mnist(folder=prepared, seed=1, recipe="weak")


@pytest.mark.parametrize(("samples", "steps"), [(120_000, 938), (100_000, 782)])
def test_the_initial_phase_is_two_epochs(samples: int, steps: int) -> None:
    for recipe in IMAGE_RECIPES.values():
        made = recipe.make(samples)
        assert made.methods["pareto-mtl"] == pm.ParetoMTL(rescale=True, initial_steps=steps)


def test_a_schedule_in_steps_knows_how_many_are_planned(prepared: Path) -> None:
    """120 canvases in batches of 50 are 3 steps an epoch: 6 steps for 2 epochs, in place of the recipe's."""
    told: list[int] = []

    def scheduler(optimizer: torch.optim.Optimizer, total: int) -> Any:
        told.append(total)
        return torch.optim.lr_scheduler.ConstantLR(optimizer, 1.0)

    problem = pm.problems.multi_mnist(folder=prepared, seed=1)
    for schedule, expected in (("step", 6), ("epoch", 2)):
        recipe = dataclasses.replace(problem.recipe, scheduler=scheduler, schedule=schedule)
        mine = dataclasses.replace(problem, recipe=recipe)
        pm.fit(mine, "linear", 1, epochs=2, batch_size=50, device="cpu", strategy="sequential", progress="quiet")
        assert set(told) == {expected}
        told.clear()


@pytest.mark.parametrize("strategy", ["sequential", "batched"])
@pytest.mark.parametrize("name", ["multi-fashion-mnist", "multi-mnist-3"])
def test_bytes_train_in_both_strategies(prepared: Path, name: str, strategy: Any) -> None:
    tasks = len(MIXES[name])
    problem = PROBLEMS[name](folder=prepared, seed=1, model=lambda: LeNet(tasks, scale=1 / 255))
    front = pm.fit(problem, preferences=3, epochs=1, strategy=strategy, device="cpu", progress="quiet")
    assert front.losses["test"].shape == (3, tasks)
    assert torch.isfinite(front.losses["test"]).all()
    assert set(front.metrics["test"]) == {f"{task} accuracy" for task in problem.tasks}


def test_a_model_with_too_few_heads_is_refused(prepared: Path) -> None:
    problem = pm.problems.multi_fashion_3(folder=prepared, seed=1, model=LeNet)
    with pytest.raises(ValueError, match=r"must return shape \[3\], one per task. Got \[2\]"):
        pm.fit(problem, preferences=2, epochs=1, device="cpu", progress="quiet")


def test_lenet_takes_bytes_as_the_paper_does() -> None:
    images = torch.randint(256, (3, 1, 36, 36), dtype=torch.uint8)
    model = LeNet().double()
    scaled = LeNet(scale=1 / 255).double()
    scaled.load_state_dict(model.state_dict())
    for raw, small, unit, again in zip(
        model(images), scaled(images), model(images / 255.0), model(images.double()), strict=True
    ):
        assert raw.dtype == torch.float64
        assert torch.equal(raw, again)
        torch.testing.assert_close(small, unit, atol=1e-5, rtol=1e-5)
        assert not torch.allclose(raw, small)


@pytest.mark.parametrize(
    ("arguments", "command"),
    [({}, "paretomtl data prepare multi-mnist --cache"), ({"seed": 3}, "--seed 3")],
)
def test_canvases_that_are_not_prepared_say_how_to(tmp_path: Path, arguments: dict[str, int], command: str) -> None:
    with pytest.raises(FileNotFoundError, match=r"multi-mnist-seed\d.npz' does not exist yet. Make it with") as error:
        pm.problems.multi_mnist(folder=tmp_path, **arguments)
    assert command in str(error.value)
