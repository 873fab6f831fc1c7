"""Ordinary modules captured side by side on a GPU, and kernels that are taken where they should be."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import paretomtl as pm
from paretomtl._support import cuda as _cuda
from paretomtl.engine.autotune import choose
from paretomtl.engine.autotune.trial import Trial
from paretomtl.engine.batches.indexed import ResidentBatches
from paretomtl.engine.batches.make import make_batches
from paretomtl.engine.history import EpochHistory
from paretomtl.engine.kernels import stacked_layers as _layers
from paretomtl.engine.models.modules import make_modules
from paretomtl.engine.runners.cuda_graph import GraphRunner
from paretomtl.engine.strategy import Plan
from paretomtl.problems import LeNet, cross_entropies
from paretomtl.training.run import start as _start

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")


class Net(nn.Module):
    """Convolutions, batch normalisation and two heads."""

    def __init__(self, width: int = 6, dropout: float = 0.0) -> None:
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Conv2d(2, width, 3), nn.BatchNorm2d(width), nn.ReLU(), nn.Dropout(dropout),
            nn.Conv2d(width, 4, 3), nn.ReLU(), nn.Flatten(),
        )  # fmt: skip
        self.heads = nn.ModuleList([nn.Linear(64, 4) for _ in range(2)])

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        hidden = self.trunk(x)
        return tuple(head(hidden) for head in self.heads)


def images(model: Any = Net, **options: Any) -> pm.Problem:
    g = torch.Generator().manual_seed(0)
    data = (torch.rand(96, 2, 8, 8, generator=g), torch.randint(4, (96, 2), generator=g))
    return pm.Problem(model, cross_entropies, ["a", "b"], **{"train": data, **options})


def train(problem: pm.Problem, method: Any = "pareto-mtl", count: int = 3, **options: Any) -> pm.Front:
    adam = lambda p: torch.optim.Adam(p, lr=0.01)  # noqa: E731
    settings = {"epochs": 5, "batch_size": 32, "optimizer": adam, "device": "cuda", "progress": "quiet", **options}
    return pm.fit(problem, method, count, **settings)


@pytest.fixture
def unstackable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choose, "try_stack", lambda *_, **__: Trial("not this time"))


def missing() -> Any:
    inputs, targets = images().train  # type: ignore[misc]
    targets = targets.clone()
    targets[::2, 0] = -100
    return inputs, targets


@pytest.mark.usefixtures("unstackable")
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"method": "linear", "keep": "best", "batch_size": 40},
        {"weigh_every": 3, "clip_norm": 0.1},
        {
            "schedule": "step",
            "scheduler": lambda o: torch.optim.lr_scheduler.ExponentialLR(o, 0.9),
            "precision": "tf32",
        },
        {"method": "linear", "train": missing()},
        {"representation": "trunk", "count": 10},
    ],
    ids=["pareto-mtl", "linear, best", "old weights, clipped", "scheduled by steps", "missing labels", "ten"],
)
def test_modules_captured_side_by_side_train_as_one_after_another(options: dict[str, Any]) -> None:
    settings = {"precision": "float64", **options}
    parts = {name: settings.pop(name) for name in ("train", "representation") if name in settings}
    problem = images(**parts)
    problem = dataclasses.replace(problem, val=problem.train)
    fronts = [train(problem, strategy=strategy, **settings) for strategy in ("sequential", "graphed")]
    assert fronts[1].strategy == "graphed: as ordinary modules side by side; not as a stack: not this time"
    assert fronts[0].epochs == fronts[1].epochs
    exact = settings["precision"] == "float64"
    for name, tensor in fronts[0].models.stacked().items():
        if exact and name != "trunk.0.bias":  # it has no effect before a normalisation, and follows rounding
            torch.testing.assert_close(tensor, fronts[1].models.stacked()[name], rtol=0, atol=1e-5)
    tolerance = 1e-5 if exact else 2e-2
    for name in ("losses", "weights"):
        torch.testing.assert_close(fronts[0].history[name], fronts[1].history[name], rtol=tolerance, atol=tolerance)


def test_bfloat16_with_batch_normalisation_is_graphed() -> None:
    front, launched = (train(images(), strategy=name, precision="bfloat16") for name in ("auto", "sequential"))
    assert front.strategy.startswith("graphed: "), front.strategy
    torch.testing.assert_close(front.losses["train"], launched.losses["train"], rtol=0.2, atol=0.1)


@pytest.mark.usefixtures("unstackable")
def test_a_run_of_modules_side_by_side_can_be_taken_up_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the same choice, without a trial, to the same bits with deterministic kernels."""
    pytest.importorskip("safetensors")

    def stop(report: Any) -> None:
        if report.epoch == 2:
            raise InterruptedError

    monkeypatch.setattr(torch.backends.cudnn, "deterministic", True)
    problem = dataclasses.replace(images(), val=images().train)
    options = {"strategy": "graphed", "precision": "tf32", "keep": "best"}
    whole = train(problem, **options)
    with pytest.raises(InterruptedError):
        train(problem, out=tmp_path, callbacks=[stop], **options)
    monkeypatch.setattr(_start, "choose", None)
    resumed = train(problem, out=tmp_path, resume=True, **options)
    assert resumed.strategy == whole.strategy
    assert "as ordinary modules side by side" in resumed.strategy
    for name, tensor in whole.models.stacked().items():
        assert torch.equal(tensor, resumed.models.stacked()[name]), name


