"""The epoch that is kept, by validation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import paretomtl as pm
from _helpers.networks import classes, fit, problem

X, Y = classes()


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


def test_the_test_split_decides_nothing() -> None:
    splits = [{"val": classes(30, seed=5), "test": classes(30, seed=s)} for s in (6, 7)]
    fronts = [fit(problem(**some), keep="best", strategy="batched") for some in splits]
    assert fronts[0].epochs == fronts[1].epochs
    for name, tensor in fronts[0].models.stacked().items():
        assert torch.equal(tensor, fronts[1].models.stacked()[name])


class Point(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.x = nn.Parameter(torch.zeros(2))

    def forward(self, batch: Tensor) -> Tensor:
        return self.x


def parabolas(x: Tensor, y: Tensor) -> Tensor:
    return torch.stack([(x[0] - y[0, 0]) ** 2, (x[1] - y[0, 1]) ** 2 + y[0, 2] * (x[0] - 4) ** 2])


@pytest.mark.parametrize("patience", [None, 4])
@pytest.mark.filterwarnings("ignore:models|worse than|first losses")
def test_epochs_before_a_branch_do_not_count(patience: int | None, tmp_path: Path) -> None:
    """They dominate all others. Of those that count, the one with the least weighted mean is kept, if resumed, too."""
    targets = [torch.tensor([row]).expand(4, 3).clone() for row in ([0.4, 3.0, 1.0], [0.0, 0.0, 0.0])]
    made = pm.Problem(Point, parabolas, ["a", "b"], train=(X[:4], targets[0]), val=(X[:4], targets[1]))
    options: dict[str, Any] = {"branch": 0.5, "epochs": 40, "keep": "best", "patience": patience, "batch_size": None}
    options["optimizer"] = lambda p: torch.optim.SGD(p, lr=0.05)
    rows = [[1.0, 0.02], [0.02, 1.0]]
    front = fit(made, "linear", rows, **options)
    weighted = (front.history["val"] * front.preferences).sum(-1)[20:]
    assert front.epochs == [21 + int(k) for k in weighted.argmin(0)]
    assert front.epochs[0] == 40
    fit(made, "linear", rows, out=tmp_path, callbacks=[lambda report: report.epoch == 23], **options)
    assert fit(made, "linear", rows, out=tmp_path, resume=True, **options).epochs == front.epochs
