"""Losses on a whole split are those of the model on all samples at once; what cannot be measured is NaN, or said."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader

import paretomtl as pm


def squares(outputs: Tensor, targets: Tensor) -> Tensor:
    return torch.stack([(outputs[:, i] - targets[:, i]).square().mean() for i in range(2)])


def numbers(count: int = 37) -> tuple[Tensor, Tensor]:
    g = torch.Generator().manual_seed(0)
    return torch.randn(count, 4, generator=g), torch.randn(count, 2, generator=g)


def fit(problem: pm.Problem, preferences: Any = 6, **options: Any) -> pm.Front:
    options = {"epochs": 1, "batch_size": 8, "device": "cpu", "progress": "quiet", **options}
    return pm.fit(problem, "linear", preferences, **options)


class Brittle(nn.Module):
    """Fails on a sample of the validation split where its output there is positive, as half of all models are."""

    def __init__(self) -> None:
        super().__init__()
        self.line = nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        y = self.line(x)
        return torch.where((x[:, :1] > 1e6) & (y[:, :1] > 0), torch.nan, y * (x[:, :1] < 1e6))


@pytest.mark.parametrize("strategy", ["sequential", "batched"])
@pytest.mark.parametrize("counted", [False, True], ids=["", "counts"])
def test_a_model_that_fails_on_one_batch_has_no_loss(strategy: Any, counted: bool) -> None:
    """It must not be measured on the other batches alone, which would make it the best."""
    x, y = numbers()
    worst = x.clone()
    worst[-1] = 1e7
    counts = (lambda batch: torch.tensor([len(batch[0])] * 2)) if counted else None
    front = fit(
        pm.Problem(Brittle, squares, ["a", "b"], train=(x, y), val=(worst, y), counts=counts), strategy=strategy
    )
    expected = torch.stack([squares(front.model(k)(worst), y) for k in range(6)]).detach()
    broken = expected.isnan().any(-1)
    assert 0 < int(broken.sum()) < 6
    assert torch.equal(front.losses["val"].isnan(), expected.isnan())
    torch.testing.assert_close(front.losses["val"][~broken], expected[~broken])
    assert front.losses["train"].isfinite().all()


@pytest.mark.filterwarnings("ignore:'(train|val)' has NaN in 8 of 64")
def test_a_task_without_labels_in_a_batch_is_measured_on_the_others() -> None:
    x, y = numbers(32)
    y[8:16, 1] = torch.nan
    front = fit(pm.Problem(lambda: nn.Linear(4, 2), squares, ["a", "b"], train=(x, y), val=(x, y)), 2)
    labelled = ~y[:, 1].isnan()
    for k in range(2):
        outputs = front.model(k)(x).detach()
        expected = [(outputs[:, 0] - y[:, 0]).square().mean(), (outputs - y)[labelled, 1].square().mean()]
        torch.testing.assert_close(front.losses["val"][k], torch.stack(expected))


@dataclass
class Pair:
    """A batch that no structure of torch is in."""

    x: Tensor
    y: Tensor


def in_object(samples: Any) -> Any:
    return Pair(torch.stack([x for x, _ in samples]), torch.stack([y for _, y in samples]))


def features_first(samples: Any) -> Any:
    return {"x": torch.stack([x for x, _ in samples], 1), "y": torch.stack([y for _, y in samples])}


def of_batches(model: nn.Module, batch: Any) -> Tensor:
    if isinstance(batch, Pair):
        return squares(model(batch.x), batch.y)
    return squares(model(batch["x"].T), batch["y"])


def labels_of(batch: Any) -> Tensor:
    return torch.tensor([len(batch.y if isinstance(batch, Pair) else batch["y"])] * 2)


@pytest.mark.parametrize("collate", [in_object, features_first])
def test_batches_of_unknown_size_are_said_to_be(collate: Any) -> None:
    """Batches of 12, 12, 12 and 1: how many samples each has cannot be seen, and they would all count alike."""
    x, y = numbers()
    train = DataLoader(list(zip(x, y, strict=True)), batch_size=12, collate_fn=collate)  # type: ignore[arg-type]
    problem = pm.Problem(lambda: nn.Linear(4, 2), of_batches, ["a", "b"], train=train)
    with pytest.warns(UserWarning, match="'counts' should say how many samples"):
        fit(problem, 2)
    known = pm.Problem(lambda: nn.Linear(4, 2), of_batches, ["a", "b"], train=train, counts=labels_of)
    front = fit(known, 2)
    expected = torch.stack([squares(front.model(k)(x), y) for k in range(2)]).detach()
    torch.testing.assert_close(front.losses["train"], expected)


# Metrics.


class Noisy(nn.Module):
    """Its two modes differ."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 2))

    def forward(self, x: Tensor) -> Any:
        return self.layers(x)


def of_pairs(model: nn.Module, batch: Any) -> Tensor:
    return squares(model(batch[0]), batch[1])


def in_train_mode(model: nn.Module, batches: Any) -> float:
    """Dropout at the time of prediction, in the way that is usual."""
    model.train()
    return float(sum(model(x).mean() for x, _ in batches))


def trained_further(model: nn.Module, batches: Any) -> float:
    for parameter in model.parameters():
        parameter.mul_(2.0)
    return in_train_mode(model, batches)


def writing(model: nn.Module, batches: Any) -> float:
    return float(sum(model(x.mul_(2.0)).mean() for x, _ in batches))


def average(model: nn.Module, batches: Any) -> Tensor:
    return torch.cat([model(x) for x, _ in batches]).mean()


