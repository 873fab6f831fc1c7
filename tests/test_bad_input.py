"""Calls of somebody who has read the README in haste: each is refused before training, by name, with what was found."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import paretomtl as pm
from fronts import front_of

X = torch.linspace(-1, 1, 8)[:, None]
Y = torch.cat([X.sin(), X.cos()], 1)
VECTORS = pm.preferences.even(3, tasks=2)
FRONT = front_of([[0.5, 0.5], [0.4, 0.7]])


def losses(outputs: Tensor, targets: Tensor) -> Tensor:
    return (outputs - targets).square().mean(0)


def problem(**changes: Any) -> pm.Problem:
    usual = {"model": lambda: nn.Linear(1, 1), "losses": losses, "tasks": ["sine", "cosine"], "train": (X, Y)}
    return pm.Problem(**{**usual, **changes})


def fit(given: Any = None, **changes: Any) -> pm.Front:
    usual = {"preferences": 3, "epochs": 2, "device": "cpu", "progress": "quiet", "strategy": "sequential"}
    return pm.fit(problem() if given is None else given, **{**usual, **changes})


def sgd(parameters: Any) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr=0.1)


class Rated(torch.optim.SGD):
    def __init__(self, params: Any, lr: float) -> None:
        super().__init__(params, lr=lr)


def refused(call: Callable[[], Any], message: str) -> None:
    """The rule and the value, in an error of one of three kinds whose last frame is in the library."""
    with pytest.raises((TypeError, ValueError, IndexError), match=re.escape(message)) as caught:
        call()
    assert "paretomtl" in str(caught.traceback[-1].path), "raised by the library, not by what it calls"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": nn.Linear}, "'model' must need no arguments, such as lambda: Network(3, 2). Got Linear(in_features"),
        ({"losses": lambda outputs: outputs}, "'losses' must take (outputs, targets), or (model, batch). Got <lambda>"),
        ({"train": None}, "'losses' must take (outputs) where 'train' is None. Got losses(outputs, targets) instead"),
        ({"tasks": 2}, "'tasks' must be a list of names. Got int instead."),
        ({"tasks": {"sine", "cosine"}}, "'tasks' must be a list of names. Got set instead."),
        ({"tasks": [1, 2]}, "'tasks' must be names. Got 1 instead."),
        ({"name": None}, "'name' must be a string. Got None instead."),
        ({"metrics": losses}, "'metrics' must be Metric objects by name. Got function instead."),
        ({"metrics": {1: pm.Metric(losses)}}, "'metrics' must have names. Got 1 instead."),
        ({"shared": 3}, "'shared' must be names of parameters or their beginnings, or a function of a name. Got int"),
        ({"shared": [nn.Linear(1, 1)]}, "or a function of a name. Got Linear instead."),
        ({"reference": 1.0}, "'reference' must be 2 finite numbers. Got 1.0 instead."),
        ({"reference": ["a", "b"]}, "'reference' must be 2 finite numbers. Got ['a', 'b'] instead."),
        ({"recipe": {"epochs": 3}}, "'recipe' must be a Recipe. Got dict instead."),
    ],
)
def test_problems_are_refused_where_they_are_made(changes: dict[str, Any], message: str) -> None:
    refused(lambda: problem(**changes), message)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: pm.Recipe(batch_size="32"), "'batch_size' must be a whole number of at least 1. Got '32' instead."),  # type: ignore[arg-type]
        (lambda: pm.Recipe(optimizer=sgd([X])), "'optimizer' must be a function that makes one. Got SGD instead."),  # type: ignore[arg-type]
        (lambda: pm.Recipe(scheduler=lambda o: None), "'scheduler' must be a function of (optimizer, total), such as"),  # type: ignore[arg-type,misc]
        (lambda: pm.Recipe(schedule="batch"), "'schedule' must be \"epoch\" or \"step\". Got 'batch' instead."),  # type: ignore[arg-type]
        (lambda: pm.Recipe(methods=["linear"]), "'methods' must be configured methods by name. Got list instead."),  # type: ignore[arg-type]
        (lambda: pm.Metric(lambda outputs: 1.0), "'function' must take (outputs, targets), or (model, batches). Got"),  # type: ignore[arg-type,misc]
        (lambda: pm.ParetoMTL(epsilon="0.1"), "'epsilon' must be at least 0 and under 1. Got '0.1' instead."),  # type: ignore[arg-type]
        (lambda: pm.ParetoMTL(rescale="false"), "'rescale' must be True or False. Got 'false' instead."),  # type: ignore[arg-type]
        (lambda: pm.ParetoMTL(unit_rows=1), "'unit_rows' must be True or False. Got 1 instead."),  # type: ignore[arg-type]
        (lambda: pm.MGDA(rescale="no"), "'rescale' must be True or False. Got 'no' instead."),  # type: ignore[arg-type]
        (lambda: pm.GradNorm(asymmetry=float("nan")), "'asymmetry' must be a finite number. Got nan instead."),
        (lambda: pm.GradNorm(learning_rate="1"), "'learning_rate' must be positive. Got '1' instead."),  # type: ignore[arg-type]
        (lambda: pm.Uncertainty(kinds=2), '\'kinds\' must be "classification" or "regression". Got 2 instead.'),  # type: ignore[arg-type]
        (lambda: pm.Uncertainty(normalize="no"), "'normalize' must be True or False. Got 'no' instead."),  # type: ignore[arg-type]
        (lambda: pm.TorchJD("UPGrad", learning_rate=-1), "'learning_rate' must be positive. Got -1 instead."),
        (lambda: pm.TorchJD("UPGrad", None), "'options' must be a dictionary of arguments of UPGrad. Got NoneType"),  # type: ignore[arg-type]
    ],
)
def test_settings_are_refused_where_they_are_made(make: Callable[[], Any], message: str) -> None:
    refused(make, message)


def _trained(report: Any) -> None:
    raise AssertionError("an epoch was trained")


class Broken(torch.utils.data.Dataset[Any]):
    def __len__(self) -> int:
        return 4

    def __getitem__(self, i: int) -> None:
        return None


def frozen_aside(parameters: Any) -> torch.optim.Optimizer:
    return torch.optim.SGD([each for each in parameters if each.requires_grad])


def stumble(report: Any) -> None:
    raise KeyError("accuracy")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: FRONT.model("0"), "'k' must be one of the subproblems trained, [0, 1]. Got '0' instead."),  # type: ignore[arg-type]
        (lambda: FRONT.state_dict(True), "'k' must be one of the subproblems trained, [0, 1]. Got True instead."),
        (lambda: FRONT.around(0, angle="5"), "'angle' must be over 0 and at most 90 degrees. Got '5' instead."),  # type: ignore[arg-type]
        (lambda: FRONT.hypervolume(1.0), "'reference' must have one finite number per task (2). Got 1.0 instead."),  # type: ignore[arg-type]
        (lambda: FRONT.spread(["train"]), "'split' must be one of ['train']. Got ['train'] instead."),  # type: ignore[arg-type]
        (
            lambda: FRONT.igd_plus([[1, 2], [1]]),
            "'points' must be real numbers, as many in each row. Got [[1, 2], [1]]",
        ),  # type: ignore[arg-type]
        (lambda: FRONT.igd_plus(torch.full((1, 2), torch.nan)), "'points' must be finite. Got [nan, nan] in row 0"),
        (lambda: FRONT.plot(3), "'path' must be a path that is not empty. Got 3 instead."),  # type: ignore[arg-type]
        (lambda: FRONT.save(""), "'path' must be a path that is not empty. Got '' instead."),
        (lambda: FRONT.save(__file__), "'path' must be a folder. Got the file '"),
        (lambda: pm.Front.load(None), "'path' must be a path that is not empty. Got None instead."),  # type: ignore[arg-type]
        (lambda: pm.Front.load("x", "multi-digits"), "'problem' must be a Problem. Got str instead."),  # type: ignore[arg-type]
        (lambda: FRONT.select(direction=3), "'direction' must be 2 numbers, not negative and not all zero. Got 3"),  # type: ignore[arg-type]
        (lambda: FRONT.select(importance=["a", "b"]), "'importance' must be 2 numbers, not negative and not all zero."),  # type: ignore[list-item]
        (lambda: FRONT.select(at_most=0.3, best="a"), "'at_most' must be a dictionary of numbers by name. Got 0.3"),  # type: ignore[arg-type]
        (lambda: FRONT.select(best=0), "bounds and 'best' must have names of tasks or metrics. Got 0 instead."),  # type: ignore[arg-type]
        (lambda: FRONT.select(knee=True, split=""), "'split' must be one of ['train']. Got '' instead."),
    ],
)
def test_fronts_name_what_is_wrong(call: Callable[[], Any], message: str) -> None:
    refused(call, message)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pm.preferences.random(3, 2, seed=None), "'seed' must be a whole number. Got None instead."),  # type: ignore[arg-type]
        (lambda: pm.preferences.biased(3, "left"), "'direction' must be real numbers, as many in each row. Got 'left'"),  # type: ignore[arg-type]
        (lambda: pm.preferences.biased(3, [1, 1], concentration="1"), "'concentration' must be at least 0 and under 1"),  # type: ignore[arg-type]
        (lambda: pm.preferences.validate([[1, 0], [1]]), "'preferences' must be real numbers, as many in each row."),
        (lambda: pm.preferences.validate(1j * torch.ones(2, 2)), "'preferences' must be real numbers"),
        (lambda: pm.core.min_norm(np.eye(2)), "'gramian' must be a tensor. Got ndarray instead."),  # type: ignore[arg-type]
        (lambda: pm.core.nondominated([[1.0, 2.0]]), "'losses' must be a tensor. Got list instead."),  # type: ignore[arg-type]
        (lambda: pm.core.dominates(None, X), "'a' must be a tensor. Got NoneType instead."),  # type: ignore[arg-type]
        (lambda: pm.MGDA().bind(3, 0), "'preferences' must have shape [K, m]. Got [] instead."),  # type: ignore[arg-type]
        (lambda: pm.MGDA().bind(VECTORS, "1"), "'index' must be a row of the 3 preferences. Got '1' instead."),  # type: ignore[arg-type]
        (lambda: pm.MGDA().bind(VECTORS, 1).load_state_dict(None), "'saved' must be what state_dict() returned"),  # type: ignore[arg-type]
    ],
)
def test_vectors_and_weighers_name_what_is_wrong(call: Callable[[], Any], message: str) -> None:
    refused(call, message)
