from __future__ import annotations

import torch
from torch import Tensor, nn

from paretomtl._support.argument_checks import check_count
from paretomtl._support.imports.optional_packages import require
from paretomtl.methods import MGDA, ParetoMTL
from paretomtl.problems._losses import accuracy, cross_entropies
from paretomtl.problems._problem import Problem, Recipe

_SIDE, _CANVAS = 8, 11
_IMAGES = {"train": 1197, "val": 200, "test": 400}  # 1,797 in all


class SmallLeNet(nn.Module):
    """The paper's LeNet for images of 11 by 11: two convolutions, a shared layer, and a head for each digit."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Conv2d(1, 8, 3),
            nn.ReLU(),
            nn.MaxPool2d(2, ceil_mode=True),
            nn.Conv2d(8, 16, 3),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(16 * 3 * 3, 24),
            nn.ReLU(),
        )
        self.left = nn.Linear(24, 10)
        self.right = nn.Linear(24, 10)

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        shared = self.trunk(images)
        return self.left(shared), self.right(shared)


def multi_digits(pairs: int = 4000) -> Problem:
    """Two handwritten digits in one image, after MultiMNIST (paper, section 6.1): classify both.

    The digits come with scikit-learn (extra ``digits``): 1,797 real images of 8 by 8. They are split into training,
    validation and test images first, and then paired within each split. A pair is two images of different classes on a
    canvas of 11 by 11, the first shifted by 0 or 1 along the diagonal, the second by 2 or 3, added and clipped. The
    pairs are always the same.

    Args:
        pairs: the number of training pairs; validation and test have a quarter of that each.
    """
    pairs = check_count("pairs", pairs)
    digits = require("sklearn.datasets", "digits").load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32) / 16.0
    labels = torch.tensor(digits.target)
    generator = torch.Generator().manual_seed(0)
    order = torch.randperm(len(images), generator=generator)
    parts = dict(zip(_IMAGES, torch.split(order, list(_IMAGES.values())), strict=True))
    splits = {
        split: _pairs(images[part], labels[part], pairs if split == "train" else max(1, pairs // 4), generator)
        for split, part in parts.items()
    }
    return Problem(
        model=SmallLeNet,
        losses=cross_entropies,
        tasks=["top-left", "bottom-right"],
        train=splits["train"],
        val=splits["val"],
        test=splits["test"],
        metrics={"top-left accuracy": accuracy(0), "bottom-right accuracy": accuracy(1)},
        name="multi-digits",
        reference=[2.0, 2.0],
        recipe=Recipe(
            epochs=30,
            batch_size=128,
            optimizer=lambda parameters: torch.optim.AdamW(parameters, lr=3e-3),
            methods={"pareto-mtl": ParetoMTL(rescale=True, return_share=None), "mgda": MGDA(rescale=True)},
        ),
    )


def _pairs(images: Tensor, labels: Tensor, count: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Overlapped images ``[n, 1, 11, 11]`` and both labels ``[n, 2]``."""
    first = torch.arange(count) % len(images)
    second = torch.randint(len(images), (count,), generator=generator)
    while bool((same := labels[first] == labels[second]).any()):
        second[same] = torch.randint(len(images), (int(same.sum()),), generator=generator)
    shifts = torch.randint(2, (2, count), generator=generator)
    canvas = torch.zeros(count, _CANVAS, _CANVAS)
    for n in range(count):
        for image, shift in ((images[first[n]], shifts[0, n]), (images[second[n]], 2 + shifts[1, n])):
            canvas[n, shift : shift + _SIDE, shift : shift + _SIDE] += image
    return canvas.clamp_max(1.0)[:, None], torch.stack([labels[first], labels[second]], -1)