def with_metrics(strategy: Any, **functions: Any) -> pm.Front:
    x, y = numbers()
    metrics = {name: pm.Metric(function) for name, function in functions.items()}
    return fit(
        pm.Problem(Noisy, of_pairs, ["a", "b"], train=(x, y), val=(x, y), metrics=metrics),
        3,
        epochs=3,
        strategy=strategy,
    )


@pytest.mark.parametrize("strategy", ["sequential", "batched"])
@pytest.mark.parametrize("function", [in_train_mode, trained_further])
def test_what_a_metric_does_to_a_model_reaches_nobody(strategy: Any, function: Any) -> None:
    alone = with_metrics(strategy, average=average)
    front = with_metrics(strategy, other=function, average=average)
    for split in ("train", "val"):
        assert torch.equal(front.metrics[split]["average"], alone.metrics[split]["average"])
        assert torch.equal(front.losses[split], alone.losses[split])


@pytest.mark.parametrize("strategy", ["sequential", "batched"])
def test_a_metric_that_writes_to_batches_is_none(strategy: Any) -> None:
    alone = with_metrics(strategy, average=average)
    with pytest.warns(UserWarning, match="metric 'other' raised ChangedBatchError: 'metrics' must not change"):
        front = with_metrics(strategy, other=writing, average=average)
    assert front.metrics["val"]["other"].isnan().all()
    assert torch.equal(front.metrics["val"]["average"], alone.metrics["val"]["average"])


class TimeFirst(nn.Module):
    """Its outputs have samples in their second dimension, as recurrent networks may."""

    def __init__(self) -> None:
        super().__init__()
        self.line = nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.line(x).expand(3, -1, -1)


@pytest.mark.parametrize("split", [{}, {"val": numbers(32)}], ids=["train", "val"])
def test_outputs_that_cannot_be_put_together_are_said_to_be(split: dict[str, Any]) -> None:
    """Batches are put together along the first dimension, and a metric would see the first batch alone."""

    def error(outputs: Tensor, targets: Tensor) -> Tensor:
        return (outputs[-1] - targets[: outputs.shape[1]]).abs().mean()

    def losses(outputs: Tensor, targets: Tensor) -> Tensor:
        return squares(outputs[-1], targets)

    metrics = {"error": pm.Metric(error, "lower")}
    problem = pm.Problem(TimeFirst, losses, ["a", "b"], train=numbers(32), metrics=metrics, **split)
    with pytest.warns(UserWarning, match=r"outputs should have samples in their first dimension.*\[3, 8, 2\]"):
        fit(problem, 2)
    fit(problem, 2, batch_size=32)  # one batch is the whole split


def half_labelled(targets: Tensor) -> Tensor:
    """Labels of the first task are rare in the first samples, those of the second in the last ones."""
    rare = torch.linspace(0.05, 0.95, len(targets))
    drawn = torch.rand(targets.shape, generator=torch.Generator().manual_seed(1))
    return torch.where(drawn < torch.stack([rare, 1 - rare], -1), targets, torch.nan)


def known(outputs: Tensor, targets: Tensor) -> Tensor:
    return (outputs - targets)[~targets.isnan()].square().mean()


X, Y = numbers(60)
Y = half_labelled(Y)
A, B = Y.unbind(-1)


class ByName(nn.Linear):
    """Outputs by task name."""

    def __init__(self) -> None:
        super().__init__(4, 2)

    def forward(self, x: Tensor) -> Any:
        return dict(zip("ab", super().forward(x).unbind(-1), strict=True))


def stacked(outputs: Any, targets: Any) -> Tensor:
    targets = targets.unbind(-1) if isinstance(targets, Tensor) else targets
    return torch.stack([known(outputs[name], y) for name, y in zip("ab", targets, strict=True)])


def by_names(model: Any, batch: Any) -> list[Tensor]:
    return [known(model(batch["x"])[name], batch[name]) for name in "ab"]


@pytest.mark.parametrize("accumulate", [1, 3])
@pytest.mark.parametrize(
    ("losses", "data"),
    [
        (stacked, (X, Y)),
        (stacked, (X, A, B)),
        (by_names, {"x": X, "a": A, "b": B}),
        ({"a": known, "b": known}, {"a": (X, A), "b": (X, B)}),
        (lambda model, batch: stacked(model(batch[0]), batch[1]), (X, Y)),
    ],
    ids=["columns", "tuple", "names", "data by task", "model"],
)
def test_losses_are_means_over_all_labelled_samples(losses: Any, data: Any, accumulate: int) -> None:
    """Micro-batches are the batch that they are parts of; evaluation is a bare loop over all labelled samples."""
    problem = pm.Problem(ByName, losses, ["a", "b"], train=data, val=data)
    options: Any = {"precision": "float64", "strategy": "sequential", "batch_size": 30, "epochs": 2}
    front, whole = (fit(problem, 2, accumulate=parts, **options) for parts in (accumulate, 1))
    for k in range(2):
        outputs = front.model(k)(X.double())
        expected = torch.stack([known(outputs["a"], A), known(outputs["b"], B)]).detach()
        torch.testing.assert_close(front.losses["val"][k], expected, rtol=1e-12, atol=0)
    torch.testing.assert_close(front.losses["train"], whole.losses["train"], rtol=1e-12, atol=0)


def test_a_loss_that_does_not_need_the_labels_of_its_column_stays() -> None:
    def losses(outputs: Tensor, targets: Tensor) -> list[Tensor]:
        return [known(outputs[:, 0], targets[:, 0]), outputs.square().mean()]

    labels = Y.clone()
    labels[:30, 1] = torch.nan
    problem = pm.Problem(lambda: nn.Linear(4, 2), losses, ["a", "size"], train=(X, labels))
    front = fit(problem, 2, precision="float64", batch_size=30)
    assert front.losses["train"].isfinite().all()
