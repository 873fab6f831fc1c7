"""Targets in large units are named before training, and targets of no kind are a problem."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch

import paretomtl as pm
from _helpers.networks import problem
from paretomtl.training.preflight.raw_targets import raw_targets


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


def test_targets_in_a_dictionary_are_named_too() -> None:
    g = torch.Generator().manual_seed(0)
    x = torch.randn(64, 4, generator=g)

    def losses(model: Any, batch: Any) -> torch.Tensor:
        outputs = model(batch["x"])
        return torch.stack([(outputs[:, i] - batch[key]).square().mean() for i, key in enumerate(("euros", "b"))])

    data = {"x": x, "euros": 1000.0 * (2 + x[:, 0]), "b": x[:, 1]}
    made = pm.Problem(lambda: torch.nn.Linear(4, 2), losses, ["euros", "b"], train=data)
    with pytest.warns(UserWarning, match=r"targets of tasks \['euros'\] are in large units"):
        pm.fit(made, preferences=2, epochs=1, device="cpu", progress="quiet")


@pytest.mark.parametrize("targets", [torch.tensor(3000.0), torch.zeros(0, 4), [torch.ones(2, 2) * 1e4], None])
def test_targets_of_any_kind_are_looked_at(targets: Any) -> None:
    made = problem()
    assert raw_targets(made, (torch.ones(2, 6), targets), [1.0, 2.0]) is None
