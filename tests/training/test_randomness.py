"""Training draws from random states of its own."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.utils.data import Dataset

from _helpers.networks import classes, fit, problem

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
