"""Tasks without labels in some batches, and models that break."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader

import paretomtl as pm
from _helpers.networks import MLP, classes, fit, problem
from paretomtl.methods import METHODS

X, Y = classes()


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
    for name, tensor in one.models.stacked().items():
        assert tensor.isfinite().all()
        torch.testing.assert_close(tensor, both.models.stacked()[name], rtol=0, atol=1e-6)
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
    with pytest.warns(UserWarning, match=r"losses or gradients of models \[0\] were not finite"):
        front = fit(of, "linear", epochs=20, optimizer=slow, strategy=strategy, batch_size=96)
    assert front.status == ["non-finite", "trained", "trained"]
    assert front.losses["train"].isfinite().all(), "it is back at its last finite step"
    steps = front.history["losses"][:, 0, 0]
    assert torch.equal(front.losses["train"][0, 0], steps[~steps.isnan()][-1]), "and not one before it"


def test_a_model_that_broke_later_is_kept_from_when_it_was_sound() -> None:
    of = problem(Cliff, losses=lambda outputs, targets: outputs, val=(X, Y))
    slow = lambda p: torch.optim.SGD(p, lr=0.05)  # noqa: E731
    front = fit(of, "linear", epochs=20, optimizer=slow, keep="best", batch_size=96)
    assert front.status == ["trained"] * 3
    assert front.epochs[0] < 20
    assert front.losses["val"].isfinite().all()


def test_one_model_that_breaks_in_one_task_is_not_taken_for_unlabelled() -> None:
    of = problem(Cliff, losses=lambda outputs, targets: outputs)
    with pytest.warns(UserWarning, match=r"losses or gradients of models \[0\] were not finite"):
        front = fit(of, "linear", [[1.0, 0.0]], epochs=20, optimizer=lambda p: torch.optim.SGD(p, lr=0.05))
    assert front.status == ["non-finite"]


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
