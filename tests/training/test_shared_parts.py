"""Factories whose models share parts: each model owns what it trains, and all hold once what is frozen."""

from __future__ import annotations

import copy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import paretomtl as pm

X, Y = (torch.randn(32, size, generator=torch.Generator().manual_seed(size)) for size in (4, 2))
STRATEGIES = ["sequential", "batched"]
SHARING = "share parameters that are trained"


class Net(nn.Module):
    """A head on a trunk, which may belong to somebody else."""

    def __init__(self, trunk: nn.Module) -> None:
        super().__init__()
        self.trunk, self.head = trunk, nn.Linear(8, 2)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.head(self.trunk(x))
        return out


def trunk(*, frozen: bool) -> nn.Sequential:
    with torch.random.fork_rng():
        torch.manual_seed(3)
        return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.BatchNorm1d(8)).requires_grad_(not frozen)


def errors(outputs: Tensor, targets: Tensor) -> Tensor:
    return (outputs - targets).square().mean(0)


def problem(model: Callable[[], nn.Module]) -> pm.Problem:
    return pm.Problem(model, errors, ["a", "b"], train=(X, Y), val=(X[:8], Y[:8]))


def fit(model: Callable[[], nn.Module], **options: Any) -> pm.Front:
    defaults: dict[str, Any] = {"preferences": 3, "epochs": 2, "batch_size": 8, "device": "cpu", "progress": "quiet"}
    return pm.fit(problem(model), "linear", **{**defaults, **options})


def weights(front: pm.Front, k: int) -> dict[str, Tensor]:
    return dict(front.model(k).state_dict())


def assert_same(one: dict[str, Tensor], other: dict[str, Tensor]) -> None:
    assert one.keys() == other.keys()
    for name in one:
        torch.testing.assert_close(one[name], other[name], rtol=0, atol=0)


def one_head(base: nn.Module) -> nn.Module:
    """Wraps what it is given in place, as libraries of adapters do."""
    assert isinstance(base, Net)
    base.head = nn.Linear(8, 2)
    return base


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("share", ["a trunk", "the module", "a module that is changed in place"])
def test_models_train_their_own_copies_of_what_a_factory_shares(share: str, strategy: str) -> None:
    own = trunk(frozen=False)
    whole = Net(own)
    before = copy.deepcopy(own.state_dict())
    make: dict[str, Callable[[], nn.Module]] = {
        "a trunk": lambda: Net(own),
        "the module": lambda: whole,
        "a module that is changed in place": lambda: one_head(whole),
    }
    with pytest.warns(UserWarning, match=SHARING):
        front = fit(make[share], strategy=strategy)
    expected = fit(lambda: copy.deepcopy(make[share]()), strategy=strategy)
    assert_same(dict(own.state_dict()), before)
    models = [front.model(k) for k in range(3)]
    for k, model in enumerate(models):  # made one after another, and all still themselves
        assert_same(dict(model.state_dict()), weights(expected, k))
        assert_same(dict(model.state_dict()), front.state_dict(k))
    assert_same(dict(own.state_dict()), before)


def test_one_model_alone_trains_a_copy() -> None:
    own = trunk(frozen=False)
    before = copy.deepcopy(own.state_dict())
    front = fit(lambda: Net(own), preferences=[[0.5, 0.5]])
    assert not torch.equal(front.state_dict(0)["trunk.0.weight"], before["0.weight"])
    assert_same(dict(own.state_dict()), before)
    evaluated = pm.Front.from_models([front.state_dict(0)] * 2, problem(lambda: Net(own)))
    torch.testing.assert_close(evaluated.losses["val"][0], front.losses["val"][0])
    assert_same(dict(own.state_dict()), before)


def by_hand(model: nn.Module, importances: Tensor, epochs: int) -> dict[str, Tensor]:
    """A bare loop over one batch."""
    optimizer = torch.optim.SGD([p for p in model.train().parameters() if p.requires_grad], lr=0.1)
    for _ in range(epochs):
        optimizer.zero_grad()
        (len(importances) * importances.float() * errors(model(X), Y)).sum().backward()
        optimizer.step()
    return dict(model.state_dict())


def size(front: pm.Front, name: str) -> int:
    return front.models.stacked()[name].untyped_storage().nbytes()


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("make", ["shared", "loaded"])
def test_frozen_parts_are_held_once_and_stay_as_they_are(make: str, strategy: str, tmp_path: Path) -> None:
    own = trunk(frozen=True)
    before = copy.deepcopy(own.state_dict())

    def model() -> nn.Module:
        return Net(own if make == "shared" else trunk(frozen=True))

    whole: dict[str, Any] = {"strategy": strategy, "batch_size": 32, "epochs": 3}
    start = fit(model, **whole, optimizer=lambda p: torch.optim.SGD(p, lr=0.0))
    front = fit(model, **whole, optimizer=lambda p: torch.optim.SGD(p, lr=0.1), out=tmp_path, checkpoint_seconds=0)
    assert_same(dict(own.state_dict()), before)
    assert size(front, "trunk.0.weight") == own[0].weight.nbytes
    assert size(front, "head.weight") == 3 * 2 * 8 * 4
    stored = pm.Front.load(tmp_path, problem(model))
    for k in range(3):
        begin = Net(trunk(frozen=True))
        begin.head.load_state_dict({name: start.state_dict(k)[f"head.{name}"] for name in ("weight", "bias")})
        expected = by_hand(begin, front.preferences[k], 3)
        torch.testing.assert_close(weights(front, k), expected, rtol=1e-4, atol=1e-6)
        assert_same(weights(stored, k), weights(front, k))


