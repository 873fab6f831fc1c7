"""Ends, starts and units of runs on a GPU: captured steps go on, start and scale as launched ones do."""

from __future__ import annotations

import dataclasses
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch

import paretomtl as pm
from _helpers.cuda_images import Net, images, train
from paretomtl.front.models import StackedModels

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")

ASKS = {"value": False}


class Asking(Net):
    """From some epoch on it asks its activations for a value, which vmap cannot give."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        hidden = self.trunk(x)
        if ASKS["value"] and hidden.mean() > 5.0:
            hidden = 2 * hidden
        return tuple(head(hidden) for head in self.heads)


def with_val() -> pm.Problem:
    problem = images()
    return dataclasses.replace(problem, val=problem.train)


def same(one: pm.Front, other: pm.Front, atol: float = 0.0) -> None:
    for name, tensor in one.models.stacked().items():
        torch.testing.assert_close(tensor, other.models.stacked()[name], rtol=0, atol=atol)


def without_statistics(front: pm.Front) -> StackedModels:
    """The weights without those of normalisation that training changes whatever the learning rate."""
    weights = front.models.stacked()
    return StackedModels({n: t for n, t in weights.items() if "1.running" not in n and "batches" not in n})


@pytest.mark.parametrize("strategy", ["batched", "graphed"])
@pytest.mark.parametrize("keep", ["last", "best"])
def test_a_run_that_is_trained_longer_is_that_of_so_many_epochs(tmp_path: Path, strategy: str, keep: str) -> None:
    options: dict[str, Any] = {"strategy": strategy, "keep": keep, "method": "linear"}
    whole = train(with_val(), epochs=6, **options)
    train(with_val(), epochs=3, out=tmp_path, **options)
    longer = train(with_val(), epochs=6, out=tmp_path, resume=True, **options)
    same(whole, longer)
    torch.testing.assert_close(whole.history["losses"], longer.history["losses"], rtol=0, atol=0)


@pytest.mark.parametrize("strategy", ["batched", "graphed"])
def test_models_begin_with_the_weights_of_a_front(strategy: str) -> None:
    first = train(images(), strategy=strategy)
    still = lambda parameters: torch.optim.SGD(parameters, lr=0.0)  # noqa: E731
    second = train(images(), strategy=strategy, start=first, optimizer=still, epochs=1)
    same(*(dataclasses.replace(front, models=without_statistics(front)) for front in (first, second)))


def test_patience_ends_a_captured_run() -> None:
    still = lambda parameters: torch.optim.SGD(parameters, lr=0.0)  # noqa: E731
    plain = dataclasses.replace(with_val(), model=lambda: torch.nn.Sequential(torch.nn.Flatten(), Heads()))
    front = train(plain, strategy="graphed", optimizer=still, epochs=9, patience=2)
    assert len(front.history["losses"]) == 3
    assert front.complete


class Heads(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.heads = torch.nn.ModuleList([torch.nn.Linear(64, 4) for _ in range(2)])

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(head(x) for head in self.heads)


@pytest.mark.parametrize("method", [pm.ParetoMTL(scale="auto"), pm.Linear(scale="auto"), pm.MGDA(scale="first")])
def test_losses_in_other_units_are_scaled_alike_in_captured_steps(method: pm.methods.Method) -> None:
    def in_cents(outputs: Any, targets: Any) -> torch.Tensor:
        found = pm.problems.cross_entropies(outputs, targets)
        return torch.stack([found[0], 4000 * found[1]])

    problem = dataclasses.replace(images(), losses=in_cents)
    options: dict[str, Any] = {"method": method, "precision": "float64", "epochs": 6}
    fronts = [train(problem, strategy=strategy, **options) for strategy in ("sequential", "batched", "graphed")]
    assert fronts[0].scale is not None
    for other in fronts[1:]:
        same(fronts[0], other, atol=1e-6)
        torch.testing.assert_close(fronts[0].scale, other.scale)


def test_a_stack_that_fails_goes_on_as_the_models_alone() -> None:
    """Launched steps; a branch of captured ones is not seen again."""

    def ask(report: pm.training.Report) -> None:
        ASKS["value"] = report.epoch >= 2

    problem = dataclasses.replace(images(), model=Asking)
    fronts = []
    for strategy in ("sequential", "batched"):
        ASKS["value"] = False
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            fronts.append(train(problem, strategy=strategy, precision="float64", callbacks=[ask]))
        assert any("one after another" in str(each.message) for each in said) == (strategy == "batched")
    ASKS["value"] = False
    same(*fronts, atol=1e-6)
    assert "then sequential" in fronts[1].strategy


def test_models_trained_elsewhere_are_measured_on_the_gpu() -> None:
    front = train(with_val(), strategy="batched")
    given = pm.Front.from_models([front.model(k).cuda() for k in front.subproblems], with_val(), device="cuda")
    for split in ("train", "val"):
        torch.testing.assert_close(given.losses[split], front.losses[split], rtol=1e-5, atol=1e-6)
