from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import torch
from torch import Tensor, nn

from paretomtl.problems._losses import accuracy, cross_entropies
from paretomtl.problems._multi_mnist.canvases import MIXES, POSITIONS
from paretomtl.problems._multi_mnist.files import load_canvases
from paretomtl.problems._multi_mnist.idx import Bytes
from paretomtl.problems._networks.lenet import LeNet
from paretomtl.problems._problem import Problem
from paretomtl.problems.recipes import IMAGE_RECIPES, ImageRecipe


def multi_mnist(
    validation: bool = False,
    folder: str | Path | None = None,
    seed: int = 0,
    model: Callable[[], nn.Module] | None = None,
    recipe: str = "strong",
) -> Problem:
    """Two digits of MNIST in one image, MultiMNIST (paper, section 6.1), regenerated: classify both.

    There are 120,000 training and 20,000 test canvases of 36 by 36, each with two overlapped images of different
    classes: images ``[n, 1, 36, 36]`` in unsigned bytes, labels ``[n, 2]``. The paper's files are lost; these are
    regenerated from what is known about them. ``paretomtl data prepare multi-mnist`` must have made them.

    Args:
        validation: train on the first 100,000 canvases, and validate on the last 20,000, which share no image with
            them.
        folder: where the canvases are; ``$PARETOMTL_DATA`` or the user's cache folder if left out.
        seed: the seed that the canvases were made with.
        model: takes images in unsigned bytes; None is the paper's network, with the inputs of the recipe.
        recipe: "strong" is the one with which every method learns best: inputs from 0 to 1, AdamW, a cosine down to
            zero, 30 epochs. "paper" is that of the paper's code: raw bytes, SGD with momentum, 100 epochs. Both have at
            most two epochs of the initial phase, and weights that sum to m.

    Example:
        >>> multi_mnist(folder="new")
        Traceback (most recent call last):
        ...
        FileNotFoundError: 'new/multi-mnist-seed0.npz' does not exist yet. Make it with: paretomtl data prepare ...
    """
    return load_problem("multi-mnist", validation, folder, seed, model, recipe)


def multi_fashion(
    validation: bool = False,
    folder: str | Path | None = None,
    seed: int = 0,
    model: Callable[[], nn.Module] | None = None,
    recipe: str = "strong",
) -> Problem:
    """Two pieces of clothing of Fashion-MNIST in one image (paper, section 6.1), regenerated: classify both.

    Everything but the images is as in :func:`multi_mnist`.
    """
    return load_problem("multi-fashion", validation, folder, seed, model, recipe)


def multi_fashion_mnist(
    validation: bool = False,
    folder: str | Path | None = None,
    seed: int = 0,
    model: Callable[[], nn.Module] | None = None,
    recipe: str = "strong",
) -> Problem:
    """A digit of MNIST with a piece of clothing of Fashion-MNIST (paper, section 6.1), regenerated: classify both.

    The digit is at the top left; classes are paired freely. Everything else is as in :func:`multi_mnist`.
    """
    return load_problem("multi-fashion-mnist", validation, folder, seed, model, recipe)


def multi_mnist_3(
    validation: bool = False,
    folder: str | Path | None = None,
    seed: int = 0,
    model: Callable[[], nn.Module] | None = None,
    recipe: str = "strong",
) -> Problem:
    """Three digits of MNIST in one image, made like MultiMNIST, but not in the paper: classify all three.

    The third digit is at the top right; all three are of different classes, and labels are ``[n, 3]``. The network has
    three heads. Everything else is as in :func:`multi_mnist`; ``paretomtl data prepare multi-mnist-3`` makes the data.
    """
    return load_problem("multi-mnist-3", validation, folder, seed, model, recipe)


def multi_fashion_3(
    validation: bool = False,
    folder: str | Path | None = None,
    seed: int = 0,
    model: Callable[[], nn.Module] | None = None,
    recipe: str = "strong",
) -> Problem:
    """Three pieces of clothing of Fashion-MNIST in one image, not in the paper: classify all three.

    Everything but the images is as in :func:`multi_mnist_3`.
    """
    return load_problem("multi-fashion-3", validation, folder, seed, model, recipe)


def load_problem(
    name: str,
    validation: bool = False,
    folder: str | Path | None = None,
    seed: int = 0,
    model: Callable[[], nn.Module] | None = None,
    recipe: str = "strong",
) -> Problem:
    """The problem of a set of canvases."""
    if recipe not in IMAGE_RECIPES:
        raise ValueError(f"'recipe' must be one of {', '.join(IMAGE_RECIPES)}. Got {recipe!r} instead.")
    canvases = load_canvases(name, folder, seed)
    images, labels = _tensors(canvases.train_images, canvases.train_labels)
    cut = len(labels) - (canvases.validation if validation else 0)
    splits = {"train": (images[:cut], labels[:cut]), "test": _tensors(canvases.test_images, canvases.test_labels)}
    if validation:
        splits["val"] = (images[cut:], labels[cut:])
    return from_splits(name, splits, model, IMAGE_RECIPES[recipe])


def from_splits(
    name: str,
    splits: Mapping[str, tuple[Tensor, Tensor]],
    model: Callable[[], nn.Module] | None,
    recipe: ImageRecipe = IMAGE_RECIPES["strong"],
) -> Problem:
    """The problem of images ``[n, 1, 36, 36]`` and labels ``[n, m]`` by split."""
    tasks = [position.name for position in POSITIONS[: len(MIXES[name])]]
    return Problem(
        model=model or (lambda: LeNet(len(tasks), recipe.scale)),
        losses=cross_entropies,
        tasks=tasks,
        train=splits["train"],
        val=splits.get("val"),
        test=splits["test"],
        metrics={f"{task} accuracy": accuracy(i) for i, task in enumerate(tasks)},
        name=name,
        reference=[2.0] * len(tasks),
        recipe=recipe.make(len(splits["train"][1])),
    )


def _tensors(images: Bytes, labels: Bytes) -> tuple[Tensor, Tensor]:
    """Images ``[n, 1, 36, 36]``, bytes until they are used, and labels ``[n, m]``."""
    return torch.from_numpy(images)[:, None], torch.from_numpy(labels).long()
