"""Hooks and modes of users' modules: they work under every strategy, or are refused by name."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

import paretomtl as pm
from _helpers.networks import MLP, Dropped, Normed, classes, fit, problem
from paretomtl.problems import cross_entropies

# Hooks.


class Masked(MLP):
    """Trains half of a weight, by a hook that takes the gradient of the other half away."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk[0].weight.register_hook(lambda gradient: gradient * self.mask())

    @staticmethod
    def mask() -> Tensor:
        return torch.arange(12)[:, None] < 6


def test_hooks_of_parameters_run_under_every_strategy() -> None:
    start = fit(problem(Masked), "linear", optimizer=lambda p: torch.optim.SGD(p, lr=0.0), epochs=1)
    front = fit(problem(Masked), "linear")
    assert front.strategy.startswith("sequential")
    assert "hooks" in front.strategy
    moved = front.models.stacked()["trunk.0.weight"] != start.models.stacked()["trunk.0.weight"]
    assert torch.equal(moved, Masked.mask().expand_as(moved))
    with pytest.raises(ValueError, match="hooks"):
        fit(problem(Masked), "linear", strategy="batched")


class Clamping(MLP):
    """Clamps what flows back, which the first step need not show: by a hook of an activation, or of a module."""

    of_module = False

    def __init__(self) -> None:
        super().__init__()
        if self.of_module:
            self.heads[0].register_full_backward_hook(lambda part, to_inputs, to_outputs: (to_inputs[0].clamp(-1, 1),))

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        hidden = self.trunk(x)
        if hidden.requires_grad and not self.of_module:
            hidden.register_hook(lambda gradient: gradient.clamp(-1.0, 1.0))
        return tuple(head(hidden) for head in self.heads)


class ClampingModule(Clamping):
    of_module = True


@pytest.mark.parametrize("model", [Clamping, ClampingModule])
def test_hooks_of_activations_and_modules_are_no_part_of_a_stack(model: type[Clamping]) -> None:
    front = fit(problem(model), "linear", epochs=1)
    assert front.strategy.startswith("sequential")
    assert "hooks" in front.strategy


class After(MLP):
    """A hook that waits for a gradient to be accumulated."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk[0].weight.register_post_accumulate_grad_hook(lambda parameter: None)


def test_hooks_that_would_never_run_are_refused() -> None:
    with pytest.raises(ValueError, match=r"post_accumulate_grad_hook.*'trunk.0.weight'"):
        fit(problem(After), "linear")
    model = After()
    weigher = pm.ParetoMTL().bind(pm.preferences.even(3, tasks=2), index=1)
    x, y = classes()
    with pytest.raises(ValueError, match="post_accumulate_grad_hook"):
        pm.backward(cross_entropies(model(x), y), weigher, model.parameters())


# Modes.


class Overriding(Normed):
    """Keeps its normalisation in eval mode, in the way that is usual: whenever somebody calls train()."""

    def train(self, mode: bool = True) -> Overriding:
        super().train(mode)
        self.trunk[1].eval()
        return self


@pytest.mark.parametrize("strategy", ["sequential", "batched"])
def test_models_that_override_train_are_asked(strategy: Any) -> None:
    front = fit(problem(Overriding, val=classes(seed=1)), "linear", strategy=strategy)
    assert not front.models.stacked()["trunk.1.running_mean"].any()
    assert not front.models.stacked()["trunk.1.num_batches_tracked"].any()


def test_a_model_in_eval_mode_is_refused() -> None:
    """Functions that load pretrained networks hand them out so; dropout would be off without a word."""
    with pytest.raises(ValueError, match=r"'model' must make a module in train mode.*call train\(\)"):
        fit(problem(lambda: Dropped().eval()), "linear")


def test_dropout_in_eval_mode_is_said_to_be() -> None:
    class Wrapped(Dropped):
        def __init__(self) -> None:
            super().__init__()
            self.trunk.eval()  # as a pretrained network inside of a model would be

    with pytest.warns(UserWarning, match="dropout of 'trunk' is off"):
        fit(problem(Wrapped), "linear", epochs=1)
