"""Factories whose models, and optimizers whose steps, a stack would mix: they train one after another, or as asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import paretomtl as pm
from _helpers.networks import MLP, fit, problem


class Rates(MLP):
    """Each model with a dropout rate of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk.append(nn.Dropout(float(torch.rand(()))))


class Depths(MLP):
    """Drops a whole layer, at a rate of each model's own."""

    def __init__(self) -> None:
        super().__init__()
        self.rate = float(torch.rand(()))

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        kept = torch.where(torch.rand(()) < self.rate, 0.0, 1.0) if self.training else 1.0
        return super().forward(x * kept)


class Frozen(MLP):
    """Trains some of its layers, which are drawn."""

    def __init__(self) -> None:
        super().__init__()
        self.heads[0].bias.requires_grad_(bool(torch.rand(()) < 0.5))


class Modes(MLP):
    """Some models keep the statistics of their normalisation."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk.append(nn.BatchNorm1d(12).train(bool(torch.rand(()) < 0.5)))


@pytest.mark.parametrize("model", [Rates, Depths, Frozen, Modes])
def test_models_that_differ_in_what_a_stack_has_once_are_not_stacked(model: Any) -> None:
    with pytest.raises(ValueError, match="models differ in what a stack has once"):
        fit(problem(model), "linear", 9, strategy="batched")
    automatic = fit(problem(model), "linear", 9, strategy="auto", workers=1)
    assert automatic.strategy.startswith("sequential: models differ")


def clipped(parameters: Any) -> torch.optim.Optimizer:
    """Clips none of these gradients: no trial would show it."""
    optimizer = torch.optim.SGD(parameters, lr=0.5)
    tensors = [tensor for group in optimizer.param_groups for tensor in group["params"]]

    def clip(*_: Any) -> None:
        nn.utils.clip_grad_norm_(tensors, 100.0)

    optimizer.register_step_pre_hook(clip)
    return optimizer


def normed(parameters: Any) -> torch.optim.Optimizer:
    """After each step, the weights have unit norm."""
    optimizer = torch.optim.SGD(parameters, lr=0.5)

    def scale(*_: Any) -> None:
        for tensor in optimizer.param_groups[0]["params"]:
            tensor.data.div_(tensor.norm())

    optimizer.register_step_post_hook(scale)
    return optimizer


def wrapped(parameters: Any) -> torch.optim.Optimizer:
    optimizer = torch.optim.SGD(parameters, lr=0.5)
    step: Callable[..., Any] = optimizer.step

    def longer() -> Any:
        nn.utils.clip_grad_norm_(optimizer.param_groups[0]["params"], 1e-3)
        return step()

    optimizer.step = longer  # type: ignore[method-assign, assignment]
    return optimizer


@pytest.mark.parametrize("optimizer", [clipped, normed, wrapped])
def test_optimizers_that_would_mix_models_are_not_stacked(optimizer: Any) -> None:
    with pytest.raises(ValueError, match="'optimizer' must have no hooks and its own step"):
        fit(strategy="batched", optimizer=optimizer)
    one, automatic = (fit(strategy=name, optimizer=optimizer, workers=1) for name in ("sequential", "auto"))
    for name, tensor in one.models.stacked().items():
        assert torch.equal(tensor, automatic.models.stacked()[name])


class Flat(nn.Module):
    """A convolution, whose means are the outputs."""

    def __init__(self, layer: Any, dimensions: int) -> None:
        super().__init__()
        self.layer, self.dimensions = layer(2, 2, 3), dimensions

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x.reshape(-1, 2, *[6] * self.dimensions)).flatten(2).mean(-1).float()


@pytest.mark.parametrize(
    ("layer", "dimensions"), [(nn.Conv2d, 2), (nn.Conv1d, 1), (nn.ConvTranspose2d, 2), (nn.Conv3d, 3)]
)
def test_stacked_convolutions_have_the_precision_that_was_asked_for(layer: Any, dimensions: int) -> None:
    """On a CPU, autocast passes over convolutions under vmap. Weights that do not move show it in the losses."""
    x = torch.randn(8, 2 * 6**dimensions, generator=torch.Generator().manual_seed(0)) + 1.0
    losses = lambda outputs, targets: (outputs - targets).square().mean(0)  # noqa: E731
    made = pm.Problem(lambda: Flat(layer, dimensions), losses, ["a", "b"], train=(x, torch.zeros(8, 2)))
    still = lambda parameters: torch.optim.SGD(parameters, lr=0.0)  # noqa: E731
    one, both, full = (
        fit(made, "linear", 3, strategy=strategy, precision=precision, optimizer=still, epochs=1).losses["train"]
        for strategy, precision in [("sequential", "bfloat16"), ("batched", "bfloat16"), ("batched", "float32")]
    )
    assert not torch.allclose(both, full, rtol=1e-5)
    torch.testing.assert_close(both, one, rtol=3e-3, atol=1e-4)
