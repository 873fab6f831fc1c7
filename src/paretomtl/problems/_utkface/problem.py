from __future__ import annotations

import math
import shlex
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from paretomtl._support.checks import check_count
from paretomtl.problems._data.array_file import Like, read_arrays, write_arrays
from paretomtl.problems._data.cache import load_or_make
from paretomtl.problems._multi_mnist.files import data_folder
from paretomtl.problems._networks.lenet import accuracy
from paretomtl.problems._networks.resnet import ResNet18
from paretomtl.problems._problem import Metric, Problem
from paretomtl.problems._utkface.folder import GENDERS, OLDEST, RACES, Faces, read_faces
from paretomtl.problems.recipes import residual

VERSION = 1
"""Of the file."""

SIDE = 48


def utkface(
    validation: bool = False,
    folder: str | Path | None = None,
    model: Callable[[], nn.Module] | None = None,
    side: int = SIDE,
) -> Problem:
    r"""Faces of UTKFace (paper, supplement, section 2): tell gender, race and age from one picture.

    Three tasks of different kinds and units: the cross-entropies of gender (2 classes) and of race (5), and the
    distance of the age in years,

    .. math:: L_{age} = \frac{1}{n} \sum_i |y_i - age_i| .

    It begins near 30 where the others begin near 0.7 and 1.6, and stays ten times as large: that is the point of this
    problem. A preference vector is a direction of losses, so that methods which compare losses see little else than
    age, unless they are told otherwise, as by ``ParetoMTL(scale="first")``.

    Images are ``[n, 3, side, side]`` in unsigned bytes, labels ``[n, 3]`` whole numbers: gender, race, age. The paper
    names neither its split nor its settings. Here a permutation from seed 0 of the faces in the order of their names
    gives 80 % for training, 10 % for validation and 10 % for test, and ResNet-18 is trained as in the paper's code for
    other images: Adam with a learning rate of 0.001 that falls to a tenth halfway, batches of 256, 20 epochs, an
    initial phase of at most two. The paper's four preference vectors are
    ``paretomtl.preferences.extreme(3, balanced=True)``.

    Metrics are "gender accuracy", "race accuracy" and "age error", the mean absolute error in years. Hypervolumes
    refer to (1, 2, 20): to know nothing costs log 2 = 0.69, log 5 = 1.61 and, for the median age of everybody, 15
    years; rounded up, so that models which have begun to overfit still count.

    ``paretomtl data prepare utkface --from FOLDER`` must have read the pictures; they cannot be downloaded by it.

    Args:
        validation: validate on 10 % of the faces; if not, they are trained on, too.
        folder: where the prepared file is; ``$PARETOMTL_DATA`` or the user's cache folder if left out.
        model: takes images in unsigned bytes and returns ``[n, 2]``, ``[n, 5]`` and ``[n, 1]``, years; None is
            ``ResNet18((2, 5, 1), channels=3, scale=1 / 255)``.
        side: of the prepared images.

    Example:
        >>> utkface(folder="new")
        Traceback (most recent call last):
        ...
        FileNotFoundError: 'new/utkface-48.npz' is not there yet. Make it with: paretomtl data prepare utkface ...
    """
    faces = load_utkface(folder, side)
    images, labels = torch.from_numpy(faces.images), torch.from_numpy(faces.labels).long()
    parts = split_faces(len(faces), validation)
    splits = {name: (images[part], labels[part]) for name, part in parts.items()}
    return faces_of(splits, model or (lambda: ResNet18((len(GENDERS), len(RACES), 1), channels=3, scale=1 / 255)))


def faces_of(splits: Mapping[str, tuple[Tensor, Tensor]], model: Callable[[], nn.Module]) -> Problem:
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
            "age error": Metric(_age_error, better="lower"),
        },
        name="utkface",
        reference=[1.0, 2.0, 20.0],
        recipe=residual(len(splits["train"][1])),
    )


