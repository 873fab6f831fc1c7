from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from paretomtl.problems._census.files import Census, load_census
from paretomtl.problems._losses import area_under_curve, binary_accuracy, binary_cross_entropies
from paretomtl.problems._networks.tabular import MLP
from paretomtl.problems._problem import Problem, Recipe
from paretomtl.problems.recipes import configured, warm_cosine

TASKS = ("income", "education", "marital")

_Rows: TypeAlias = slice | NDArray[np.int64]

_BATCH = 512
_HELD_OUT = 10  # one training record in ten is held out


def census(
    validation: bool = False,
    folder: str | Path | None = None,
    model: Callable[[], nn.Module] | None = None,
    verify: bool = True,
) -> Problem:
    """Census-Income (KDD) of UCI (paper, supplement): predict income, education and marital status of a person.

    There are 199,523 training and 99,762 test records, which ``paretomtl data prepare census`` must have prepared.
    Features are ``[n, 482]`` in float32: nine standardized numbers and the one-hot vectors of 29 columns. Labels are
    ``[n, 3]``, 0 or 1: an income above 50,000 dollars, a college degree, never married. The network is :class:`MLP`,
    with hidden layers of 1024 and 128 units and three heads.

    The paper does not say how it is trained. The recipe is ours: AdamW with learning rate 0.0014, a cosine down to
    zero, batches of 512, 5 epochs; at most two epochs of the initial phase, and weights that sum to m, as in the
    paper's code for images. The reference of the hypervolume is 0.7 in each task: a model that knows nothing has a loss
    of ln 2 = 0.693.

    Args:
        validation: train on nine tenths of the training records, in a fixed random split, and validate on the others.
            Many records have the same features and labels, so some occur in both parts, as some do in training and
            test.
        folder: where the records are; ``$PARETOMTL_DATA`` or the user's cache folder if left out.
        model: takes features ``[n, 482]`` and returns three tensors of logits ``[n]``; None is the paper's network.
        verify: False takes the records that ``prepare_census(verify=False)`` made from your own files.

    Example:
        >>> census(folder="new")
        Traceback (most recent call last):
        ...
        FileNotFoundError: 'new/census.npz' does not exist yet. Make it with: paretomtl data prepare census --cache new
    """
    data = load_census(folder, verify=verify)
    return from_splits(make_splits(data, validation), model or (lambda: MLP(len(data.feature_names), len(TASKS))))


def make_splits(data: Census, validation: bool) -> dict[str, tuple[Tensor, Tensor]]:
    """Features ``[n, d]`` and labels ``[n, 3]`` by split; with ``validation``, some training records are held out."""
    trained, held_out = _parts(len(data.train_labels), validation)
    splits = {
        "train": _tensors(data, "train", trained, trained),
        "test": _tensors(data, "test", slice(None), trained),
    }
    if validation:
        splits["val"] = _tensors(data, "train", held_out, trained)
    return splits


def from_splits(splits: Mapping[str, tuple[Tensor, Tensor]], model: Callable[[], nn.Module]) -> Problem:
    """The problem of features ``[n, d]`` and labels ``[n, 3]`` by split."""
    return Problem(
        model=model,
        losses=binary_cross_entropies,
        tasks=TASKS,
        train=splits["train"],
        val=splits.get("val"),
        test=splits["test"],
        metrics={
            f"{task} {name}": metric(i)
            for name, metric in (("accuracy", binary_accuracy), ("auc", area_under_curve))
            for i, task in enumerate(TASKS)
        },
        name="census",
        reference=[0.7] * len(TASKS),
        recipe=Recipe(
            epochs=5,
            batch_size=_BATCH,
            optimizer=lambda parameters: torch.optim.AdamW(parameters, lr=1.4e-3),
            scheduler=warm_cosine,
            schedule="step",
            methods=configured(len(splits["train"][1]), _BATCH),
        ),
    )


def _parts(records: int, validation: bool) -> tuple[_Rows, _Rows]:
    """The training records to train on and those to hold out, each in the order of the file.

    The split is random, because neighbouring records may be similar. The generator gives the same numbers in every
    version of NumPy.
    """
    if not validation:
        return slice(None), slice(0)
    drawn = np.random.RandomState(0).permutation(records)
    cut = max(1, records // _HELD_OUT)
    return np.sort(drawn[cut:]), np.sort(drawn[:cut])


def _tensors(data: Census, split: str, rows: _Rows, trained: _Rows) -> tuple[Tensor, Tensor]:
    """Features ``[n, 482]`` and labels ``[n, 3]`` of some records of a split, standardized by the training records."""
    codes, numbers, labels = (data.arrays[f"{split}_{name}"][rows] for name in ("codes", "numbers", "labels"))
    features = data.features(codes, numbers, like=data.train_numbers[trained])
    return torch.from_numpy(features), torch.from_numpy(labels).float()
