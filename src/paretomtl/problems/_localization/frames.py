"""Camera frames with their poses, and their split.

Frames are split in blocks with gaps: neighbouring frames look the same, so a random split would leak test data.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paretomtl.problems._data.array_file import checksum
from paretomtl.problems._data.images import Pixels
from paretomtl.problems._localization.rotations import Floats

Integers = NDArray[np.int64]

UNSAID, TRAIN, TEST, NEITHER = range(4)
"""The split of a frame in the published lists; all are ``UNSAID`` if there are no lists."""

BLOCK, GAP = 50, 5
_EVERY, _VAL, _TEST = 5, 2, 4  # of every five blocks, the third validates and the fifth tests


@dataclass(frozen=True)
class Frames:
    """Camera images with their poses.

    Attributes:
        images: ``[n, 3, height, width]`` in unsigned bytes.
        positions: ``[n, 3]``, the position of the camera in the world, in metres.
        quaternions: ``[n, 4]``, its rotation as unit quaternions (w, x, y, z) with w not negative.
        records: ``[n]``, the index of the drive or sequence that a frame belongs to.
        moments: ``[n]``, the time index within it; simultaneous cameras share their moments.
        listed: ``[n]`` in unsigned bytes, the split in the published lists: 0 without lists, 1 for training, 2 for
            test, 3 for neither.
        names: ``[n]``, the names of the published files.
    """

    images: Pixels
    positions: Floats
    quaternions: Floats
    records: Integers
    moments: Integers
    listed: Pixels
    names: NDArray[Any]

    def __len__(self) -> int:
        return len(self.names)

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays by name, as they are stored."""
        names = ("images", "positions", "quaternions", "records", "moments", "listed", "names")
        return {name: getattr(self, name) for name in names}

    @property
    def origin(self) -> Floats:
        """The first position. Positions count from it, because single precision resolves 12 km only to a millimetre."""
        return np.asarray(self.positions[0], dtype=np.float64)

    def checksum(self) -> str:
        """The SHA-256 of the arrays. None is published: decoders of JPEG differ in the last bit."""
        return checksum(self.arrays)

    def split(self, validation: bool, block: int = BLOCK, gap: int = GAP) -> dict[str, Integers]:
        """The indices of the frames of each split.

        Moments are cut into blocks, numbered across records. The fifth of every five blocks is for test, unless
        published lists say otherwise. The third is for ``validation``, or else for training. Training leaves out frames
        within ``gap`` moments of either.
        """
        listed = bool((self.listed != UNSAID).any())
        number = self._blocks(block) % _EVERY
        test = self.listed == TEST if listed else number == _TEST
        rest = (self.listed == TRAIN if listed else np.ones(len(self), dtype=bool)) & ~test
        val = rest & (number == _VAL) & validation
        train = rest & ~val & ~self._near(test | val, gap)
        parts = {"train": train, **({"val": val} if validation else {}), "test": test}
        for name, part in parts.items():
            if not part.any():
                raise ValueError(
                    f"the frames must be enough for every split: of blocks of {block} moments, every fifth is for "
                    f"test. Got {len(self)} frames in {1 + self._blocks(block).max()} blocks, and none for '{name}'."
                )
        return {name: np.flatnonzero(part) for name, part in parts.items()}

    def _blocks(self, block: int) -> Integers:
        """The block of each frame."""
        lengths = [1 + self.moments[self.records == record].max() // block for record in range(self.records.max() + 1)]
        before = np.concatenate([[0], np.cumsum(lengths)[:-1]])
        return np.asarray(before[self.records] + self.moments // block, dtype=np.int64)

    def _near(self, part: NDArray[np.bool_], gap: int) -> NDArray[np.bool_]:
        """Mark the frames within ``gap`` moments of a part, in the same record."""
        places = self.records * (self.moments.max() + 2 * gap + 2) + self.moments
        near = np.zeros(len(self), dtype=bool)
        for shift in range(-gap, gap + 1):
            near |= np.isin(places + shift, places[part])
        return near
