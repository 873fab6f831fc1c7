"""Small networks and data for the tests of training."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

import paretomtl as pm
from paretomtl.problems import LeNet, cross_entropies


class MLP(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(6, 12), nn.Tanh())
        self.heads = nn.ModuleList([nn.Linear(12, 3), nn.Linear(12, 3)])

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        hidden = self.trunk(x)
        return tuple(head(hidden) for head in self.heads)


class Normed(MLP):
    """With batch normalisation in the trunk."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(6, 12), nn.BatchNorm1d(12), nn.Tanh())


class Dropped(MLP):
    """With dropout in the trunk, as a layer and as a function."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Dropout(0.3))

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        hidden = nn.functional.dropout(self.trunk(x), 0.2, training=self.training)
        return tuple(head(hidden) for head in self.heads)


def classes(count: int = 96, *, tasks: int = 2, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Inputs, and labels that depend on them in a different way for each task."""
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(count, 6, generator=g)
    return x, (x @ torch.randn(6, tasks * 3, generator=g)).reshape(count, tasks, 3).argmax(-1)


def accuracy(outputs: Any, targets: Tensor) -> Tensor:
    return (outputs[0].argmax(-1) == targets[:, 0]).double().mean()


def problem(model: Any = MLP, **options: Any) -> pm.Problem:
    options = {"train": classes(), **options}
    return pm.Problem(model, options.pop("losses", cross_entropies), ["a", "b"], **options)


def lenet_problem() -> pm.Problem:
    g = torch.Generator().manual_seed(0)
    data = (torch.rand(16, 1, 36, 36, generator=g), torch.randint(10, (16, 2), generator=g))
    return pm.Problem(LeNet, cross_entropies, ["a", "b"], train=data)


def sgd(parameters: Any) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr=0.1, momentum=0.9)


def fit(of: pm.Problem | None = None, method: Any = "pareto-mtl", preferences: Any = 3, **options: Any) -> pm.Front:
    options = {"epochs": 4, "batch_size": 32, "optimizer": sgd, "device": "cpu", "progress": "quiet", **options}
    return pm.fit(of or problem(), method, preferences, **options)
