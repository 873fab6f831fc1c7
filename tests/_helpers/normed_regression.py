"""Two regression tasks for a network with batch normalisation."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch

import paretomtl as pm

CPU = torch.device("cpu")


def problem(**options: Any) -> pm.Problem:
    g = torch.Generator().manual_seed(0)
    data = (torch.randn(40, 3, generator=g), torch.randn(40, 2, generator=g))

    def losses(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return torch.stack([(y - t).square().mean() for y, t in zip(outputs.mT, targets.mT, strict=True)])

    def model() -> torch.nn.Module:
        return torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 2))

    return dataclasses.replace(pm.Problem(model, losses, ["a", "b"], train=data), **options)


def fit(made: pm.Problem | None = None, **options: Any) -> pm.Front:
    sgd = lambda p: torch.optim.SGD(p, lr=0.05)  # noqa: E731
    settings = {"preferences": 3, "epochs": 3, "batch_size": 8, "optimizer": sgd, "progress": "quiet", **options}
    return pm.fit(made or problem(), **settings)
