from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

import paretomtl as pm
from _helpers.networks import MLP, accuracy, classes, fit, problem
from paretomtl.engine.batches.make import make_batches
from paretomtl.methods import METHODS
from paretomtl.problems import cross_entropies

X, Y = classes()


def dictionary(model: nn.Module, batch: Mapping[str, Tensor]) -> dict[str, Tensor]:
    outputs = model(batch["x"])
    return {
        "b": nn.functional.cross_entropy(outputs[1], batch["b"]),
        "a": nn.functional.cross_entropy(outputs[0], batch["a"]),
    }


class Samples(Dataset[dict[str, Tensor]]):
    def __len__(self) -> int:
        return len(X)

    def __getitem__(self, i: int) -> dict[str, Tensor]:
        return {"x": X[i], "a": Y[i, 0], "b": Y[i, 1]}


class Stream(IterableDataset[tuple[Tensor, Tensor]]):
    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        return iter(zip(X, Y, strict=True))


def test_every_form_of_data_and_losses_trains_alike() -> None:
    """Tensors, a Dataset, and batches of dictionaries see the same samples in the same order."""
    expected = fit().losses["train"]
    columns = {"x": X, "a": Y[:, 0], "b": Y[:, 1]}
    apart = lambda outputs, targets: cross_entropies(outputs, torch.stack(targets, -1))  # noqa: E731
    forms = [
        problem(train=TensorDataset(X, Y)),
        problem(train=(X, Y[:, 0], Y[:, 1]), losses=apart),
        problem(train=columns, losses=dictionary),
        problem(train=Samples(), losses=dictionary),
    ]
    for form in forms:
        torch.testing.assert_close(fit(form).losses["train"], expected)


def test_loaders_and_streams_train() -> None:
    loader = DataLoader(TensorDataset(X, Y), batch_size=32, shuffle=True, generator=torch.Generator())
    first, again = (fit(problem(train=loader), epochs=12, strategy="batched") for _ in range(2))
    assert torch.equal(first.losses["train"], again.losses["train"]), "the seed decides the loader's order"
    assert first.history["losses"][-1].mean() < first.history["losses"][0].mean()
    other = fit(problem(train=loader), epochs=12, seed=1)
    assert not torch.equal(first.losses["train"], other.losses["train"])
    stream = fit(problem(train=Stream()), epochs=12)
    assert stream.history["losses"][-1].mean() < stream.history["losses"][0].mean()


def test_batches_cover_every_sample_once_and_differ_by_epoch() -> None:
    batches = make_batches("train", (torch.arange(70),), batch_size=32, device=torch.device("cpu"), dtype=torch.float32)
    epochs = [torch.cat([part[0] for part in batches.epoch(0, e)]) for e in (0, 0, 1)]
    assert torch.equal(epochs[0], epochs[1])
    assert not torch.equal(epochs[0], epochs[2])
    assert torch.equal(epochs[2].sort().values, torch.arange(70))
    late = torch.cat([part[0] for part in batches.epoch(0, 1, start=2)])
    assert torch.equal(late, epochs[2][64:])
    assert torch.equal(torch.cat([part[0] for part in batches.in_order()]), torch.arange(70))


@pytest.mark.parametrize(("samples", "size", "steps"), [(64, 32, 2), (65, 32, 2), (66, 32, 3), (1, 32, 1), (5, 1, 5)])
def test_a_last_batch_of_one_is_left_out_of_training(samples: int, size: int, steps: int) -> None:
    data = (torch.arange(samples),)
    batches = make_batches("train", data, batch_size=size, device=torch.device("cpu"), dtype=torch.float32)
    assert batches.steps == steps == len(list(batches.epoch(0, 0)))
    assert sum(len(part[0]) for part in batches.in_order()) == samples


def test_floating_data_take_the_precision_of_the_models() -> None:
    assert fit(precision="float64").losses["train"].dtype == torch.float64


