"""Coupled methods: the rows of a front are weighed together, whatever the strategy."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import paretomtl as pm
from _helpers.coupled import Breaking, Share, expected_weights
from _helpers.networks import MLP, classes, problem
from paretomtl.engine.coupling import slices
from paretomtl.engine.step import StepInput, train_step
from paretomtl.engine.strategy import Plan

WAYS: dict[str, dict[str, Any]] = {
    "sequential": {"strategy": "sequential", "workers": 1},
    "threads": {"strategy": "sequential", "workers": 2},
    "batched": {"strategy": "batched"},
    "micro-batches": {"strategy": "batched", "accumulate": 2},
}


def train(of: pm.Problem, method: pm.methods.Method, preferences: int = 3, **options: Any) -> pm.Front:
    sgd = lambda p: torch.optim.SGD(p, lr=0.3, momentum=0.9)  # noqa: E731
    usual: dict[str, Any] = {"epochs": 3, "batch_size": 32, "optimizer": sgd, "device": "cpu", "progress": "quiet"}
    return pm.fit(of, method, preferences, **{"precision": "float64", **usual, **options})


@pytest.mark.parametrize("gramian", [False, True])
def test_every_strategy_gives_the_same_weights(gramian: bool) -> None:
    fronts = {name: train(problem(), Share(gramian), **options) for name, options in WAYS.items()}
    first = fronts.pop("sequential")
    assert first.history["weights"].std(1).min() > 1e-6, "models differ"
    for name, other in fronts.items():
        torch.testing.assert_close(first.history["weights"], other.history["weights"], rtol=0, atol=1e-10, msg=name)
        torch.testing.assert_close(first.losses["train"], other.losses["train"], rtol=0, atol=1e-9, msg=name)


@pytest.mark.parametrize("strategy", ["sequential", "batched"])
def test_weights_are_those_of_the_formula(strategy: str) -> None:
    front = train(problem(), Share(), batch_size=96, epochs=4, strategy=strategy)
    for losses, weights in zip(front.history["losses"], front.history["weights"], strict=True):
        torch.testing.assert_close(weights, expected_weights(losses))


@pytest.mark.parametrize("strategy", ["sequential", "batched"])
def test_a_front_sees_nothing_of_another_seed(strategy: str) -> None:
    sgd = lambda p: torch.optim.SGD(p, lr=0.3)  # noqa: E731
    options: dict[str, Any] = {"epochs": 2, "batch_size": 96, "optimizer": sgd, "device": "cpu", "progress": "quiet"}
    options |= {"precision": "float64", "strategy": strategy}
    for front in pm.fit_seeds(problem(), Share(), 3, seeds=[0, 1, 2], **options):
        for losses, weights in zip(front.history["losses"], front.history["weights"], strict=True):
            torch.testing.assert_close(weights, expected_weights(losses))


@pytest.mark.parametrize("strategy", ["sequential", "batched"])
def test_a_broken_model_is_left_out_of_the_weights_of_others(strategy: str) -> None:
    with pytest.warns(UserWarning, match="not finite"):
        front = train(problem(Breaking), Share(), 5, batch_size=96, epochs=6, seed=3, strategy=strategy)
    broken = torch.tensor([status == "non-finite" for status in front.status])
    assert 0 < int(broken.sum()) < 5
    for epoch, (losses, weights) in enumerate(zip(front.history["losses"], front.history["weights"], strict=True)):
        gone = broken & (epoch >= 2)
        torch.testing.assert_close(
            weights[~gone], expected_weights(losses.masked_fill(gone[:, None], torch.nan))[~gone], equal_nan=True
        )


def test_a_stack_that_is_cut_is_weighed_as_a_whole() -> None:
    x, y = classes(32)

    def make(most: int | None) -> list[Any]:
        torch.manual_seed(0)
        modules = [MLP().double() for _ in range(5)]
        plan = Plan(problem(), Share(), lambda p: torch.optim.SGD(p, lr=0.1), front_size=5)
        return plan.batched(modules, Share().init(torch.ones(5, 2)), most)

    whole, parts = make(None), make(2)
    assert len(parts) == 3
    given = StepInput((x.double(), y), 0, 1)
    together, apart = (train_step(groups, given) for groups in (whole, parts))
    torch.testing.assert_close(together[0].weights, torch.cat([record.weights for record in apart]))


def test_fronts_are_slices_of_the_rows() -> None:
    assert slices(6, 3) == [slice(0, 3), slice(3, 6)]
    assert slices(4, None) == [slice(0, 4)]


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"only": [0, 1]}, "'only' must be None for the method 'share'.*Got \\[0, 1\\] of 3 rows"),
        ({"executor": pm.training.SerialExecutor(2)}, "'executor' must be None for the method 'share'"),
    ],
)
def test_a_part_of_a_front_is_refused(options: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        train(problem(), Share(), **options)


def test_one_row_in_a_loop_of_ones_own_is_refused() -> None:
    named = "'method' must weigh each row on its own to be bound to one. Got 'share' instead"
    with pytest.raises(ValueError, match=named):
        Share().bind(torch.ones(3, 2), 0)
    with pytest.raises(ValueError, match=named):
        pm.methods.Weigher(Share(), torch.ones(3, 2), 0)
