"""What would make a front say something else than its models: found before training."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from _helpers.networks import MLP, classes, fit, problem
from paretomtl._support.random_state import model_seed
from paretomtl.problems import cross_entropies


class Features(nn.Module):
    """Random features in a plain attribute, which no front stores."""

    def __init__(self, features: Tensor) -> None:
        super().__init__()
        self.features = features
        self.inner = MLP()

    def forward(self, x: Tensor) -> Any:
        return self.inner(torch.cos(x @ self.features))


def unseeded() -> nn.Module:
    return Features(torch.as_tensor(np.random.default_rng().normal(size=(6, 6)), dtype=torch.float32))


def seeded() -> nn.Module:
    return Features(torch.randn(6, 6))


@pytest.mark.parametrize("count", [1, 3])
def test_a_factory_that_makes_another_model_each_time_is_refused(count: int) -> None:
    """Front.model(k) could not hand out what was trained."""
    rows = [[1.0, 2.0], [1.0, 1.0], [2.0, 1.0]][:count]
    with pytest.raises(ValueError, match="'model' must make the same model again from the same random state"):
        fit(problem(unseeded), "linear", rows)
    numbers = itertools.count(1)

    def counting() -> nn.Module:
        return Features(torch.eye(6) * next(numbers))

    with pytest.raises(ValueError, match="'features'"):
        fit(problem(counting), "linear", rows)


def test_a_factory_that_draws_from_the_random_state_is_fine() -> None:
    front = fit(problem(seeded), "linear", epochs=1)
    x, y = classes()
    measured = torch.stack([cross_entropies(front.model(k)(x), y) for k in range(3)]).detach()
    torch.testing.assert_close(front.losses["train"], measured)


def test_parameters_from_elsewhere_are_fine() -> None:
    """Fronts store them, wherever they come from."""

    def make() -> nn.Module:
        model = MLP()
        with torch.no_grad():
            model.trunk[0].weight.copy_(torch.as_tensor(np.random.default_rng().normal(size=(12, 6))))
        return model

    fit(problem(make), "linear", epochs=1)


def test_a_factory_that_counts_is_refused_wherever_it_makes_another_model() -> None:
    """The model that Front.model(0) makes would be like the last ones."""
    numbers = itertools.count()

    def make() -> nn.Module:
        return Features(torch.eye(6) * (1.0 if next(numbers) < 4 else 3.0))

    with pytest.raises(ValueError, match="'model' must make the same model again"):
        fit(problem(make), "linear", 6)


def test_the_one_model_that_differs_is_compared_with_its_stack() -> None:
    """A stack runs all models through the attributes of the first; only some of many are tried alone."""

    def make() -> nn.Module:
        return Features(torch.eye(6) * (1.0 + 2.0 * (torch.initial_seed() == seeds[5])))

    seeds = [model_seed(0, k) for k in range(12)]
    front = fit(problem(make), "linear", 12, epochs=1)
    assert front.strategy.startswith("sequential: models differ in what a stack has once")
    x, y = classes()
    torch.testing.assert_close(front.losses["train"][5], cross_entropies(front.model(5)(x), y).detach())
    with pytest.raises(ValueError, match="models differ in what a stack has once"):
        fit(problem(make), "linear", 12, strategy="batched")