def test_metrics_see_the_whole_split() -> None:
    def sizes(outputs: Any, targets: Tensor) -> float:
        return float(len(targets)) + len(outputs[1]) / 1000

    of = problem(
        val=classes(50, seed=1),
        test=classes(40, seed=2),
        metrics={"accuracy": pm.Metric(accuracy), "size": pm.Metric(sizes, "lower")},
    )
    for strategy in ("sequential", "batched"):
        front = fit(of, strategy=strategy, epochs=10)
        assert front.metrics["train"]["size"].tolist() == [96.096] * 3
        assert front.metrics["val"]["size"].tolist() == [50.05] * 3
        assert front.metrics["test"]["size"].tolist() == [40.04] * 3
        assert front.better == {"accuracy": "higher", "size": "lower"}
        x, y = classes(40, seed=2)
        for k in range(3):
            outputs = front.model(k)(x)
            assert float(accuracy(outputs, y)) == pytest.approx(float(front.metrics["test"]["accuracy"][k]))
            torch.testing.assert_close(cross_entropies(outputs, y).detach(), front.losses["test"][k])


def test_metrics_of_the_general_form_get_model_and_batches() -> None:
    def share(model: Any, batches: list[Any]) -> Tensor:
        right = [model(batch["x"])[0].argmax(-1) == batch["a"] for batch in batches]
        assert hasattr(model, "trunk")
        return torch.cat(right).double().mean()

    of = problem(train=Samples(), losses=dictionary, metrics={"share": pm.Metric(share)})
    one, both = (fit(of, strategy=name, epochs=5) for name in ("sequential", "batched"))
    torch.testing.assert_close(one.metrics["train"]["share"], both.metrics["train"]["share"])
    assert one.metrics["train"]["share"].max() > 0.7


def test_a_metric_that_raises_costs_nothing_but_itself() -> None:
    def broken(outputs: Any, targets: Any) -> float:
        raise KeyError("typo")

    of = problem(metrics={"broken": pm.Metric(broken), "accuracy": pm.Metric(accuracy)})
    with pytest.warns(UserWarning, match="metric 'broken' raised KeyError: 'typo'. Its value is NaN"):
        front = fit(of)
    assert front.metrics["train"]["broken"].isnan().all()
    assert front.metrics["train"]["accuracy"].isfinite().all()


class Noisy(Dataset[tuple[Tensor, Tensor]]):
    """Augments with all three random generators."""

    def __len__(self) -> int:
        return len(X)

    def __getitem__(self, i: int) -> tuple[Tensor, Tensor]:
        return X[i] + 0.1 * torch.randn(6) + 0.1 * np.random.rand() + 0.1 * random.random(), Y[i]  # noqa: NPY002


@pytest.mark.parametrize("strategy", ["sequential", "batched", "auto"])
def test_training_draws_apart_from_the_callers_randomness(strategy: Any) -> None:
    torch.manual_seed(3)
    np.random.seed(3)  # noqa: NPY002
    random.seed(3)
    first = fit(problem(train=Noisy()), strategy=strategy)
    drawn = (float(torch.rand(())), float(np.random.rand()), random.random())  # noqa: NPY002
    torch.manual_seed(3)
    np.random.seed(3)  # noqa: NPY002
    random.seed(3)
    assert drawn == (float(torch.rand(())), float(np.random.rand()), random.random())  # noqa: NPY002
    again = fit(problem(train=Noisy()), strategy=strategy)
    rounding = 1e-5 if strategy == "auto" else 0.0  # measured speeds decide what it takes, and may do so otherwise
    torch.testing.assert_close(first.losses["train"], again.losses["train"], rtol=0, atol=rounding)


# Missing labels.


def masked(outputs: Any, targets: Tensor) -> Tensor:
    """The cross-entropy over labelled samples: 0/0 where there are none; labels of −1 are missing."""
    found = []
    for i, y in enumerate(outputs):
        known = targets[:, i] >= 0
        each = nn.functional.cross_entropy(y, targets[:, i].clamp_min(0), reduction="none")
        found.append((each * known).sum() / known.sum())
    return torch.stack(found)


