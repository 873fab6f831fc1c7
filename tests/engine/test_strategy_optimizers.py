"""Optimizers that train other parameters than all of a model's."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from _helpers.networks import MLP, fit, problem


def test_parameters_that_the_optimizer_leaves_out_do_not_count() -> None:
    """They are as good as frozen: no method may weigh tasks by gradients that nothing follows."""

    class Frozen(MLP):
        def __init__(self) -> None:
            super().__init__()
            self.trunk.requires_grad_(False)

    def heads(pairs: Any) -> torch.optim.Optimizer:
        return torch.optim.SGD([p for name, p in pairs if name.startswith("heads")], lr=0.1)

    for strategy in ("sequential", "batched"):
        for method in ("mgda", "linear", "pareto-mtl"):
            left_out = fit(problem(), method, optimizer=heads, strategy=strategy)
            frozen = fit(problem(Frozen), method, optimizer=heads, strategy=strategy)
            assert torch.equal(left_out.losses["train"], frozen.losses["train"])


def test_an_optimizer_of_other_parameters_is_refused() -> None:
    stranger = MLP()
    with pytest.raises(ValueError, match="'optimizer' must make an optimizer of the parameters that it is given"):
        fit(problem(), "linear", optimizer=lambda pairs: torch.optim.SGD(stranger.parameters(), lr=0.1))
