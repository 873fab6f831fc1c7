"""Runs of a few epochs on few samples, and a process that ends in one."""

from __future__ import annotations

import sys
from typing import Any

import pytest
import torch

import paretomtl as pm
from _helpers import networks
from _helpers.networks import classes, problem

STEPS = 2
"""In an epoch."""


def sgd(parameters: Any) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr=1.0)


def adam(parameters: Any) -> torch.optim.Optimizer:
    return torch.optim.Adam(parameters, lr=0.1)


def standing(parameters: Any) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr=0.0)


def small(**options: Any) -> pm.Problem:
    return problem(train=classes(24), val=classes(16, seed=3), **options)


def fit(of: pm.Problem | None = None, method: Any = "linear", preferences: Any = 2, **options: Any) -> pm.Front:
    usual = {"epochs": 4, "batch_size": 12, "optimizer": sgd, "strategy": "sequential"}
    return networks.fit(of or small(), method, preferences, **{**usual, **options})


def leave_at(epoch: int) -> Any:
    """A callback that ends the process; there is a checkpoint, but no front."""

    def leave(report: Any) -> None:
        if report.epoch == epoch:
            sys.exit()

    return leave


def left(epoch: int, **options: Any) -> None:
    with pytest.raises(SystemExit):
        fit(callbacks=[leave_at(epoch)], **options)
