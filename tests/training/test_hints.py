"""Errors and warnings that say what to write."""

from __future__ import annotations

import warnings
from collections import UserDict
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader

import paretomtl as pm

X = torch.linspace(-1, 1, 36).reshape(12, 3)
Y = torch.stack([X.sum(1), X[:, 0]], 1)
CLASSES = (Y > 0).long()


def losses(outputs: Tensor, targets: Tensor) -> Tensor:
    return (outputs - targets).square().mean(0)


def entropies(outputs: Tensor, targets: Tensor) -> list[Tensor]:
    return [nn.functional.cross_entropy(outputs, column) for column in targets.unbind(1)]


def fit(**changes: Any) -> pm.Front:
    usual = {"model": lambda: nn.Linear(3, 2), "losses": losses, "tasks": ["a", "b"], "train": (X, Y)}
    options: dict[str, Any] = {"device": "cpu", "progress": "quiet", "strategy": "sequential"}
    return pm.fit(pm.Problem(**{**usual, **changes}), "linear", 2, epochs=1, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "hint"),
    [
        ({"train": (X.long(), Y)}, "Integers are not cast, as they may be class numbers or tokens: write inputs"),
        ({"train": (X, CLASSES.int()), "losses": entropies}, "Class numbers of cross_entropy are int64: write"),
        ({"train": (X, CLASSES.float()), "losses": entropies}, "Class numbers of cross_entropy are int64: write"),
        ({"train": (X, CLASSES + 5), "losses": entropies}, "Class numbers must begin at 0 and be below the number"),
        (
            {"train": DataLoader([X.numpy(), X.numpy()], batch_size=2, collate_fn=lambda rows: (rows[0], Y))},  # type: ignore[arg-type]
            "The batch holds arrays of NumPy: let the collate_fn",
        ),
    ],
)  # fmt: skip
def test_errors_of_torch_come_with_a_remedy(changes: dict[str, Any], hint: str) -> None:
    with pytest.raises(Exception) as caught:  # noqa: PT011
        fit(**changes)
    notes = " ".join(caught.value.__notes__)
    assert hint in notes


def test_losses_without_a_graph_name_what_cuts_it() -> None:
    with pytest.raises(ValueError, match=r"attached to none of them: do not compute them under torch.no_grad\(\)"):
        fit(losses=lambda outputs, targets: losses(outputs.detach(), targets))


@pytest.mark.parametrize(
    "function", [nn.functional.mse_loss, lambda o, t: (o - t).square().mean(), lambda o, t: (t - o).abs().mean()]
)
@pytest.mark.filterwarnings("ignore:Using a target size", "ignore:first losses differ")
def test_a_table_of_all_pairs_is_said_to_be(function: Any) -> None:
    wrong = lambda o, t: [function(o, t[:, 0]), function(o, t[:, 1])]  # noqa: E731
    with pytest.warns(UserWarning, match=r"outputs of shape \[12, 1\] and targets of shape \[12\], which makes a"):
        fit(model=lambda: nn.Linear(3, 1), losses=wrong)
    right = lambda o, t: [function(o[:, 0], t[:, 0]), function(o, t[:, 1:])]  # noqa: E731
    ranking = lambda o, t: [(o - o[:, 0]).square().mean(), function(o, t[:, :1])]  # noqa: E731
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "first losses differ")
        for meant in (right, ranking):
            fit(model=lambda: nn.Linear(3, 1), losses=meant)


@pytest.mark.filterwarnings("ignore:losses or gradients", "ignore:tasks")
def test_missing_inputs_are_counted() -> None:
    x = X.clone()
    x[::2, 0] = torch.nan
    with pytest.warns(UserWarning, match="'train' has NaN in 6 of 36 values of the inputs of its first batch"):
        fit(train=(x, Y))


def test_batches_keep_their_kind() -> None:
    """Such as those of tokenizers, whose entries are attributes, too."""

    class Encoding(UserDict[str, Tensor]):
        def __getattr__(self, name: str) -> Tensor:
            try:
                return self.data[name]
            except KeyError:
                raise AttributeError(name) from None

    def general(model: nn.Module, batch: Any) -> Tensor:
        return losses(model(batch.x), batch["y"])

    loader = DataLoader(range(12), batch_size=12, collate_fn=lambda rows: Encoding(x=X[rows], y=Y[rows]))  # type: ignore[arg-type]
    assert torch.equal(fit(train=loader, losses=general).losses["train"], fit().losses["train"])
