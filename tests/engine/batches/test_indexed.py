"""Tensors that lie entirely on the device: places, sizes, labels."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from _helpers.normed_regression import CPU
from paretomtl.engine.batches.indexed import ResidentBatches
from paretomtl.engine.batches.make import make_batches


def resident(data: Any, size: int = 4) -> ResidentBatches:
    made = make_batches("train", data, batch_size=size, device=CPU, dtype=torch.float32)
    assert isinstance(made, ResidentBatches)
    return made


@pytest.mark.parametrize(("samples", "sizes"), [(8, [4, 4]), (10, [4, 4, 2]), (9, [4, 4]), (3, [3])])
def test_batches_by_their_place_are_those_of_an_epoch(samples: int, sizes: list[int]) -> None:
    made = resident((torch.arange(samples), torch.arange(samples).float()))
    assert made.sizes() == sizes
    made.shuffle(seed=3, epoch=1)
    begin = torch.zeros((), dtype=torch.long)
    for size, batch in zip(made.sizes(), made.epoch(3, 1), strict=True):
        part = made.part(begin, size)
        assert all(torch.equal(mine, theirs) for mine, theirs in zip(part, batch, strict=True))
        begin += size


X = torch.randn(6, 2)


@pytest.mark.parametrize(
    ("data", "labelled"),
    [
        ((X, torch.zeros(6, 2)), True),
        ((torch.full((6, 2), torch.nan), torch.zeros(6, 2)), True),
        ((X, torch.tensor([[0.0, torch.nan]] * 6)), False),
        ((X, torch.zeros(6), torch.tensor([0, 1, 2, 3, 4, -100])), False),
        ({"x": X, "y": torch.zeros(6, dtype=torch.uint8)}, False),  # some x are negative: it may be a label
        (torch.ones(6, 2), True),
        ((X, torch.zeros(6), torch.ones(6, dtype=torch.bool)), True),
        ((X, torch.zeros(6), torch.tensor([True] * 5 + [False])), False),
    ],
)
def test_labels_that_may_be_missing_are_seen(data: Any, labelled: bool) -> None:
    if isinstance(data, dict):
        data["x"] = -data["x"].abs().long() - 1
    assert resident(data).labelled() == labelled
