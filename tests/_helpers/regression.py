"""Two regression tasks on three inputs, with or without all labels, for tests of steps and trials."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch
from torch import Tensor

import paretomtl as pm
from paretomtl.engine.model_group import Group
from paretomtl.engine.strategy import Plan

CPU = torch.device("cpu")


X = torch.randn(64, 3, generator=torch.Generator().manual_seed(0))


def model() -> torch.nn.Module:
    return torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))


def with_missing_labels(outputs: Tensor, targets: Tensor) -> Tensor:
    there = ~targets.isnan()
    errors = (outputs - targets.nan_to_num()).square() * there
    return torch.stack([errors[:, i].sum() / there[:, i].sum() for i in range(2)])


def problem(missing: int = 0) -> pm.Problem:
    targets = torch.stack([X.sin().sum(1), X.cos().sum(1)], 1)
    targets[:missing, 1] = torch.nan
    return pm.Problem(model, with_missing_labels, ["a", "b"], train=(X, targets))


class Remembers(torch.nn.Module):
    """Makes a buffer in its first forward pass."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(3, 2)
        self.register_buffer("cache", None)

    def forward(self, x: Tensor) -> Tensor:
        if self.cache is None:
            self.cache = torch.ones(2)
        return self.layer(x) * self.cache


def group(scheduler: Any = None, factory: Any = model) -> Group:
    made = dataclasses.replace(problem(), model=factory)
    method = pm.ParetoMTL()
    plan = Plan(made, method, lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9), scheduler)
    return plan.batched([factory(), factory()], method.init(method.spread(2, 2)))[0]
