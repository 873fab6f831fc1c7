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


# Which part of outputs and targets each function gets.

G = torch.Generator().manual_seed(0)
X2, Y2 = torch.randn(40, 3, generator=G), torch.randn(40, 2, generator=G)
COLUMNS = (X2, Y2)
SEPARATE = (X2, Y2[:, 0], Y2[:, 1])
mse = nn.functional.mse_loss


def nll(outputs: Any, targets: Tensor) -> Tensor:
    """Of a mean and the logarithm of a variance."""
    return ((outputs[0] - targets).square() / outputs[1].exp() + outputs[1]).mean()


class Heads(nn.Module):
    """Two numbers for each sample, in some structure."""

    def __init__(self, structure: str = "tensor") -> None:
        super().__init__()
        self.line, self.structure = nn.Linear(3, 2), structure

    def forward(self, x: Tensor) -> Any:
        y = self.line(x)
        first, second = y.unbind(-1)
        parts: dict[str, Any] = {
            "tensor": y,
            "tuple": (first, second),
            "columns": (y[:, :1], y[:, 1:]),
            "names": {"age": first, "sex": second},
            "one": y[:, 0],
            "variance": (y, 0.1 * y),
            "channels": y[:, :, None, None].expand(-1, -1, 2, 2),
        }
        return parts[self.structure]


def heads(structure: str, losses: Any, train: Any = COLUMNS, **options: Any) -> pm.Problem:
    return pm.Problem(lambda: Heads(structure), losses, ["age", "sex"], train=train, **options)


def fit(of: pm.Problem, epochs: int = 1) -> pm.Front:
    return pm.fit(of, "linear", 2, epochs=epochs, device="cpu", progress="quiet", strategy="sequential")


@pytest.mark.parametrize(
    ("structure", "losses", "train"),
    [
        ("tensor", {"age": mse, "sex": mse}, COLUMNS),  # both would be the mean over both columns
        ("tensor", {"age": mse, "sex": nn.functional.l1_loss}, COLUMNS),
        ("channels", {"age": mse, "sex": mse}, (X2, Y2[:, :, None, None].expand(-1, -1, 2, 2))),
        ("columns", {"age": mse, "sex": mse}, COLUMNS),  # [n, 1] against [n, 2]
        ("variance", dict.fromkeys(["age", "sex"], nll), COLUMNS),
        ("one", dict.fromkeys(["age", "sex"], lambda o, t: (t[1] * (o - t[0]) ** 2).mean()), SEPARATE),  # weights
        ("tensor", {"age": mse, "sex": mse}, {"age": (X2, Y2[:, :1]), "sex": (X2, Y2[:, 1:])}),
    ],
)
@pytest.mark.filterwarnings("ignore:Using a target size")
def test_functions_that_run_on_two_readings_are_refused(structure: str, losses: Any, train: Any) -> None:
    with pytest.raises(ValueError, match=r"(?s)'losses' must leave no doubt.*\{'age': ..., 'sex': ...\}.*one function"):
        fit(heads(structure, losses, train))


SLICED = {"age": lambda o, t: mse(o[:, 0], t[:, 0]), "sex": lambda o, t: mse(o[:, 1], t[:, 1])}
HALF = {"age": lambda o, t: mse(o, t[:, 0]), "sex": lambda o, t: mse(o, t[:, 1])}


@pytest.mark.parametrize(
    ("structure", "losses", "train"),
    [
        ("tensor", SLICED, COLUMNS),
        ("tuple", HALF, COLUMNS),
        ("names", HALF, COLUMNS),
        ("tuple", {"age": mse, "sex": mse}, SEPARATE),
        ("names", {"age": mse, "sex": mse}, SEPARATE),
        ("names", {"age": mse, "sex": mse}, {"age": (X2, Y2[:, 0]), "sex": (X2, Y2[:, 1])}),
        ("tensor", lambda o, t: (o - t).square().mean(0), COLUMNS),
    ],
)
def test_functions_by_task_are_those_of_one_function_of_all(structure: str, losses: Any, train: Any) -> None:
    front = fit(heads(structure, losses, train))
    for k in range(2):
        y = front.model(k).line(X2)
        torch.testing.assert_close(front.losses["train"][k], (y - Y2).square().mean(0).detach())


def test_tasks_may_share_one_output_and_classes_are_no_tasks() -> None:
    """One output for two targets; two classes for two losses, one of which has no use for the targets."""
    front = fit(heads("one", {"age": mse, "sex": mse}, SEPARATE))
    y = front.model(0).line(X2)[:, :1]
    torch.testing.assert_close(front.losses["train"][0], (y - Y2).square().mean(0).detach())
    classes = {"age": nn.functional.cross_entropy, "sex": lambda o, t: o.softmax(-1).square().mean()}
    assert fit(heads("tensor", classes, (X2, (Y2[:, 0] > 0).long()))).complete


def test_a_metric_of_a_task_leaves_no_doubt_either() -> None:
    def joint(outputs: Tensor, targets: Tensor) -> Tensor:
        return (outputs - targets).square().mean(0)

    with pytest.raises(ValueError, match=r"metric 'error' must leave no doubt.*task=None"):
        fit(heads("tensor", joint, metrics={"error": pm.Metric(mse, "lower", task="sex")}))
    front = fit(heads("tensor", joint, metrics={"error": pm.Metric(SLICED["sex"], "lower", task="sex")}))
    torch.testing.assert_close(front.metrics["train"]["error"].float(), front.losses["train"][:, 1])


def test_tasks_that_are_one_are_named_before_training_and_after_it() -> None:
    """A dictionary hands its entries over, so that nothing is left open; but both are the same output."""
    same = lambda o, t: mse(o[:, 0], t[:, 0])  # noqa: E731
    before = pytest.warns(UserWarning, match="tasks 'age' and 'sex' have the same loss and gradients on the first")
    after = pytest.warns(UserWarning, match="tasks age and sex have the same losses in all models on train")
    with before, after:
        fit(heads("tensor", {"age": same, "sex": same}), epochs=60)


@pytest.mark.parametrize(
    ("train", "text"),
    [
        (COLUMNS, "outputs by task name in a dictionary, by place in a tuple of 2, else whole; targets whole"),
        (SEPARATE, "outputs by task name in a dictionary, by place in a tuple of 2, else whole; targets by place"),
        ({"age": PAIR, "sex": PAIR}, "targets by data set"),
        (DataLoader(TensorDataset(X, Y)), "outputs and targets by task name in a dictionary, by place in a tuple of 2"),
    ],
)
def test_the_representation_says_which_part_each_function_gets(train: Any, text: str) -> None:
    assert text in repr(problem(train)).split("  split: ")[1]
    assert "split:" not in repr(problem(train, losses=general))
