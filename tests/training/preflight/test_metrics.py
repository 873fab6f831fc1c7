"""Metrics are tried before training: a mistake in one is found then, and a NaN is explained."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

import paretomtl as pm
from _helpers.networks import fit, problem


@pytest.mark.parametrize(
    "function",
    [lambda outputs, targets: outputs["a"], lambda outputs, targets: outputs.missing, lambda outputs, targets: nothing],  # type: ignore[name-defined]  # noqa: F821
)
def test_a_mistake_is_raised_before_training(function: Any) -> None:
    steps: list[object] = []
    with pytest.raises((TypeError, AttributeError, NameError)) as caught:
        fit(problem(metrics={"share": pm.Metric(function)}), callbacks=[steps.append])
    assert not steps
    (note,) = [note for note in caught.value.__notes__ if "metric 'share'" in note]
    assert "tried on the first batch of 'train' before training" in note
    assert "A metric takes (outputs, targets), and returns one number." in note


def test_the_other_form_of_a_metric_is_named() -> None:
    def losses(model: Any, batch: dict[str, Tensor]) -> Tensor:
        return torch.stack([part.square().mean() for part in model(batch["x"])])

    made = problem(
        losses=losses,
        train={"x": torch.randn(8, 6)},
        metrics={"share": pm.Metric(lambda outputs, targets: outputs[0].mean())},
    )
    with pytest.raises(TypeError) as caught:
        fit(made)
    assert "A metric takes (model, batches), as losses(model, batch) do" in caught.value.__notes__[-1]


def test_a_metric_may_fail_on_few_samples() -> None:
    def rare(outputs: Any, targets: Tensor) -> float:
        if len(targets) < 64:
            raise ValueError("one class only")
        return 1.0

    front = fit(problem(metrics={"rare": pm.Metric(rare)}), batch_size=16)
    assert front.metrics["train"]["rare"].tolist() == [1.0] * len(front)


def test_a_metric_that_forgets_missing_labels_is_named() -> None:
    g = torch.Generator().manual_seed(0)
    x, y = torch.randn(64, 4, generator=g), torch.randn(64, 2, generator=g)
    y[::3, 0] = torch.nan

    def losses(outputs: Tensor, targets: Tensor) -> list[Tensor]:
        known = ~targets.isnan()
        return [(outputs[known[:, i], i] - targets[known[:, i], i]).square().mean() for i in range(2)]

    made = pm.Problem(
        lambda: torch.nn.Linear(4, 2),
        losses,
        ["a", "b"],
        train=(x, y),
        metrics={"error": pm.Metric(lambda o, t: (o - t).abs().mean(), "lower")},
    )
    with pytest.warns(
        UserWarning, match=r"metrics \['error'\] are NaN on 'train' for all models. If labels are missing"
    ):
        pm.fit(made, "linear", 2, epochs=1, device="cpu", progress="quiet")


def test_a_metric_that_writes_changes_no_data() -> None:
    """The trial has copies, as a whole split is one: a stream may hand out the user's own tensors."""
    y = torch.zeros(8, 2)
    y[0, 0] = torch.nan

    class Stream(torch.utils.data.IterableDataset[Any]):
        def __iter__(self) -> Any:
            yield torch.ones(8, 4), y

    def filled(outputs: Tensor, targets: Tensor) -> Tensor:
        targets[targets.isnan()] = 0.0
        return (outputs - targets).abs().mean()

    def losses(outputs: Tensor, targets: Tensor) -> list[Tensor]:
        known = ~targets.isnan()
        return [(outputs[known[:, i], i] - targets[known[:, i], i]).square().mean() for i in range(2)]

    loader = torch.utils.data.DataLoader(Stream(), batch_size=None)
    made = pm.Problem(
        lambda: torch.nn.Linear(4, 2),
        losses,
        ["a", "b"],
        train=(torch.ones(8, 4), torch.zeros(8, 2)),
        val=loader,
        metrics={"error": pm.Metric(filled, "lower")},
    )
    pm.fit(made, "linear", 2, epochs=1, device="cpu", progress="quiet")
    assert bool(y[0, 0].isnan())


def test_a_branch_that_few_samples_do_not_take_is_no_mistake() -> None:
    def rare(outputs: Any, targets: Tensor) -> float:
        if len(targets) > 16:
            value = 1.0
        return value

    front = fit(problem(metrics={"rare": pm.Metric(rare)}), batch_size=16)
    assert front.metrics["train"]["rare"].tolist() == [1.0] * len(front)
