"""Two images on one canvas, after MultiMNIST: how the data of the paper's image experiments are made again."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from paretomtl.problems._idx import Bytes, Images

CANVAS = 36
_SIDE = 28
_TOP_LEFT, _BOTTOM_RIGHT = range(5), range(5, 9)  # shifts along the diagonal
_HELD_OUT = 6  # one image in so many is kept apart for validation


@dataclass(frozen=True)
class Mix:
    """What a set of canvases is made of.

    Attributes:
        top_left: the source of the image at the top left.
        bottom_right: that of the other one.
    """

    top_left: str
    bottom_right: str

    @property
    def sources(self) -> tuple[str, ...]:
        """The sources, each once."""
        return tuple(dict.fromkeys((self.top_left, self.bottom_right)))


MIXES = {
    "multi-mnist": Mix("mnist", "mnist"),
    "multi-fashion": Mix("fashion-mnist", "fashion-mnist"),
    "multi-fashion-mnist": Mix("mnist", "fashion-mnist"),
}
"""The paper's three sets of canvases (section 6.1)."""


@dataclass(frozen=True, eq=False)
class Canvases:
    """A set of canvases with overlapped images, regenerated: unsigned bytes, as they are stored.

    The last sixth of the training canvases shares no image with the others, neither at the top left nor at the bottom
    right: it can serve for validation.

    Attributes:
        name: of the set, such as ``"multi-mnist"``.
        seed: that they were made with.
        train_images: ``[120000, 36, 36]``.
        train_labels: ``[120000, 2]``: the class at the top left, and that at the bottom right.
        test_images: ``[20000, 36, 36]``.
        test_labels: ``[20000, 2]``.
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
    def validation(self) -> int:
        """How many of the last training canvases are made of images of their own."""
        return len(self.train_labels) // _HELD_OUT

    def checksum(self) -> str:
        """The SHA-256 of the four arrays: name, shape and bytes of each."""
        digest = hashlib.sha256()
        for name, array in self.arrays.items():
            digest.update(f"{name} {array.dtype} {list(array.shape)}".encode())
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()


def generate_canvases(name: str, seed: int, sources: Mapping[str, Mapping[str, Images]]) -> Canvases:
    """The canvases of a set: a function of the seed and of the published images alone.

    Everything is drawn from one ``numpy.random.RandomState(seed)``, whose numbers no version of NumPy changes: first
    for the canvases of the first five sixths of the training images, then for those of the last sixth, then for the
    test.
    """
    mix = MIXES[name]
    random = np.random.RandomState(seed)
    top_left, bottom_right = sources[mix.top_left], sources[mix.bottom_right]
    other_class = mix.top_left == mix.bottom_right
    cut = len(top_left["train"]) - len(top_left["train"]) // _HELD_OUT
    made = [
        overlap(top_left[split][part], bottom_right[split][part], random, other_class=other_class)
        for split, part in (("train", slice(cut)), ("train", slice(cut, None)), ("t10k", slice(None)))
    ]
    train_images, train_labels = (np.concatenate(parts) for parts in zip(*made[:2], strict=True))
    return Canvases(name, seed, train_images, train_labels, *made[2])


def overlap(
    top_left: Images, bottom_right: Images, random: np.random.RandomState, *, other_class: bool
) -> tuple[Bytes, Bytes]:
    """Each image twice at the top left, a random one at the bottom right: ``[2n, 36, 36]``, and labels ``[2n, 2]``.

    Drawn in this order: all images at the bottom right, again for those of the same class while there are any and
    ``other_class`` forbids them, then all shifts of the top left, then those of the bottom right.
    """
    first = np.tile(np.arange(len(top_left)), 2)
    second = random.randint(len(bottom_right), size=len(first), dtype=np.int64)
    while other_class and (same := top_left.labels[first] == bottom_right.labels[second]).any():
        second[same] = random.randint(len(bottom_right), size=int(same.sum()), dtype=np.int64)
    canvas = np.zeros((len(first), CANVAS, CANVAS), dtype=np.uint8)
    for images, chosen, shifts in ((top_left.images, first, _TOP_LEFT), (bottom_right.images, second, _BOTTOM_RIGHT)):
        drawn = random.randint(shifts.start, shifts.stop, size=len(first), dtype=np.int64)
        for shift in shifts:
            rows = np.flatnonzero(drawn == shift)
            window = (rows, slice(shift, shift + _SIDE), slice(shift, shift + _SIDE))
            there = canvas[window]
            canvas[window] = there + np.minimum(images[chosen[rows]], 255 - there)  # added, clipped to 255
    return canvas, np.stack([top_left.labels[first], bottom_right.labels[second]], -1)
