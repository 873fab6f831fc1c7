"""Metrics of a whole split."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import Dataset

import paretomtl as pm
from _helpers.networks import accuracy, classes, fit, problem
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
