"""Scaled training ends where training on losses scaled by hand does, whatever the units and the optimizer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import paretomtl as pm
from paretomtl.methods import ParetoMTL, Step
from paretomtl.methods.inputs import slice_state
from paretomtl.methods.loss_scaling import BALANCING

RATIOS = (1.0, 10.0, 1000.0, 4000.0)
STARTS = 8
STEPS = 200
OPTIMIZERS: dict[str, Callable[[Any], torch.optim.Optimizer]] = {
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=1.0),
    "adam": lambda parameters: torch.optim.Adam(parameters, lr=0.02),
}


def data() -> tuple[Tensor, Tensor]:
    """Inputs, and two functions of them with mean 0 and variance 1, partly noise: no network gets far below 0.1."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(48, 4, generator=generator, dtype=torch.float64)
    weights = torch.randn(4, 2, generator=generator, dtype=torch.float64)
    y = (x @ weights).tanh() + 0.3 * torch.randn(48, 2, generator=generator, dtype=torch.float64)
    y = (y - y.mean(0)) / y.std(0, correction=0)
    return x, y


def trained(scale: Any, optimizer: str, ratios: Sequence[float]) -> Tensor:
    """For each ratio of the units, what the middle one of three subproblems ends with: the mean loss over all starts.

    All models are rows of one stack, on which the optimizers are exact.
    """
    x, y = data()
    unit = torch.tensor([[ratio, 1.0] for ratio in ratios for _ in range(STARTS)], dtype=torch.float64)
    generator = torch.Generator().manual_seed(1)
    trunk, bias = (
        0.5 * torch.randn(STARTS, *shape, generator=generator, dtype=torch.float64) for shape in ((4, 3), (1, 3))
    )
    start = [trunk, bias, trunk.new_zeros(STARTS, 3, 2), trunk.new_zeros(STARTS, 1, 2)]  # losses begin at 1
    parameters = [torch.cat([part] * len(ratios)).requires_grad_() for part in start]
    stepper = OPTIMIZERS[optimizer](parameters)
    method = ParetoMTL(scale=scale)
    middle = slice_state(method.init(pm.preferences.even(3, 2)), slice(1, 2))
    state = {name: torch.cat([tensor] * len(unit)) for name, tensor in middle.items()}
    losses = torch.empty(0)
    for number in range(STEPS):
        w, b, v, a = parameters
        losses = unit * ((x @ w + b).tanh() @ v + a - y).square().mean(1)
        each = [torch.autograd.grad(losses[:, i].sum(), parameters, retain_graph=i == 0) for i in range(2)]
        rows = torch.stack([torch.cat([part.flatten(1) for part in row], 1) for row in each], 1)
        weights, state = method.weigh(Step(losses.detach(), rows @ rows.mT, number=number, total=STEPS), state)
        for parameter, *gradients in zip(parameters, *each, strict=True):
            parameter.grad = sum(weights[:, i, None, None] * gradients[i] for i in range(2))  # type: ignore[assignment]
        stepper.step()
    return (losses / unit).detach().reshape(len(ratios), -1).mean(1)


@cache
def by_hand(optimizer: str) -> float:
    """The same for losses that were scaled by hand before."""
    return float(trained(None, optimizer, (1.0,)))


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("scale", ["first", *BALANCING])
def test_units_cost_nothing(scale: Any, optimizer: str) -> None:
    found = trained(scale, optimizer, RATIOS) / by_hand(optimizer)
    assert (found < 1.1).all(), dict(zip(RATIOS, found.tolist(), strict=True))


@pytest.mark.parametrize("strategy", ["sequential", "batched"])
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_a_run_ends_with_the_losses_of_one_in_other_units(strategy: Any, precision: Any) -> None:
    def losses(ratio: float) -> Tensor:
        unit = torch.tensor([ratio, 1.0])
        problem = pm.Problem(
            lambda: nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2)),
            lambda outputs, targets: unit.to(outputs) * (outputs - targets).square().mean(0),
            ["large", "small"],
            train=data(),
        )
        front = pm.fit(
            problem,
            ParetoMTL(scale="running"),
            2,
            epochs=40,
            batch_size=48,
            optimizer=OPTIMIZERS["adam"],
            strategy=strategy,
            precision=precision,
            device="cpu",
            progress="quiet",
        )
        return front.losses["train"] / unit

    torch.testing.assert_close(losses(4096.0), losses(1.0), rtol=1e-3, atol=0.0)
