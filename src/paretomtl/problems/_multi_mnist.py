from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn

from paretomtl.methods import MGDA, ParetoMTL
from paretomtl.problems._idx import Bytes
from paretomtl.problems._lenet import LeNet, accuracy, cross_entropies
from paretomtl.problems._prepared import load_canvases
from paretomtl.problems._problem import Problem, Recipe

_BATCH, _EPOCHS, _INITIAL_EPOCHS = 256, 100, 2


def multi_mnist(
    validation: bool = False,
    folder: str | Path | None = None,
    seed: int = 0,
    model: Callable[[], nn.Module] = LeNet,
) -> Problem:
    """Two digits of MNIST in one image, MultiMNIST (paper, section 6.1), regenerated: tell both.

    120,000 training and 20,000 test canvases of 36 by 36, each with two images of different classes, overlapped: images
    ``[n, 1, 36, 36]`` in unsigned bytes, labels ``[n, 2]``. The paper's files are lost; these are made anew by what is
    known of them, and ``paretomtl data prepare multi-mnist`` must have made them. The recipe is that of the paper's
    code: raw bytes as input, SGD with momentum, at most two epochs of the initial phase, weights that sum to m.

    Args:
        validation: train on the first 100,000 canvases, and validate on the last 20,000, which share no image with
            them.
        folder: where the canvases are; ``$PARETOMTL_DATA`` or the user's cache folder if left out.
        seed: that the canvases were made with.
        model: takes images in unsigned bytes; ``lambda: LeNet(scale=1 / 255)`` gives the paper's network inputs from
            0 to 1.

    Example:
        >>> multi_mnist(folder="new")
        Traceback (most recent call last):
        ...
        FileNotFoundError: 'new/multi-mnist-seed0.npz' is not there yet. Make it with: paretomtl data prepare ...
    """
    return _problem("multi-mnist", validation, folder, seed, model)


def multi_fashion(
    validation: bool = False,
    folder: str | Path | None = None,
    seed: int = 0,
    model: Callable[[], nn.Module] = LeNet,
) -> Problem:
    """Two pieces of clothing of Fashion-MNIST in one image (paper, section 6.1), regenerated: tell both.

    Everything but the images is as in :func:`multi_mnist`.
    """
    return _problem("multi-fashion", validation, folder, seed, model)


def multi_fashion_mnist(
    validation: bool = False,
    folder: str | Path | None = None,
    seed: int = 0,
    model: Callable[[], nn.Module] = LeNet,
) -> Problem:
    """A digit of MNIST with a piece of clothing of Fashion-MNIST (paper, section 6.1), regenerated: tell both.

    The digit is at the top left; any class goes with any. Everything else is as in :func:`multi_mnist`.
    """
    return _problem("multi-fashion-mnist", validation, folder, seed, model)


def lenet_3() -> LeNet:
    """The paper's network with a head for each of three images."""
    return LeNet(tasks=3)


def multi_mnist_3(
    validation: bool = False,
    folder: str | Path | None = None,
    seed: int = 0,
    model: Callable[[], nn.Module] = lenet_3,
) -> Problem:
    """Three digits of MNIST in one image, made as MultiMNIST is, though not in the paper: tell all three.

    The third digit is at the top right; all three are of different classes, and labels are ``[n, 3]``. The network has
    three heads. Everything else is as in :func:`multi_mnist`; ``paretomtl data prepare multi-mnist-3`` makes the data.
    """
    return _problem("multi-mnist-3", validation, folder, seed, model)


def multi_fashion_3(
    validation: bool = False,
    folder: str | Path | None = None,
    seed: int = 0,
    model: Callable[[], nn.Module] = lenet_3,
) -> Problem:
    """Three pieces of clothing of Fashion-MNIST in one image, though not in the paper: tell all three.

    Everything but the images is as in :func:`multi_mnist_3`.
    """
    return _problem("multi-fashion-3", validation, folder, seed, model)


def _problem(
    name: str, validation: bool, folder: str | Path | None, seed: int, model: Callable[[], nn.Module]
) -> Problem:
    canvases = load_canvases(name, folder, seed)
    images, labels = _tensors(canvases.train_images, canvases.train_labels)
    cut = len(labels) - (canvases.validation if validation else 0)
    tasks = [position.name for position in canvases.positions]
    return Problem(
        model=model,
        losses=cross_entropies,
        tasks=tasks,
        train=(images[:cut], labels[:cut]),
        val=(images[cut:], labels[cut:]) if validation else None,
        test=_tensors(canvases.test_images, canvases.test_labels),
        metrics={f"{task} accuracy": accuracy(number) for number, task in enumerate(tasks)},
        name=name,
        reference=[2.0] * len(tasks),
        recipe=_recipe(cut),
    )


def _tensors(images: Bytes, labels: Bytes) -> tuple[Tensor, Tensor]:
    """Images ``[n, 1, 36, 36]``, bytes until they are used, and labels ``[n, m]``."""
    return torch.from_numpy(images)[:, None], torch.from_numpy(labels).long()


def _recipe(samples: int) -> Recipe:
    """That of the paper's code."""
    return Recipe(
        epochs=_EPOCHS,
        batch_size=_BATCH,
        optimizer=lambda parameters: torch.optim.SGD(parameters, lr=1e-3, momentum=0.9),
        scheduler=lambda optimizer: torch.optim.lr_scheduler.MultiStepLR(optimizer, list(range(15, 91, 15)), gamma=0.5),
        methods={
            "pareto-mtl": ParetoMTL(rescale=True, initial_steps=_INITIAL_EPOCHS * -(-samples // _BATCH)),
            "mgda": MGDA(rescale=True),
        },
    )