@pytest.mark.parametrize("method", METHODS)
def test_a_task_without_labels_is_left_out_of_the_step(method: str) -> None:
    """Batches where one task or the other has no label; both strategies take the same steps, and nothing breaks."""
    labels = Y.clone()
    labels[:32, 0] = -1
    labels[32:64, 1] = -1
    batches = [(X[i : i + 32], labels[i : i + 32]) for i in (0, 32, 64)]
    loader: Any = DataLoader(batches, batch_size=None)
    of = problem(train=loader, losses=masked)
    count = 2 if method == "single-task" else 3
    one, both = (fit(of, method, count, strategy=name, precision="float64") for name in ("sequential", "batched"))
    for name, tensor in one.parameters.items():
        assert tensor.isfinite().all()
        torch.testing.assert_close(tensor, both.parameters[name], rtol=0, atol=1e-6)
    assert "non-finite" not in one.status
    assert one.losses["train"].isfinite().all()


def test_an_absent_task_gets_no_gradient() -> None:
    labels = Y.clone()
    labels[:, 1] = -1
    with pytest.warns(UserWarning, match=r"tasks \['b'\] had no labels in any batch of 'train'"):
        front = fit(problem(train=(X, labels), losses=masked), "linear", [[1.0, 1.0]], epochs=3)
    assert front.status == ["trained"]
    with torch.random.fork_rng():
        torch.manual_seed(0)
        start = MLP()
    assert torch.equal(front.model(0).heads[1].weight, start.heads[1].weight)
    assert not torch.equal(front.model(0).heads[0].weight, start.heads[0].weight)
    assert front.losses["train"][0, 1].isnan()
    assert front.history["weights"][:, 0, 1].tolist() == [0.0] * 3


class Cliff(MLP):
    """The first loss of one model turns NaN; its parameter runs over an edge when it is trained on task a alone."""

    def __init__(self) -> None:
        super().__init__()
        self.x = nn.Parameter(torch.full((), 0.5))

    def forward(self, x: Tensor) -> Tensor:
        nothing = 0 * self.heads[0](self.trunk(x)).sum()
        return torch.stack([torch.sqrt(1 - self.x) + nothing, self.x.square() + nothing])


@pytest.mark.parametrize("strategy", ["sequential", "batched"])
def test_a_loss_that_is_nan_for_one_model_alone_is_not_a_missing_label(strategy: Any) -> None:
    of = problem(Cliff, losses=lambda outputs, targets: outputs)
    slow = lambda p: torch.optim.SGD(p, lr=0.05)  # noqa: E731
    with pytest.warns(UserWarning, match=r"losses or gradients of subproblems \[0\] were not finite"):
        front = fit(of, "linear", epochs=20, optimizer=slow, strategy=strategy, batch_size=96)
    assert front.status == ["non-finite", "trained", "trained"]
    assert front.losses["train"].isfinite().all(), "it is back at its last finite step"
    steps = front.history["losses"][:, 0, 0]
    assert torch.equal(front.losses["train"][0, 0], steps[~steps.isnan()][-1]), "and not one before it"


# Which epoch is kept.


@pytest.mark.filterwarnings("ignore:worse than untrained")
def test_the_best_epoch_on_validation_is_kept() -> None:
    """Each model is the one with the least weighted validation loss of all epochs, as the history shows."""
    of = problem(val=classes(30, seed=5), test=classes(30, seed=6))
    front = fit(of, "linear", epochs=25, keep="best", optimizer=lambda p: torch.optim.SGD(p, lr=2.0))
    values = (front.history["val"] * front.preferences).sum(-1)
    assert front.epochs == [int(k) + 1 for k in values.argmin(0)]
    assert any(epoch < 25 for epoch in front.epochs)
    for k in range(3):
        torch.testing.assert_close(front.losses["val"][k], front.history["val"][front.epochs[k] - 1, k])


