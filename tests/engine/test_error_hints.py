"""Errors and warnings that say what to write."""

from __future__ import annotations

import warnings
from collections import UserDict
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

import paretomtl as pm

X = torch.linspace(-1, 1, 36).reshape(12, 3)
Y = torch.stack([X.sum(1), X[:, 0]], 1)
CLASSES = (Y > 0).long()


def losses(outputs: Tensor, targets: Tensor) -> Tensor:
    return (outputs - targets).square().mean(0)


def entropies(outputs: Tensor, targets: Tensor) -> list[Tensor]:
    return [nn.functional.cross_entropy(outputs, column) for column in targets.unbind(1)]


def logits(outputs: Tensor, targets: Tensor) -> list[Tensor]:
    return [nn.functional.binary_cross_entropy_with_logits(outputs, targets)] * 2


def Convolution() -> nn.Module:
    return nn.Sequential(nn.Conv2d(1, 2, 1), nn.Flatten())


def Normalised() -> nn.Module:
    return nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))


class Two(nn.Linear):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        return super().forward(x), x


def on_another_device(outputs: Tensor, targets: Tensor) -> Tensor:
    raise RuntimeError("Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!")


def loaded(inputs: Callable[[int], Any]) -> DataLoader[Any]:
    return DataLoader([(inputs(k), Y[k]) for k in range(12)], 4)  # type: ignore[arg-type]


def ragged(k: int) -> Tensor:
    """The last batch of four lacks a column."""
    return X[k] if k < 8 else X[k, :2]


def fit(**changes: Any) -> pm.Front:
    usual = {"model": lambda: nn.Linear(3, 2), "losses": losses, "tasks": ["a", "b"], "train": (X, Y)}
    options: dict[str, Any] = {"device": "cpu", "progress": "quiet", "strategy": "sequential"}
    return pm.fit(pm.Problem(**{**usual, **changes}), "linear", 2, epochs=1, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "hint"),
    [
        ({"train": (X.long(), Y)}, "Integers are not cast, as they may be class numbers or tokens: write inputs"),
        ({"train": (X[:, None].byte(), Y), "model": lambda: nn.Conv1d(1, 2, 3)}, "Integers are not cast, as they may"),
        ({"train": (X, CLASSES.int()), "losses": entropies}, "Class numbers of cross_entropy are int64: write"),
        ({"train": (X, CLASSES.float()), "losses": entropies}, "Class numbers of cross_entropy are int64: write"),
        ({"train": (X, CLASSES + 5), "losses": entropies}, "Class numbers must begin at 0 and be below the number"),
        ({"model": lambda: nn.Linear(4, 2)}, "A layer has in_features=4, but the last dimension of its input is 3:"),
        ({"train": (X[:, :, None, None], Y)}, "nn.Flatten() makes one row of each image."),
        ({"train": (X[:, :, None], Y), "model": Convolution}, "write images[:, None] for grey images without channels"),
        ({"train": (X, CLASSES), "losses": logits}, "floating-point targets: write targets.float()."),
        ({"train": (X, CLASSES[:, :1].float()), "losses": logits}, "Outputs and targets need the same shape: write"),
        ({"model": lambda: nn.Bilinear(3, 3, 2)}, "model(inputs) gets one argument. For several inputs"),
        ({"model": lambda: Two(3, 2)}, "several outputs, 'outputs' holds all of them: take its parts, such as"),
        ({"losses": on_another_device}, "make tensors in losses with device=outputs.device, and keep constants"),
        ({"train": loaded(lambda k: X[k].tolist())}, "let the Dataset return tensors, such as torch.tensor(row)"),
        ({"train": loaded(lambda k: X[k, : 1 + k])}, "crop or pad them in the Dataset, or pass a DataLoader"),
        ({"model": Normalised, "train": (X[:1], Y[:1])}, "Batch normalisation needs two samples: take a"),
        ({"val": (X[:, :2], Y)}, "This came from the first batch of 'val', which is tried out before training. Its"),
        ({"train": loaded(ragged)}, "This came from step 3 of epoch 1. Its tensors: [4, 2] torch"),
        (
            {"train": DataLoader([X.numpy(), X.numpy()], batch_size=2, collate_fn=lambda rows: (rows[0], Y))},  # type: ignore[arg-type]
            "The batch holds NumPy arrays: let the collate_fn",
        ),
    ],
)  # fmt: skip
def test_errors_of_torch_come_with_a_remedy(changes: dict[str, Any], hint: str) -> None:
    with pytest.raises(Exception) as caught:  # noqa: PT011
        fit(**changes)
    notes = " ".join(caught.value.__notes__)
    assert hint in notes


class Images(Dataset[tuple[Tensor, Tensor]]):
    """Of which one cannot be read, or has another size."""

    def __init__(self, broken: int | None = None, narrow: int | None = None) -> None:
        self.broken, self.narrow = broken, narrow

    def __len__(self) -> int:
        return len(X)

    def __getitem__(self, i: int) -> tuple[Tensor, Tensor]:
        if i == self.broken:
            raise OSError("cannot identify image file")
        return X[i, : 2 if i == self.narrow else 3], Y[i]


@pytest.mark.parametrize("split", ["train", "val"])
def test_a_sample_that_cannot_be_read_is_named(split: str) -> None:
    with pytest.raises(OSError, match="cannot identify image file") as caught:
        fit(**{split: Images(broken=7)})
    assert f"This came from sample 7 of '{split}' (Images)." in caught.value.__notes__


def test_samples_of_different_shapes_are_named() -> None:
    with pytest.raises(RuntimeError, match="stack expects each tensor to be equal size") as caught:
        fit(val=Images(narrow=7))
    assert caught.value.__notes__[0] == (
        "Samples of 'val' must have the same shapes to make a batch: sample 0 has [[3], [2]], and sample 7 has "
        "[[2], [2]]."
    )


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