def face_losses(outputs: tuple[Tensor, Tensor, Tensor], targets: Tensor) -> Tensor:
    """The losses ``[3]`` of :func:`utkface`, from targets ``[n, 3]``: two cross-entropies, and years.

    Example:
        >>> outputs = torch.zeros(1, 2), torch.zeros(1, 5), torch.tensor([[30.0]])
        >>> face_losses(outputs, torch.tensor([[1, 4, 26]]))
        tensor([0.6931, 1.6094, 4.0000])
    """
    gender, race, age = outputs
    return torch.stack(
        [
            functional.cross_entropy(gender, targets[:, 0]),
            functional.cross_entropy(race, targets[:, 1]),
            (age[:, 0] - targets[:, 2]).abs().mean(),
        ]
    )


def _age_error(outputs: tuple[Tensor, ...], targets: Tensor) -> Tensor:
    return (outputs[2][:, 0].double() - targets[:, 2]).abs().mean()


def split_faces(count: int, validation: bool) -> dict[str, NDArray[np.int64]]:
    """The numbers of the faces of each split: a tenth for the test, and a tenth for validation or for training."""
    if count < 3:
        raise ValueError(f"'utkface' must have at least 3 faces, for three splits. Got {count}.")
    order = np.random.RandomState(0).permutation(count)  # its numbers are the same in all versions
    tenth = math.ceil(count / 10)
    rest, test = order[:-tenth], order[-tenth:]
    if not validation:
        return {"train": rest, "test": test}
    return {"train": rest[:-tenth], "val": rest[-tenth:], "test": test}


def prepare_utkface(
    source: str | Path | None,
    cache: str | Path | None = None,
    side: int = SIDE,
    skip_broken: bool = False,
    log: Callable[[str], None] = lambda text: None,
) -> Faces:
    """Read the faces of UTKFace once, and keep them in one file; what is there already is only read.

    Two layouts are known. One is the published folder, with a picture for each face that is called
    ``age_gender_race_date.jpg``, such as ``26_0_1_20170116174525125.jpg.chip.jpg``. The other has ``labels.csv`` with
    the columns sheet, tile, age, gender, race, file, and ``sheet_00.jpg`` and so on with 40 by 25 tiles of 48 by 48
    each.

    Args:
        source: the folder. None takes what is there already.
        cache: where the file is kept; ``$PARETOMTL_DATA`` or the user's cache folder if left out.
        side: that images are shrunk to, by Pillow (extra ``images``).
        skip_broken: leave out pictures that do not decode, or whose name does not tell the labels (the published
            folder has four), and name them to ``log``; they are an error otherwise. Sheets are never left out.
        log: is told what happens.
    """
    path = utkface_file(cache, side)

    def make() -> Faces:
        if source is None:
            raise ValueError(
                "'source' (--from) must be a folder with the faces of UTKFace. Got None, and none are kept."
            )
        began = time.perf_counter()
        faces = read_faces(Path(source).expanduser(), side, skip_broken, log)
        write_arrays(path, faces.arrays, version=VERSION, name="utkface", side=side)
        log(f"Read {len(faces):,} faces in {time.perf_counter() - began:.1f} s: {path}")
        return faces

    return load_or_make(path, lambda: load_utkface(cache, side), make, log, ", delete it to read other files")


def load_utkface(cache: str | Path | None = None, side: int = SIDE) -> Faces:
    """What :func:`prepare_utkface` stored; an error for a file that is missing, damaged, or of something else."""
    options = (
        f"{'' if cache is None else f' --cache {shlex.quote(str(cache))}'}{'' if side == SIDE else f' --side {side}'}"
    )
    command = f"paretomtl data prepare utkface --from FOLDER{options}"
    layout = {
        "images": Like("u1", ("n", 3, side, side)),
        "labels": Like("u1", ("n", 3), (len(GENDERS) - 1, len(RACES) - 1, OLDEST)),
        "names": Like("U", ("n",)),
    }
    return Faces(**read_arrays(utkface_file(cache, side), command, layout, version=VERSION, name="utkface", side=side))


def utkface_file(cache: str | Path | None, side: int) -> Path:
    """The file of the faces."""
    check_count("side", side)
    return (data_folder() if cache is None else Path(cache).expanduser()) / f"utkface-{side}.npz"