MEASURED = """
import resource, sys, torch, paretomtl as pm
from torch import nn
trunk = nn.Sequential(nn.Linear(2048, 2048), nn.Linear(2048, 2048)).requires_grad_(False)
model = {"frozen": lambda: nn.Sequential(trunk, nn.Linear(2048, 2))}["frozen"]
x, y = torch.randn(64, 2048), torch.randn(64, 2)
problem = pm.Problem(model, lambda o, t: (o - t).square().mean(0), ["a", "b"], train=(x, y))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
front = pm.fit(problem, "linear", 8, epochs=2, batch_size=16, device="cpu", progress="quiet", strategy=sys.argv[1],
               out=sys.argv[2], checkpoint_seconds=0, keep="last")
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)
"""


@pytest.mark.parametrize("strategy", ["sequential", pytest.param("auto", marks=pytest.mark.system)])
def test_eight_models_on_a_frozen_trunk_take_the_memory_and_the_disk_of_a_few(strategy: str, tmp_path: Path) -> None:
    words = [sys.executable, "-c", MEASURED, strategy, str(tmp_path / "run")]
    printed = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    trunk_bytes = 2 * 2048 * 2049 * 4
    assert int(printed) < 8 * trunk_bytes  # one is held, others come and go in checks and while files are written
    assert sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()) < 1.2 * trunk_bytes


class Teacher(Net):
    """A frozen part that follows the model, as in self-distillation: from the first pass on, or from a later one."""

    def __init__(self, first: int = 0) -> None:
        super().__init__(trunk(frozen=False))
        self.teacher = nn.Linear(8, 2).requires_grad_(False)
        nn.init.ones_(self.teacher.weight)  # equal in all models, but no longer after a pass
        nn.init.zeros_(self.teacher.bias)
        self.register_buffer("passes", torch.zeros(()))
        self.first = first

    def forward(self, x: Tensor) -> Tensor:
        out = super().forward(x)
        if self.training:
            self.passes += 1
            if self.passes > self.first:
                self.teacher.weight.data = 0.5 * self.teacher.weight.data + 0.5 * self.head.weight.data
        return out + 0.1 * self.teacher(self.trunk(x))


def test_frozen_parts_that_passes_change_belong_to_each_model() -> None:
    front = fit(Teacher, strategy="sequential")
    assert len(front.models.stacked()["teacher.weight"].flatten(1).unique(dim=0)) == 3
    for k in range(3):
        alone = fit(Teacher, strategy="sequential", preferences=front.preferences, only=[k])
        torch.testing.assert_close(alone.state_dict(k), front.state_dict(k))
    with pytest.raises(ValueError, match=r"must leave frozen parameters as they are.*'teacher.weight'.*a later step"):
        fit(lambda: Teacher(first=3))


class Projected(Net):
    """A frozen random part, another one in each model."""

    def __init__(self) -> None:
        own = trunk(frozen=True)
        own[0].reset_parameters()
        super().__init__(own)


def test_frozen_parts_that_differ_belong_to_each_model(tmp_path: Path) -> None:
    fronts = [fit(Projected, strategy=strategy, out=tmp_path / strategy) for strategy in STRATEGIES]
    for front in (*fronts, pm.Front.load(tmp_path / "batched", problem(Projected))):
        drawn = front.models.stacked()["trunk.0.weight"]
        assert len(drawn.flatten(1).unique(dim=0)) == 3
        torch.testing.assert_close(drawn, fronts[0].models.stacked()["trunk.0.weight"])
    torch.testing.assert_close(*(front.losses["val"] for front in fronts))
    warm = fit(lambda: Net(trunk(frozen=True)), start=fronts[0], epochs=1)
    for k in range(3):  # a warm start brings the frozen values of its models
        assert torch.equal(warm.state_dict(k)["trunk.0.weight"], fronts[0].state_dict(k)["trunk.0.weight"])


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("options", [{}, {"branch": 0.5}, {"average": 0.5}, {"keep": "best"}], ids=str)
def test_frozen_parts_go_with_resuming(options: dict[str, Any], strategy: str, tmp_path: Path) -> None:
    own = trunk(frozen=True)
    options = {"strategy": strategy, **options}
    whole = fit(lambda: Net(own), epochs=4, **options)
    for epoch in (1, 3):
        there: dict[str, Any] = {"out": tmp_path / str(epoch), "epochs": 4, **options}
        fit(lambda: Net(own), callbacks=[lambda report: report.epoch == epoch], **there)  # noqa: B023
        resumed = fit(lambda: Net(own), resume=True, **there)
        for k in range(3):
            assert_same(resumed.state_dict(k), whole.state_dict(k))


def test_frozen_parts_go_with_shards_seeds_and_joining(tmp_path: Path) -> None:
    own = trunk(frozen=True)
    front = fit(lambda: Net(own), strategy="sequential")
    some = [fit(lambda: Net(own), strategy="sequential", preferences=front.preferences, only=[k]) for k in range(3)]
    joined = some[0].joined(*some[1:])
    seeds = pm.fit_seeds(
        problem(lambda: Net(own)), "linear", 3, seeds=[0, 1], epochs=2, batch_size=8, device="cpu", progress="quiet"
    )
    joined.save(tmp_path)
    for each in (front, joined, pm.Front.load(tmp_path), *seeds):
        assert size(each, "trunk.0.weight") == own[0].weight.nbytes
    for k in range(3):
        assert_same(pm.Front.load(tmp_path).state_dict(k), front.state_dict(k))
        torch.testing.assert_close(seeds[0].state_dict(k), front.state_dict(k))


def test_shared_parameters_with_hooks_are_refused_as_copies_have_none() -> None:
    own = trunk(frozen=False)
    own[0].weight.register_hook(lambda gradient: 0.5 * gradient)
    with pytest.raises(ValueError, match=r"new parameters at each call where gradients go through hooks. Got shared"):
        fit(lambda: Net(own))
