"""Metrics are tried before training: a mistake in one is found then, and a NaN is explained."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch
from torch import Tensor

import paretomtl as pm
from _helpers.networks import fit, problem
from paretomtl.training.preflight.raw_targets import raw_targets


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


@pytest.mark.parametrize(("unit", "told"), [(1.0, False), (1000.0, True)])
@pytest.mark.parametrize("power", [1, 2])
def test_targets_in_large_units_are_named(unit: float, told: bool, power: int) -> None:
    g = torch.Generator().manual_seed(0)
    x = torch.randn(64, 4, generator=g)
    y = torch.stack([unit * (2 + x[:, 0]), x[:, 1]], -1)
    made = pm.Problem(
        lambda: torch.nn.Linear(4, 2), lambda o, t: (o - t).abs().pow(power).mean(0), ["euros", "b"], train=(x, y)
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        pm.fit(made, "linear", 2, epochs=1, device="cpu", progress="quiet")
    assert any("targets of tasks ['euros'] are in large units" in str(each.message) for each in caught) == told


def test_a_split_without_labels_of_a_task_is_named_before_training() -> None:
    g = torch.Generator().manual_seed(0)
    x, y = torch.randn(64, 4, generator=g), torch.randn(64, 2, generator=g)
    empty = torch.stack([torch.full((8,), torch.nan), y[:8, 1]], -1)

    def losses(outputs: Tensor, targets: Tensor) -> list[Tensor]:
        known = ~targets.isnan()
        return [(outputs[known[:, i], i] - targets[known[:, i], i]).square().mean() for i in range(2)]

    made = pm.Problem(lambda: torch.nn.Linear(4, 2), losses, ["a", "b"], train=(x, y), val=(x[:8], empty))
    for epochs in (1, 40):  # too short to measure untrained models, and long enough
        with pytest.warns(UserWarning, match=r"'val' has no labels for tasks \['a'\]") as caught:
            front = pm.fit(made, "linear", 2, epochs=epochs, batch_size=16, device="cpu", progress="quiet")
        assert sum("no labels for tasks" in str(each.message) for each in caught) == 1
        assert "a: NaN in every model" in front.select(knee=True).reason
    found = pm.diagnose(made, epochs=2, seeds=2, device="cpu", progress="quiet")
    assert found.verdict.word == "unclear"
    assert "No labels on 'val': a." in found.verdict.text


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


@pytest.mark.parametrize("targets", [torch.tensor(3000.0), torch.zeros(0, 4), [torch.ones(2, 2) * 1e4], None])
def test_targets_of_any_kind_are_looked_at(targets: Any) -> None:
    made = problem()
    assert raw_targets(made, (torch.ones(2, 6), targets), [1.0, 2.0]) is None


def test_what_was_warned_of_before_is_a_remark_but_no_second_warning() -> None:
    g = torch.Generator().manual_seed(0)
    x, y = torch.randn(64, 4, generator=g), torch.randn(64, 2, generator=g)

    def losses(outputs: Tensor, targets: Tensor) -> list[Tensor]:
        known = ~targets.isnan()
        return [(outputs[known[:, i], i] - targets[known[:, i], i]).square().mean() for i in range(2)]

    empty = torch.stack([torch.full((8,), torch.nan), y[:8, 1]], -1)
    made = pm.Problem(lambda: torch.nn.Linear(4, 2), losses, ["a", "b"], train=(x, y), val=(x[:8], empty))
    with pytest.warns(UserWarning, match="'val' has no labels for tasks"):
        front = pm.fit(made, "linear", 2, epochs=40, batch_size=16, device="cpu", progress="quiet")
    assert any("'val' has no labels for tasks ['a']" in remark for remark in front.remarks)
