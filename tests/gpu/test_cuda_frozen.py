"""Frozen parts that all models hold once, on a GPU: in stacks, captured steps, and modules side by side."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import paretomtl as pm

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")


class Net(nn.Module):
    """A head on frozen convolutions, which belong to somebody else, and on some that are trained."""

    def __init__(self, frozen: nn.Module, width: int) -> None:
        super().__init__()
        self.frozen, self.own = frozen, nn.Conv2d(width, 4, 3)
        self.head = nn.Linear(4 * 36, 2)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.head(self.own(self.frozen(x)).relu().flatten(1))
        return out


@pytest.mark.parametrize("precision", ["float64", "float32", "bfloat16"])
@pytest.mark.parametrize("width", [6, 64])  # layers made for stacks; ordinary modules side by side
@pytest.mark.parametrize("normalised", [False, True])
def test_strategies_agree_on_a_frozen_trunk(normalised: bool, width: int, precision: str) -> None:
    g = torch.Generator().manual_seed(0)
    x, y = torch.randn(96, 2, 10, 10, generator=g), torch.randn(96, 2, generator=g)
    layers = [nn.Conv2d(2, width, 3), *([nn.BatchNorm2d(width)] if normalised else []), nn.ReLU()]
    own = nn.Sequential(*layers).requires_grad_(False)
    before = copy.deepcopy(own.state_dict())
    problem = pm.Problem(lambda: Net(own, width), lambda o, t: (o - t).square().mean(0), ["a", "b"], train=(x, y))
    options: dict[str, Any] = {"epochs": 8, "batch_size": 96, "precision": precision, "progress": "quiet"}
    fronts = [
        pm.fit(problem, "pareto-mtl", 3, strategy=strategy, device="cuda", **options)
        for strategy in ("sequential", "batched", "graphed", "auto")
    ]
    for name, value in before.items():
        assert torch.equal(own.state_dict()[name], value)
    allowed = {"float64": 1e-6, "float32": 1e-3, "bfloat16": 3e-2}[precision]
    for front in fronts:
        stacked = front.models.stacked()
        assert stacked["frozen.0.weight"].stride(0) == 0
        assert torch.equal(stacked["frozen.0.weight"][0].float().cpu(), before["0.weight"])
        torch.testing.assert_close(front.losses["train"], fronts[0].losses["train"], rtol=allowed, atol=allowed)
        for name, tensor in fronts[0].models.stacked().items() if precision == "float64" else ():
            torch.testing.assert_close(tensor, stacked[name], rtol=0, atol=allowed)
