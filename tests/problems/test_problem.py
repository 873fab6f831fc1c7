"""Problems in few lines, and what losses may return."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import paretomtl as pm
from paretomtl.problems._loss_vector import as_vector

X, Y = torch.ones(4000, 30), torch.ones(4000, 2)
TASKS = ("a", "b")


def losses(outputs: Tensor, targets: Tensor) -> Tensor:
    return (outputs - targets).square().mean(0)


def test_a_problem_shows_shapes_and_not_data() -> None:
    problem = pm.Problem(
        lambda: nn.Linear(30, 2),
        losses,
        TASKS,
        train=(X, Y),
        val=DataLoader(TensorDataset(X, Y), batch_size=100),
        metrics={"error": pm.Metric(losses, "lower")},
        recipe=pm.Recipe(epochs=3),
        name="ones",
    )
    shown = repr(problem)
    assert len(shown) < 600
    for part in (
        "Problem 'ones'",
        "model: test_a_problem_shows_shapes_and_not_data.<lambda>",
        "losses: losses",
        "tasks: ['a', 'b']",
        "train: ([4000, 30] float32, [4000, 2] float32)",
        "val: DataLoader of TensorDataset, 4,000 samples, 40 batches",
        "metrics: error (lower is better)",
        "recipe: epochs=3",
    ):
        assert part in shown
    assert "test:" not in shown
    assert "train" not in repr(pm.problems.quadratic())


def test_losses_may_be_a_list_of_scalars() -> None:
    parts = [torch.tensor(1.0, requires_grad=True), torch.tensor([2.0])]
    for form in (parts, tuple(parts), dict(zip(TASKS, parts, strict=True))):
        found = as_vector(form, TASKS)
        assert found.tolist() == [1.0, 2.0]
        assert found.requires_grad


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ([torch.ones(())], r"'losses' must return 2 losses, one for each of the tasks \['a', 'b'\]. Got a list of 1"),
        ([1.0, 2.0], "Got float for 'a', which has no gradient: leave out .item"),
        ([torch.ones(5), torch.ones(5)], r"Got a tensor of shape \[5\] for 'a': take its mean over samples"),
        (torch.ones(5, 2), r"Got \[5, 2\] instead: take the mean over samples, such as losses.mean\(0\)"),
        (torch.ones(()), r"Got \[\] instead: return the losses of all tasks, torch.stack"),
        (None, "Got NoneType instead, so a return statement is missing"),
    ],
)
def test_other_losses_say_what_to_return(found: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        as_vector(found, TASKS)


def test_a_module_is_no_factory() -> None:
    with pytest.raises(TypeError, match=r"Got Linear, one module: write lambda: copy.deepcopy\(model\)"):
        pm.Problem(nn.Linear(3, 2), losses, TASKS, train=(X, Y))  # type: ignore[arg-type]
