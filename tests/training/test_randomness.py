"""Training draws from random states of its own."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.utils.data import Dataset

import paretomtl as pm
from _helpers.networks import MLP, classes, fit, problem

X, Y = classes()


class Noisy(Dataset[tuple[Tensor, Tensor]]):
    """Augments with all three random generators."""

    def __len__(self) -> int:
        return len(X)

    def __getitem__(self, i: int) -> tuple[Tensor, Tensor]:
        return X[i] + 0.1 * torch.randn(6) + 0.1 * np.random.rand() + 0.1 * random.random(), Y[i]  # noqa: NPY002


@pytest.mark.parametrize("strategy", ["sequential", "batched", "auto"])
def test_training_draws_apart_from_the_callers_randomness(strategy: Any) -> None:
    torch.manual_seed(3)
    np.random.seed(3)  # noqa: NPY002
    random.seed(3)
    first = fit(problem(train=Noisy()), strategy=strategy)
    drawn = (float(torch.rand(())), float(np.random.rand()), random.random())  # noqa: NPY002
    torch.manual_seed(3)
    np.random.seed(3)  # noqa: NPY002
    random.seed(3)
    assert drawn == (float(torch.rand(())), float(np.random.rand()), random.random())  # noqa: NPY002
    again = fit(problem(train=Noisy()), strategy=strategy)
    rounding = 1e-5 if strategy == "auto" else 0.0  # measured speeds decide what it takes, and may do so otherwise
    torch.testing.assert_close(first.losses["train"], again.losses["train"], rtol=0, atol=rounding)


class Drawn(MLP):
    """Its factor is no part of the weights."""

    def __init__(self) -> None:
        super().__init__()
        self.factor = float(torch.rand(()) * 3 - 1.5)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        return super().forward(self.factor * x)


def started(**options: Any) -> pm.Front:
    return fit(problem(Drawn), "linear", 3, seed=5, start=fit(problem(Drawn), "linear", 2, seed=4), **options)


MAKERS = {
    "alone": lambda: fit(problem(Drawn), "linear", 3, seed=3),
    "branch": lambda: fit(problem(Drawn), "linear", 3, seed=3, branch=0.5),
    "some": lambda: fit(problem(Drawn), "linear", 3, seed=3, branch=0.5, only=[2]),
    "seeds": lambda: pm.fit_seeds(
        problem(Drawn), "linear", 2, seeds=[3, 7], epochs=2, branch=0.5, device="cpu", progress="quiet"
    )[1],
    "start": started,
    "joined": lambda: fit(problem(Drawn), "linear", 2, seed=1).joined(fit(problem(Drawn), "linear", 3, seed=2)),
    "joined starts": lambda: fit(problem(Drawn), "linear", 2, seed=1, branch=0.5).joined(started()),
}


@pytest.mark.parametrize("made", MAKERS)
def test_models_of_a_front_have_the_attributes_that_they_were_trained_with(made: str, tmp_path: Path) -> None:
    front = MAKERS[made]()
    front.save(tmp_path)
    for each in (front, pm.Front.load(tmp_path, problem(Drawn))):
        models = [each.model(k) for k in each.subproblems]
        again = pm.Front.from_models(models, problem(Drawn), device="cpu")
        torch.testing.assert_close(again.losses["train"], front.losses["train"])


def test_a_warm_start_begins_where_the_other_front_ended() -> None:
    first = fit(problem(Drawn), "linear", 2, seed=4)
    still = lambda parameters: torch.optim.SGD(parameters, lr=0.0)  # noqa: E731
    again = fit(problem(Drawn), "linear", 2, seed=5, start=first, optimizer=still, epochs=1)
    torch.testing.assert_close(again.losses["train"], first.losses["train"])
