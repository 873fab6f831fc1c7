"""Recipes for networks on images: the one of the paper's code, and the one with which every method learns best.

The default is the latter, because the recipe changes the results of every method by more than methods differ. It was
found with linear scalarization on the validation split of one set (``experiments/recipes.py``).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch.optim.lr_scheduler import LambdaLR, MultiStepLR

from paretomtl.methods import MGDA, ParetoMTL
from paretomtl.problems._problem import Recipe

_BATCH, _INITIAL_EPOCHS = 256, 2
_WARM_UP = 20  # the learning rate rises over the first twentieth of the steps


@dataclass(frozen=True)
class ImageRecipe:
    """A recipe, and the scale of the inputs.

    Attributes:
        scale: multiplies the bytes of images.
        make: returns the recipe for a number of training samples.
    """

    scale: float
    make: Callable[[int], Recipe]


def configured(samples: int, batch_size: int = _BATCH) -> dict[str, ParetoMTL | MGDA]:
    """The methods configured as in the paper's code.

    The initial phase has at most two epochs and is never entered again; weights sum to m.
    """
    steps = _INITIAL_EPOCHS * -(-samples // batch_size)
    return {
        "pareto-mtl": ParetoMTL(rescale=True, initial_steps=steps, return_share=None),
        "mgda": MGDA(rescale=True),
    }


def warm_cosine(optimizer: torch.optim.Optimizer, steps: int) -> LambdaLR:
    """Linear warm-up over the first twentieth of the steps, then cosine decay to zero.

    Without the warm-up, a large learning rate was worse on validation.
    """

    def factor(step: int) -> float:
        rise = (step + 1) / max(1, steps // _WARM_UP)
        return min(1.0, rise) * 0.5 * (1.0 + math.cos(math.pi * min(1.0, step / max(1, steps))))

    return LambdaLR(optimizer, factor)


def residual(samples: int, *, epochs: int = 20, batch_size: int = _BATCH) -> Recipe:
    """ResNet-18 as the paper's code trains it: Adam, a learning rate that drops to a tenth halfway, 20 epochs."""
    return Recipe(
        epochs=epochs,
        batch_size=batch_size,
        optimizer=lambda parameters: torch.optim.Adam(parameters, lr=1e-3),
        scheduler=lambda optimizer, planned: MultiStepLR(optimizer, [max(1, planned // 2)], gamma=0.1),
        methods=configured(samples, batch_size),
    )


def _strong(samples: int) -> Recipe:
    return Recipe(
        epochs=30,
        batch_size=_BATCH,
        optimizer=lambda parameters: torch.optim.AdamW(parameters, lr=0.016, weight_decay=0.2),
        scheduler=warm_cosine,
        schedule="step",
        methods=configured(samples),
    )


def _paper(samples: int) -> Recipe:
    return Recipe(
        epochs=100,
        batch_size=_BATCH,
        optimizer=lambda parameters: torch.optim.SGD(parameters, lr=1e-3, momentum=0.9),
        scheduler=lambda optimizer, epochs: MultiStepLR(optimizer, list(range(15, 91, 15)), gamma=0.5),
        methods=configured(samples),
    )


IMAGE_RECIPES = {"strong": ImageRecipe(1 / 255, _strong), "paper": ImageRecipe(1.0, _paper)}
"""The recipes of the image problems by name."""
