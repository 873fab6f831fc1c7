"""Arguments of the factories of optimizers and schedulers."""

from __future__ import annotations

import functools
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.optim import lr_scheduler

import paretomtl as pm
from paretomtl._support.factories import takes_total

X = torch.linspace(-1, 1, 36).reshape(12, 3)
Y = torch.stack([X.sum(1), X[:, 0]], 1)
SGD = torch.optim.SGD


def losses(outputs: Tensor, targets: Tensor) -> Tensor:
    return (outputs - targets).square().mean(0)


def fit(recipe: Any = None, **options: Any) -> pm.Front:
    problem = pm.Problem(lambda: nn.Linear(3, 2), losses, ["a", "b"], train=(X, Y), recipe=recipe or pm.Recipe())
    usual: dict[str, Any] = {"epochs": 3, "device": "cpu", "progress": "quiet", "strategy": "sequential"}
    return pm.fit(problem, "linear", 2, **{"optimizer": lambda p: SGD(p, lr=0.1), **usual, **options})


EXPECTED = fit().losses["train"]


def by_name(parameters: Any) -> Any:
    biases = [tensor for name, tensor in parameters if name.endswith("bias")]
    return SGD([{"params": [tensor for _, tensor in parameters if tensor.ndim > 1]}, {"params": biases}], lr=0.1)


@pytest.mark.parametrize(
    "factory",
    [
        lambda p: SGD([{"params": p}], lr=0.1),
        lambda p: SGD([q for q in p if q.requires_grad], lr=0.1),
        lambda p: SGD(filter(lambda q: q.requires_grad, p), lr=0.1),
        lambda p: SGD([{"params": [q for q in p if q.ndim > 1]}, {"params": [q for q in p if q.ndim == 1]}], lr=0.1),
        lambda p: SGD(dict(p).values(), lr=0.1),
        lambda p: SGD(p, lr=0.1 if p[0].shape == (2, 3) and p[0][1].shape == (2, 3) else 0.0),
        by_name,
    ],
)
def test_parameters_are_pairs_and_tensors_at_once(factory: Any) -> None:
    assert torch.equal(fit(optimizer=factory).losses["train"], EXPECTED)


def test_a_factory_that_goes_by_shapes_is_not_stacked() -> None:
    """A bias of a stack has two dimensions."""

    def by_shape(parameters: Any) -> Any:
        decayed = {"params": [q for q in parameters if q.ndim > 1], "weight_decay": 0.5}
        return SGD([decayed, {"params": [q for q in parameters if q.ndim == 1]}], lr=0.1)

    front = fit(optimizer=by_shape, strategy="auto")
    assert torch.equal(front.losses["train"], fit(optimizer=by_shape).losses["train"])


def test_an_optimizer_that_needs_a_closure_is_refused() -> None:
    with pytest.raises(ValueError, match=r"Got LBFGS, which needs one: take another, such as torch.optim.Adam"):
        fit(optimizer=lambda p: torch.optim.LBFGS(p))


@pytest.mark.parametrize(
    ("factory", "expected"),
    [
        (lambda o: None, False),
        (lambda o, total: None, True),
        (lambda optimizer, epochs: None, True),
        (lambda o, total=3: None, True),
        (lambda o, rate=0.5: None, False),
        (lambda o, *, gamma=0.5: None, False),
        (lr_scheduler.CosineAnnealingLR, True),
        (functools.partial(lr_scheduler.CosineAnnealingLR, eta_min=0.1), True),
        (functools.partial(lr_scheduler.CosineAnnealingLR, T_max=3), False),
        (lr_scheduler.ExponentialLR, False),
        (lr_scheduler.StepLR, False),
        (lr_scheduler.ConstantLR, False),
    ],
)
def test_who_asks_for_the_total_gets_it(factory: Any, expected: bool) -> None:
    assert takes_total(factory) is expected


@pytest.mark.parametrize(("schedule", "total"), [("epoch", 3), ("step", 9)])
def test_schedulers_are_called_alike_by_fit_and_recipes(schedule: Any, total: int) -> None:
    seen = []

    def cosine(optimizer: Any, total: int) -> Any:
        seen.append(total)
        return lr_scheduler.CosineAnnealingLR(optimizer, total)

    alone = lambda o: lr_scheduler.CosineAnnealingLR(o, total)  # noqa: E731
    fronts = [
        fit(pm.Recipe(scheduler=factory, schedule=schedule), batch_size=4) if of_recipe
        else fit(scheduler=factory, schedule=schedule, batch_size=4)
        for factory in (cosine, alone, lr_scheduler.CosineAnnealingLR)
        for of_recipe in (True, False)
    ]  # fmt: skip
    assert set(seen) == {total}
    assert all(torch.equal(front.losses["train"], fronts[0].losses["train"]) for front in fronts)


def test_a_total_that_nobody_knows_is_refused() -> None:
    class Stream(torch.utils.data.IterableDataset[Any]):
        def __iter__(self) -> Any:
            return zip(X, Y, strict=True)

    problem = pm.Problem(lambda: nn.Linear(3, 2), losses, ["a", "b"], train=Stream())
    options: dict[str, Any] = {"epochs": 1, "schedule": "step", "device": "cpu", "progress": "quiet"}
    with pytest.raises(ValueError, match=r"'scheduler' must be a function of \(optimizer\) alone for data without"):
        pm.fit(problem, "linear", 2, scheduler=lambda o, total: lr_scheduler.CosineAnnealingLR(o, total), **options)
