"""Data that crash, or do something else, at a sample of a run."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

from _helpers.networks import classes

X, Y = classes()


LOOKED_AT = 48  # samples of a Dataset that are read before training, to identify the data


class Crash(Exception):
    pass


class Samples(Dataset[tuple[Tensor, Tensor]]):
    """Does something at the n-th sample that is read in training."""

    def __init__(self, n: int = -1, then: Any = None) -> None:
        self.left = n + LOOKED_AT if n > 0 else n
        self.then = then

    def __len__(self) -> int:
        return len(X)

    def __getitem__(self, i: int) -> tuple[Tensor, Tensor]:
        self.left -= 1
        if self.left == 0:
            self.then()
        noise = 0.1 * np.random.rand() + 0.1 * random.random()  # noqa: NPY002
        return X[i] + 0.1 * torch.randn(6) + noise, Y[i]


def crash() -> None:
    raise Crash
