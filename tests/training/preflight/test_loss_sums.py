"""Losses that are sums over samples."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import paretomtl as pm
from _helpers.networks import MLP, classes, fit, problem


def sums(outputs: Any, targets: Tensor) -> Tensor:
    return torch.stack(
        [nn.functional.cross_entropy(outputs[i], targets[:, i], reduction=("sum", "mean")[i]) for i in range(2)]
    )


@pytest.mark.filterwarnings("ignore:first losses differ by a factor")  # a sum is larger than a mean
def test_losses_that_are_sums_over_samples_are_said_to_be() -> None:
    """Losses of a split are means over batches by samples, and sums would depend on the batch size."""
    with pytest.warns(UserWarning, match=r"losses of tasks \['a'\] are sums over samples"):
        fit(problem(losses=sums), "linear", epochs=1, optimizer=lambda p: torch.optim.SGD(p, lr=1e-3))

    def of_model(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        return sums(model(batch["x"]), batch["y"])

    train = dict(zip("xy", classes(), strict=True))
    with pytest.warns(UserWarning, match=r"losses of tasks \['a'\] are sums over samples"):
        fit(
            pm.Problem(MLP, of_model, ["a", "b"], train=train),
            "linear",
            epochs=1,
            optimizer=lambda p: torch.optim.SGD(p, lr=1e-3),
        )