def test_wide_convolutions_are_measured_in_both_ways() -> None:
    front = train(images(lambda: Net(48)), strategy="auto", precision="tf32")
    assert front.strategy.startswith("graphed: "), front.strategy
    assert "ms a step as" in front.strategy
    assert "as a stack" in front.strategy
    assert "as ordinary modules side by side" in front.strategy


@pytest.mark.usefixtures("unstackable")
def test_dropout_in_modules_side_by_side() -> None:
    front = train(images(lambda: Net(dropout=0.3)), strategy="graphed", epochs=8)
    assert front.losses["train"].isfinite().all()
    again = train(images(lambda: Net(dropout=0.3)), strategy="graphed", epochs=8)
    torch.testing.assert_close(front.history["losses"], again.history["losses"], rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("name", ["pareto-mtl", "linear"])
def test_replays_on_streams_do_not_wait(name: str) -> None:
    problem = images()
    method = pm.methods.resolve_method(name)
    modules = make_modules(problem, range(3), torch.device("cuda"), torch.float32)
    state = {name: tensor.cuda() for name, tensor in method.init(method.spread(3, 2)).items()}
    groups = Plan(problem, method, lambda p: torch.optim.SGD(p, lr=0.05)).on_streams(modules, state, channels_last=True)
    train = make_batches("train", problem.train, batch_size=32, device=torch.device("cuda"), dtype=torch.float32)
    assert isinstance(train, ResidentBatches)
    history = EpochHistory(3, 2, torch.device("cuda"))
    runner = GraphRunner(groups, train, history, 100, workers=3)
    number = 0
    for epoch in range(4):
        for item in runner.epoch(0, epoch, 0, number):
            replayed = bool(runner._graphs)
            torch.cuda.set_sync_debug_mode("error" if replayed else "default")
            try:
                runner.step(item, number)
            finally:
                torch.cuda.set_sync_debug_mode("default")
            history.count()
            number += 1
    assert replayed
    assert len(runner._graphs) == 1
    assert int(runner._number) == number
    history.end_epoch()
    assert history.last("losses").isfinite().all()


def test_a_stack_of_lenets_takes_our_kernels() -> None:
    """Without them results are the same, and a run is many times slower: that must not go unnoticed."""
    g = torch.Generator().manual_seed(0)
    data = (torch.randint(256, (512, 1, 36, 36), dtype=torch.uint8, generator=g), torch.randint(10, (512, 2)))
    problem = pm.Problem(LeNet, cross_entropies, ["a", "b"], train=data)
    front = train(problem, count=5, strategy="graphed", epochs=2, batch_size=256)
    assert front.strategy == "graphed: asked for"
    assert not {"correlate", "weight_gradient"} & _cuda.why_not().keys(), _cuda.why_not()
    layers = [
        (_layers._Shape(1, 36, 36, 10, 9, 9, 0, 0), True),
        (_layers._Shape(10, 14, 14, 20, 5, 5, 0, 0), False),
    ]
    for shape, shared in layers:
        assert _layers._has_kernels(shape, torch.device("cuda"), shared=shared)
