"""Fake streams, and a small network with convolutions, for tests of captured steps without a GPU."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor, nn

import paretomtl as pm
from _helpers.networks import sgd
from paretomtl.engine.autotune import capture, streams
from paretomtl.engine.batches.indexed import ResidentBatches
from paretomtl.engine.batches.make import make_batches
from paretomtl.engine.model_group import Group
from paretomtl.engine.runners import cuda_graph
from paretomtl.engine.runners.eager import EagerRunner
from paretomtl.engine.strategy import Plan
from paretomtl.problems import cross_entropies

CPU = torch.device("cpu")


class Stream:
    """Records which stream waited for which, and which worked."""

    current: Stream
    log: ClassVar[list[tuple[Any, ...]]] = []

    def __init__(self, device: Any = None) -> None:
        self.device = device

    def wait_stream(self, other: Stream) -> None:
        Stream.log.append(("wait", self, other))


@contextlib.contextmanager
def on(stream: Stream) -> Iterator[None]:
    before, Stream.current = Stream.current, stream
    try:
        yield
    finally:
        Stream.current = before


@pytest.fixture
def pretended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every step a warm-up step before a capture, on fake streams."""
    Stream.current, Stream.log = Stream(), []
    monkeypatch.setattr(cuda_graph, "_WARM_UP", 10**6)
    for module in (capture, streams):
        monkeypatch.setattr(module, "find_obstacle", lambda train: None)
    fakes: dict[str, Any] = {
        "Stream": Stream,
        "stream": on,
        "current_stream": lambda: Stream.current,
        "graph_pool_handle": lambda: None,
        "get_sync_debug_mode": lambda: 0,
        "set_sync_debug_mode": lambda mode: None,
        "synchronize": lambda: None,
        "reset_peak_memory_stats": lambda device: None,
        "memory_allocated": lambda device: 0,
        "max_memory_allocated": lambda device: 10,
        "memory_reserved": lambda device: 0,
        "mem_get_info": lambda device: (1 << 40, 1 << 40),
    }
    for name, fake in fakes.items():
        monkeypatch.setattr(torch.cuda, name, fake)


class Net(nn.Module):
    """Convolutions of several layouts, batch normalisation and two heads."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Conv2d(2, 6, 3), nn.BatchNorm2d(6), nn.ReLU(), nn.Conv2d(6, 4, 1), nn.ReLU(), nn.Flatten()
        )
        self.heads = nn.ModuleList([nn.Linear(64, 3) for _ in range(2)])

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        hidden = self.trunk(x)
        return tuple(head(hidden) for head in self.heads)


class Viewing(Net):
    """Assumes that images lie row by row."""

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        hidden = self.trunk[:3](x)
        hidden = hidden.view(len(x), -1)[:, :64]
        return tuple(head(hidden) for head in self.heads)


def images(model: Any = Net, **options: Any) -> pm.Problem:
    g = torch.Generator().manual_seed(0)
    data = (torch.randn(40, 2, 6, 6, generator=g), torch.randint(3, (40, 2), generator=g))
    return pm.Problem(model, cross_entropies, ["a", "b"], train=data, **options)


def adam(parameters: Any) -> torch.optim.Optimizer:
    return torch.optim.Adam(parameters, lr=0.01)


def planned(count: int = 3, model: Any = Net, optimizer: Any = sgd) -> tuple[Plan, list[nn.Module], Any]:
    method = pm.ParetoMTL()
    modules: list[nn.Module] = []
    for k in range(count):
        torch.manual_seed(k)
        modules.append(model())
    return Plan(images(model), method, optimizer), modules, method.init(method.spread(count, 2))


def batches() -> ResidentBatches:
    made = make_batches("train", images().train, batch_size=16, device=CPU, dtype=torch.float32)
    assert isinstance(made, ResidentBatches)
    return made


def run(runner: EagerRunner, epochs: int = 2, number: int = 0) -> int:
    for epoch in range(epochs):
        for item in runner.epoch(0, epoch, 0, number):
            runner.step(item, number)
            runner.history.count()
            number += 1
    return number


def values(groups: list[Group]) -> dict[str, Tensor]:
    return {name: torch.cat([group.models.tensors()[name] for group in groups]) for name in groups[0].models.tensors()}


def places(group: Group) -> list[int]:
    """The addresses of everything that a captured step reads and writes."""
    assert group.before_previous is not None
    assert group.weights is not None
    optimizer = [t for state in group.optimizer.state.values() for t in state.values() if isinstance(t, Tensor)]
    kept = [group.models.tensors(), group.previous, group.before_previous, group.state]
    tensors = [group.active, group.weights, *optimizer, *(t for part in kept for t in part.values())]
    return [tensor.data_ptr() for tensor in tensors]
