from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from paretomtl.problems._losses import accuracy, age_error, face_losses
from paretomtl.problems._networks.resnet import ResNet18
from paretomtl.problems._problem import Metric, Problem
from paretomtl.problems._utkface.files import SIDE, load_utkface
from paretomtl.problems._utkface.folder import GENDERS, RACES
from paretomtl.problems.recipes import residual


def utkface(
    validation: bool = False,
    folder: str | Path | None = None,
    model: Callable[[], nn.Module] | None = None,
    side: int = SIDE,
) -> Problem:
    r"""Faces of UTKFace (paper, supplement, section 2): predict gender, race and age from one picture.

    The three tasks differ in kind and unit: the cross-entropies of gender (2 classes) and of race (5), and the error of
    the age in years,

    .. math:: L_{age} = \frac{1}{n} \sum_i |y_i - age_i| .

    The age loss starts near 30, the others near 0.7 and 1.6, and it stays ten times as large: that is the point of this
    problem. A preference vector is a direction of losses, so methods that compare losses see little but age, unless
    losses are scaled, such as by ``ParetoMTL(scale="first")``.

    Images are ``[n, 3, side, side]`` in unsigned bytes, labels ``[n, 3]`` integers: gender, race, age. The paper gives
    neither its split nor its settings. Here the faces, sorted by name, are permuted with seed 0: 80 % are for training,
    10 % for validation and 10 % for test. ResNet-18 is trained as in the paper's code for other images: Adam with a
    learning rate of 0.001 that drops to a tenth halfway, batches of 256, 20 epochs, an initial phase of at most two.
    The paper's four preference vectors are ``paretomtl.preferences.extreme(3, balanced=True)``.

    Metrics are "gender accuracy", "race accuracy" and "age error", the mean absolute error in years. The reference of
    the hypervolume is (1, 2, 20). A model that knows nothing has the losses log 2 = 0.69, log 5 = 1.61 and, with the
    median age for everyone, 15 years. The reference is larger, so that models that begin to overfit still count.

    ``paretomtl data prepare utkface --from FOLDER`` must have read the pictures; they cannot be downloaded.

    Args:
        validation: validate on 10 % of the faces; False trains on them.
        folder: where the prepared file is; ``$PARETOMTL_DATA`` or the user's cache folder if left out.
        model: takes images in unsigned bytes and returns ``[n, 2]``, ``[n, 5]`` and ``[n, 1]``, years; None is
            ``ResNet18((2, 5, 1), channels=3, scale=1 / 255)``.
        side: the side of the prepared images, in pixels.

    Example:
        >>> utkface(folder="new")
        Traceback (most recent call last):
        ...
        FileNotFoundError: 'new/utkface-48.npz' does not exist yet. Make it with: paretomtl data prepare utkface ...
    """
    faces = load_utkface(folder, side)
    images, labels = torch.from_numpy(faces.images), torch.from_numpy(faces.labels).long()
    parts = split_faces(len(faces), validation)
    splits = {name: (images[part], labels[part]) for name, part in parts.items()}
    return from_splits(splits, model or (lambda: ResNet18((len(GENDERS), len(RACES), 1), channels=3, scale=1 / 255)))


def from_splits(splits: Mapping[str, tuple[Tensor, Tensor]], model: Callable[[], nn.Module]) -> Problem:
    """The problem of images ``[n, 3, side, side]`` and labels ``[n, 3]`` by split."""
    return Problem(
        model=model,
        losses=face_losses,
        tasks=["gender", "race", "age"],
        train=splits["train"],
        val=splits.get("val"),
        test=splits["test"],
        metrics={
            "gender accuracy": accuracy(0),
            "race accuracy": accuracy(1),
            "age error": Metric(age_error, better="lower"),
        },
        name="utkface",
        reference=[1.0, 2.0, 20.0],
        recipe=residual(len(splits["train"][1])),
    )


def split_faces(count: int, validation: bool) -> dict[str, NDArray[np.int64]]:
    """The indices of the faces of each split: a tenth for test, and a tenth for validation or training."""
    if count < 3:
        raise ValueError(f"'utkface' must have at least 3 faces, for three splits. Got {count}.")
    order = np.random.RandomState(0).permutation(count)  # the same numbers in every version of NumPy
    tenth = math.ceil(count / 10)
    rest, test = order[:-tenth], order[-tenth:]
    if not validation:
        return {"train": rest, "test": test}
    return {"train": rest[:-tenth], "val": rest[-tenth:], "test": test}
