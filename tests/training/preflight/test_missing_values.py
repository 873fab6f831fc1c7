"""NaN in tables: where it spoils losses, it is said before anything is trained; where it is meant, nothing is said."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import paretomtl as pm

X = torch.linspace(-1, 1, 120).reshape(40, 3)
Y = torch.stack([X.sum(1), X[:, 0]], 1)
GAPS = Y.clone()
GAPS[::3, 0] = torch.nan
GAPS[1::2, 1] = torch.nan


def plain(outputs: Tensor, targets: Tensor) -> Tensor:
    return (outputs - targets).square().mean(0)


def masked(outputs: Tensor, targets: Tensor) -> Tensor:
    known = ~targets.isnan()
    return torch.stack([(outputs[known[:, i], i] - targets[known[:, i], i]).square().mean() for i in (0, 1)])


def said(losses: Any = plain, train: Any = (X, Y), epochs: int = 1, **more: Any) -> list[str]:
    """What is warned of."""
    problem = pm.Problem(lambda: nn.Linear(3, 2), losses, ["a", "b"], train=train, **more)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        pm.fit(problem, "linear", 2, epochs=epochs, batch_size=8, progress="quiet", device="cpu", strategy="sequential")
    return [str(warning.message) for warning in caught]


def with_gap(row: int) -> Tensor:
    x = X.clone()
    x[row, 1] = torch.nan
    return x


@pytest.mark.parametrize("row", [0, 39])
def test_one_missing_input_is_found_wherever_it_is(row: int) -> None:
    """It freezes every model, or takes its whole batch out of an evaluation."""
    first = said(train=(with_gap(row), Y))[0]
    assert first.startswith("'train' has NaN in 1 of 120 values of the inputs, and makes the losses of tasks")
    (only,) = said(test=(with_gap(row), Y))
    assert only.startswith("'test' has NaN in 1 of 120 values of the inputs, and makes the losses")


def test_a_loader_is_judged_by_its_first_batch() -> None:
    loader = DataLoader(TensorDataset(with_gap(2), Y), batch_size=8)
    assert said(train=loader)[0].startswith("'train' has NaN in 1 of 24 values of the inputs of its first batch, and ")


def test_targets_that_spoil_a_loss_are_told_from_masked_ones() -> None:
    first = said(train=(X, GAPS))[0]
    assert first.startswith("'train' has NaN in 34 of 80 values of the targets, and one is enough to make the losses")
    assert "of tasks ['a', 'b'] NaN" in first
    half = lambda o, t: [plain(o, t)[0], masked(o, t)[1]]  # noqa: E731
    assert "of tasks ['a'] NaN" in said(half, train=(X, GAPS))[0]
    apart = lambda o, t: [(o[:, i] - t[i]).square().mean() for i in (0, 1)]  # noqa: E731
    assert "of tasks ['b'] NaN" in said(apart, train=(X, Y[:, 0], GAPS[:, 1]))[0]


@pytest.mark.parametrize("form", ["columns", "tuple"])
def test_any_tensor_of_a_batch_that_the_losses_take_apart_is_named(form: str) -> None:
    """With ``losses(model, batch)`` nobody knows which tensors are labels; a mask is understood all the same."""
    x, a, b = ("x", "a", "b") if form == "columns" else (0, 1, 2)

    def columns(inputs: Tensor, labels: Tensor) -> Any:
        parts = (inputs, labels[:, 0], labels[:, 1])
        return dict(zip("xab", parts, strict=True)) if form == "columns" else parts

    def losses(model: Any, batch: Any) -> list[Tensor]:
        known = ~batch[b].isnan()
        outputs = model(batch[x])
        return [(outputs[:, 0] - batch[a]).square().mean(), (outputs[known, 1] - batch[b][known]).square().mean()]

    (first, *_) = said(losses, train=columns(X, GAPS))
    assert first.startswith(f"'train' has NaN in 14 of 40 values of batch[{a!r}], and one is enough to make the losses")
    assert (
        "of tasks ['a'] NaN. If these are labels, let each loss take the samples that have one, such as known = "
        in (first)
    )
    (first, *_) = said(losses, train=columns(with_gap(3), Y))
    assert first.startswith(f"'train' has NaN in 1 of 120 values of batch[{x!r}]")
    assert "of tasks ['a', 'b'] NaN" in first
    masked_only = torch.stack([Y[:, 0], GAPS[:, 1]], 1)
    assert said(losses, train=columns(X, masked_only)) == []


def test_nothing_is_said_of_what_a_model_or_a_loss_takes_care_of() -> None:
    assert said(masked, train=(X, GAPS), val=(X, GAPS)) == []
    filled = lambda outputs, targets: plain(outputs.nan_to_num(), targets)  # noqa: E731
    assert said(filled, val=(with_gap(3), Y)) == []
    none = GAPS.clone()
    none[:, 0] = torch.nan  # a task that has no label at all
    assert not any("has NaN in" in text for text in said(masked, train=(X, none)))


def test_a_gradient_that_is_nan_beside_a_finite_loss_is_said() -> None:
    by_nanmean = lambda o, t: (o - t).square().nanmean(0)  # noqa: E731
    first = said(by_nanmean, train=(X, GAPS))[0]
    assert first.startswith("gradients of tasks ['a', 'b'] are not finite on the first batch of 'train', though their")
    assert "nanmean" in first


def test_where_all_models_are_frozen_no_others_went_on() -> None:
    """Nor is a learning rate blamed for losses that did not move."""
    _, frozen = said(lambda o, t: torch.stack(list((o - t).square().nanmean(0))), train=(X, GAPS), epochs=10)
    assert frozen.startswith("losses or gradients of models [0, 1] were not finite; each was frozen")
    assert frozen.endswith(", and no model was trained after that.")
