"""Losses, models and metrics that take gradients themselves, such as residuals of differential equations."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import paretomtl as pm

X = torch.linspace(0, 1, 24)[:, None]
Y = X.sin()


def network() -> nn.Module:
    return nn.Sequential(nn.Linear(1, 6), nn.Tanh(), nn.Linear(6, 1))


def with_slope(model: Any, x: Tensor) -> tuple[Tensor, Tensor]:
    x = x.clone().requires_grad_()
    u = model(x)
    (slope,) = torch.autograd.grad(u.sum(), x, create_graph=True)
    return u, slope


class Sloped(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = network()

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat(with_slope(self.net, x), 1)


class Hooked(nn.Module):
    """Counts gradients, as tools that watch them do; a tensor without a graph takes no hook."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(1, 2)

    def forward(self, x: Tensor) -> Tensor:
        outputs: Tensor = self.net(x)
        outputs.register_hook(lambda gradient: gradient)  # type: ignore[no-untyped-call]
        return outputs


def squared(values: Tensor, wanted: Tensor) -> Tensor:
    return (values - wanted).square().mean()


def residuals(model: Any, batch: Any) -> dict[str, Tensor]:
    points = torch.rand(8, 1)  # drawn anew, as collocation points are
    u, _ = with_slope(model, batch[0])
    return {"data": squared(u, batch[1]), "equation": squared(with_slope(model, points)[1], points.cos())}


def of_columns(outputs: Tensor, targets: Tensor) -> Tensor:
    return torch.stack([squared(outputs[:, :1], targets), squared(outputs[:, 1:], X.cos().mean())])


def worst(model: Any, batches: list[Any]) -> float:
    return max(with_slope(model, x)[1].abs().max().item() for x, _ in batches)


def problem(model: Any, losses: Any, **changes: Any) -> pm.Problem:
    split = (X, Y)
    return pm.Problem(model, losses, ["data", "equation"], train=split, val=split, test=split, **changes)


@pytest.mark.parametrize(
    ("model", "losses"),
    [
        (network, residuals),
        (Sloped, of_columns),
        (Sloped, {"data": lambda o, t: squared(o[:, :1], t), "equation": lambda o, t: squared(o[:, 1:], t)}),
        (Hooked, of_columns),
    ],
)
def test_they_are_evaluated_like_any_other(model: Any, losses: Any) -> None:
    given = problem(model, losses)
    front = pm.fit(given, preferences=2, epochs=1, batch_size=8, device="cpu", progress="quiet", average=0.5)
    again = pm.Front.from_models([front.model(k) for k in range(2)], given, batch_size=8)
    for split in ("val", "test"):
        assert front.losses[split].isfinite().all()
        assert losses is residuals or torch.allclose(again.losses[split], front.losses[split], rtol=1e-4)
    if losses is of_columns:
        outputs = [front.model(k)(X) for k in range(2)]
        assert torch.allclose(front.losses["val"], torch.stack([of_columns(o, Y) for o in outputs]), rtol=1e-4)
    assert not any(table.requires_grad for table in front.losses.values())


def test_a_metric_may_take_gradients_and_all_models_see_the_same_random_points() -> None:
    given = problem(network, residuals, metrics={"worst": pm.Metric(worst, better="lower")})
    model = network()
    front = pm.Front.from_models([model, model], given)
    assert torch.equal(front.losses["val"][0], front.losses["val"][1])
    assert front.metrics["val"]["worst"].tolist() == pytest.approx([worst(model, [(X, Y)])] * 2)


def test_other_errors_are_raised_unchanged() -> None:
    def wrong(outputs: Tensor, targets: Tensor) -> Tensor:
        return of_columns(outputs, targets[:3]) if not torch.is_grad_enabled() else of_columns(outputs, targets)

    with pytest.raises(RuntimeError, match="must match the size"):
        pm.fit(problem(lambda: nn.Linear(1, 2), wrong), preferences=2, epochs=1, device="cpu", progress="quiet")
