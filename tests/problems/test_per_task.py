"""Data and losses by task: what is taken for them, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import paretomtl as pm
from paretomtl.problems import PerTask

X, Y = torch.ones(6, 3), torch.ones(6)
PAIR = (X, Y)
LOSSES: Any = {"age": nn.MSELoss(), "sex": nn.L1Loss()}


def problem(train: Any, losses: Any = LOSSES, **options: Any) -> pm.Problem:
    return pm.Problem(lambda: nn.Linear(3, 1), losses, ["age", "sex"], train=train, **options)


def general(model: Any, batch: Any) -> Tensor:
    return torch.stack([model(batch["age"]).mean(), model(batch["sex"]).mean()])


def test_data_sets_by_task_are_told_from_columns() -> None:
    for part in (PAIR, list(PAIR), (X.numpy(), Y.numpy()), TensorDataset(X, Y), DataLoader(TensorDataset(X, Y))):
        assert isinstance(problem({"age": part, "sex": PAIR}).train, PerTask)
    assert isinstance(problem({"age": X, "sex": X}, losses=general).train, dict)
    assert list(problem({"sex": PAIR, "age": PAIR}).train.data) == ["age", "sex"]


def test_loaders_combined_by_lightning_are_taken_apart() -> None:
    class CombinedLoader:
        """As in Lightning 2."""

        def __init__(self, iterables: Any, mode: str) -> None:
            self.iterables, self._mode, self.flattened = iterables, mode, []

    loaders = {"age": DataLoader(TensorDataset(X, Y)), "sex": DataLoader(TensorDataset(X, Y))}
    assert problem(CombinedLoader(loaders, "min_size")).train == PerTask(loaders, "min_size")
    with pytest.raises(ValueError, match=r"in one of the modes .* Got mode 'sequential' over a dict"):
        problem(CombinedLoader(loaders, "sequential"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"train": {"age": PAIR, "race": PAIR}}, r"'train' must have one data set for each of the tasks"),
        ({"losses": {"age": nn.MSELoss()}}, r"'losses' must have one function for each of the tasks"),
        ({"losses": {"age": nn.MSELoss(), "sex": 3}}, r"'losses\['sex'\]' must be a function. Got int"),
        ({"losses": {"age": nn.MSELoss(), "sex": lambda o: o}}, r"'losses\['sex'\]' must take \(outputs, targets\)"),
        ({"losses": lambda outputs, targets: outputs}, "'losses' must be a dictionary of functions by task name, or"),
        ({"representation": "trunk"}, "'representation' must be None if each task has its own data"),
        ({"metrics": {"m": pm.Metric(nn.MSELoss(), task="race")}}, r"'task' must be one of the tasks .* Got 'race'"),
        ({"train": PerTask({"age": PAIR, "sex": None})}, r"'train\['sex'\]' must be a data set. Got NoneType"),
        ({"train": {"age": PAIR, "sex": (X, torch.ones(2))}}, r"'train\['sex'\]' must be tensors with the same"),
    ],
)  # fmt: skip
def test_bad_combinations_are_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        pm.fit(problem(**{"train": {"age": PAIR, "sex": PAIR}, **changes}), epochs=1, progress="quiet")


def test_modes_are_named() -> None:
    with pytest.raises(ValueError, match=r"'mode' must be one of \['max_size_cycle', 'min_size'\]. Got 'max'"):
        PerTask({"age": PAIR}, mode="max")  # type: ignore[arg-type]


def test_the_representation_shows_each_data_set() -> None:
    shown = repr(problem({"age": PAIR, "sex": DataLoader(TensorDataset(X, Y), batch_size=4)}))
    assert "losses: {'age': 'MSELoss', 'sex': 'L1Loss'}" in shown
    assert "by task (max_size_cycle): age: ([6, 3] float32, [6] float32); sex: DataLoader of TensorDataset" in shown
