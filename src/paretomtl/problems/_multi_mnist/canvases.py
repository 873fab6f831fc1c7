"""Two or three images on one canvas, after MultiMNIST: how the data of the image experiments are made.

The paper's files are lost. These are regenerated from published files, by draws that are the same in every version of
NumPy. With seed 0, a checksum ensures that everyone has the same arrays. The last sixth of the training canvases is
made from the last sixth of the images only: validation then sees no training image, and each image is still at the top
left twice. A set is a tuple of sources by position, so that sets of two and three images share their code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from paretomtl.problems._data.array_file import checksum
from paretomtl.problems._multi_mnist.idx import SOURCES, Bytes, Images

CANVAS = 36
_SIDE = 28
_HELD_OUT = 6  # one image in six is held out for validation

Mix = tuple[str, ...]
"""The source of the image at each of the first :data:`POSITIONS`."""

PAPER: dict[str, Mix] = {
    "multi-mnist": ("mnist", "mnist"),
    "multi-fashion": ("fashion-mnist", "fashion-mnist"),
    "multi-fashion-mnist": ("mnist", "fashion-mnist"),
}
"""The paper's three sets (section 6.1)."""

MIXES: dict[str, Mix] = {
    **PAPER,
    "multi-mnist-3": ("mnist", "mnist", "mnist"),
    "multi-fashion-3": ("fashion-mnist", "fashion-mnist", "fashion-mnist"),
}
"""All sets: those of the paper, and those of three images, which are not in the paper."""


@dataclass(frozen=True)
class Position:
    """A position of an image on the canvas.

    Attributes:
        name: the name of the position, and of the task that classifies its image.
        shifts: the numbers of pixels by which the image may be moved along a diagonal of the canvas.
        mirrored: whether that diagonal goes from the top right to the bottom left, not from the top left.
    """

    name: str
    shifts: range
    mirrored: bool = False

    def window(self, shift: int) -> tuple[slice, slice]:
        """The rows and columns of an image with this shift."""
        left = CANVAS - _SIDE - shift if self.mirrored else shift
        return slice(shift, shift + _SIDE), slice(left, left + _SIDE)


POSITIONS = (
    Position("top-left", range(5)),
    Position("bottom-right", range(5, 9)),
    Position("top-right", range(5), mirrored=True),
)
"""The positions in the order of sources, labels and tasks; a set of two images has the first two."""


@dataclass(frozen=True, eq=False)
class Canvases:
    """A set of canvases with m overlapped images each, 2 or 3: unsigned bytes, as they are stored.

    The last sixth of the training canvases shares no image with the others, at any position, so it can be used for
    validation.

    Attributes:
        name: the name of the set, such as ``"multi-mnist"``.
        seed: the seed that they were made with.
        train_images: ``[120000, 36, 36]``.
        train_labels: ``[120000, m]``: the classes at the top left, the bottom right and, if m is 3, the top right.
        test_images: ``[20000, 36, 36]``.
        test_labels: ``[20000, m]``.
    """

    name: str
    seed: int
    train_images: Bytes
    train_labels: Bytes
    test_images: Bytes
    test_labels: Bytes

    @property
    def arrays(self) -> dict[str, Bytes]:
        """The arrays by name."""
        names = ("train_images", "train_labels", "test_images", "test_labels")
        return {name: getattr(self, name) for name in names}

    @property
    def positions(self) -> tuple[Position, ...]:
        """The positions of the images, in the order of the labels."""
        return POSITIONS[: len(MIXES[self.name])]

    @property
    def classes(self) -> tuple[tuple[str, ...], ...]:
        """The short names of the classes at each position, in the order of the labels."""
        return tuple(SOURCES[source].classes for source in MIXES[self.name])

    @property
    def origin(self) -> str:
        """``"regenerated"`` for the sets of the paper, whose files are lost, ``"made"`` for the others."""
        return "regenerated" if self.name in PAPER else "made"

    @property
    def validation(self) -> int:
        """How many canvases at the end of the training set share no image with the others."""
        return len(self.train_labels) // _HELD_OUT

    def checksum(self) -> str:
        """The SHA-256 of the four arrays: name, shape and bytes of each."""
        return checksum(self.arrays)


def generate_canvases(name: str, seed: int, sources: Mapping[str, Mapping[str, Images]]) -> Canvases:
    """Generate the canvases of a set, which depend only on the seed and the published images.

    Everything is drawn from one ``numpy.random.RandomState(seed)``, whose numbers are the same in every version of
    NumPy: first for the canvases of the first five sixths of the training images, then for those of the last sixth,
    then for test.
    """
    mix = MIXES[name]
    random = np.random.RandomState(seed)
    size = len(sources[mix[0]]["train"])
    cut = size - size // _HELD_OUT
    made = [
        overlap(mix, {source: sources[source][split][part] for source in mix}, random)
        for split, part in (("train", slice(cut)), ("train", slice(cut, None)), ("t10k", slice(None)))
    ]
    train_images, train_labels = (np.concatenate(parts) for parts in zip(*made[:2], strict=True))
    return Canvases(name, seed, train_images, train_labels, *made[2])


def overlap(mix: Mix, images: Mapping[str, Images], random: np.random.RandomState) -> tuple[Bytes, Bytes]:
    """Overlap images: each is at the top left twice, with random ones elsewhere.

    Returns canvases ``[2n, 36, 36]`` and labels ``[2n, m]``. Images of the same source on one canvas have different
    classes. The order of draws is: for each position from the second on, all images, redrawing those that repeat the
    class of an earlier image of their source until none does; then, for each position, all shifts.
    """
    chosen = [np.tile(np.arange(len(images[mix[0]])), 2)]
    labels = [images[mix[0]].labels[chosen[0]]]
    for place, source in enumerate(mix[1:], start=1):
        earlier = [labels[other] for other in range(place) if mix[other] == source]
        chosen.append(_draw(images[source].labels, len(chosen[0]), earlier, random))
        labels.append(images[source].labels[chosen[place]])
    canvas = np.zeros((len(chosen[0]), CANVAS, CANVAS), dtype=np.uint8)
    for position, source, numbers in zip(POSITIONS, mix, chosen, strict=False):
        shifts = random.randint(position.shifts.start, position.shifts.stop, size=len(numbers), dtype=np.int64)
        for shift in position.shifts:
            rows = np.flatnonzero(shifts == shift)
            window = (rows, *position.window(shift))
            there = canvas[window]
            canvas[window] = there + np.minimum(images[source].images[numbers[rows]], 255 - there)  # clipped to 255
    return canvas, np.stack(labels, -1)


def _draw(labels: Bytes, count: int, earlier: list[Bytes], random: np.random.RandomState) -> NDArray[np.int64]:
    """Draw indices of images, none with the class of an earlier image on its canvas."""
    drawn = random.randint(len(labels), size=count, dtype=np.int64)
    while (same := np.any([labels[drawn] == other for other in earlier], axis=0)).any():
        drawn[same] = random.randint(len(labels), size=int(same.sum()), dtype=np.int64)
    return drawn