def test_being_in_its_own_region_comes_first() -> None:
    """Inside, the least mean loss; a lower one outside does not count. Never inside: the least violation.

    What another epoch dominates gives way all the same.
    """
    of = problem(train=(X[:60], Y[:60]), val=(X[60:], Y[60:]))
    outside_was_better = never_inside = gave_way = 0
    for seed, rate in enumerate([0.5, 2.0, 0.5]):
        options: dict[str, Any] = {"epochs": 25, "keep": "best", "seed": seed}
        sgd = lambda p, rate=rate: torch.optim.SGD(p, lr=rate)  # noqa: E731
        front = fit(of, pm.ParetoMTL(initial_steps=5), 5, optimizer=sgd, **options)
        history = front.history["val"].double()
        rows = pm.core.region_rows(front.preferences)
        violation = torch.stack([pm.core.constraint_values(rows, losses).amax(-1) for losses in history])
        means = history.mean(-1)
        for k in range(5):
            inside = violation[:, k] <= pm.core.FEASIBLE_TOLERANCE
            found = front.epochs[k] - 1
            assert not pm.core.dominates(history[:, k], history[found, k]).any()
            wanted = int(
                torch.where(inside, means[:, k], torch.inf).argmin() if inside.any() else violation[:, k].argmin()
            )
            if pm.core.dominates(history[:, k], history[wanted, k]).any():
                gave_way += 1
                continue
            assert found == wanted
            if inside.any():
                outside_was_better += int(means[:, k].argmin()) != found
            else:
                never_inside += 1
    assert outside_was_better
    assert never_inside
    assert gave_way


def test_a_model_that_broke_later_is_kept_from_when_it_was_sound() -> None:
    of = problem(Cliff, losses=lambda outputs, targets: outputs, val=(X, Y))
    slow = lambda p: torch.optim.SGD(p, lr=0.05)  # noqa: E731
    front = fit(of, "linear", epochs=20, optimizer=slow, keep="best", batch_size=96)
    assert front.status == ["trained"] * 3
    assert front.epochs[0] < 20
    assert front.losses["val"].isfinite().all()


def test_one_model_that_breaks_in_one_task_is_not_taken_for_unlabelled() -> None:
    of = problem(Cliff, losses=lambda outputs, targets: outputs)
    with pytest.warns(UserWarning, match=r"losses or gradients of subproblems \[0\] were not finite"):
        front = fit(of, "linear", [[1.0, 0.0]], epochs=20, optimizer=lambda p: torch.optim.SGD(p, lr=0.05))
    assert front.status == ["non-finite"]


def test_the_test_split_decides_nothing() -> None:
    splits = [{"val": classes(30, seed=5), "test": classes(30, seed=s)} for s in (6, 7)]
    fronts = [fit(problem(**some), keep="best", strategy="batched") for some in splits]
    assert fronts[0].epochs == fronts[1].epochs
    for name, tensor in fronts[0].parameters.items():
        assert torch.equal(tensor, fronts[1].parameters[name])


# Schedulers.


@pytest.mark.parametrize(("schedule", "decays"), [("epoch", 4), ("step", 12)])
def test_the_scheduler_steps_as_told(schedule: str, decays: int) -> None:
    seen: list[torch.optim.Optimizer] = []

    def halve(optimizer: torch.optim.Optimizer) -> Any:
        seen.append(optimizer)
        return torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)

    fit(scheduler=halve, schedule=schedule, strategy="sequential")
    assert [o.param_groups[0]["lr"] for o in seen] == pytest.approx([0.1 * 0.5**decays] * 3)


def test_a_task_whose_losses_turn_nan_for_all_models_is_named_with_its_epoch() -> None:
    """What all models have in common reads as missing labels, so that no model is at fault."""

    class Late(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.heads = nn.ModuleList([nn.Linear(3, 1), nn.Linear(3, 1)])
            self.register_buffer("steps", torch.zeros(()))

        def forward(self, x: Tensor) -> list[Tensor]:
            if self.training:
                self.steps += 1
            return [self.heads[0](x), self.heads[1](x) * torch.where(self.steps > 4, torch.nan, 1.0)]

    x = torch.randn(8, 3, generator=torch.Generator().manual_seed(0))
    of = pm.Problem(
        Late, lambda o, t: [o[i].sub(t[:, i : i + 1]).square().mean() for i in (0, 1)], ["a", "b"], train=(x, x[:, :2])
    )
    with pytest.warns(UserWarning, match="The loss of task 'b' was NaN in every batch of all models from epoch 3 on"):
        pm.fit(of, "linear", 2, epochs=4, batch_size=4, device="cpu", progress="quiet", strategy="sequential")
