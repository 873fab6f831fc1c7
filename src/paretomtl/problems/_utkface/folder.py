"""Faces with their gender, race and age, from the folder in which UTKFace is published.

The pictures may not be redistributed, so they are read once from the user's folder. A fault in the folder is an error
that names the file; no picture is skipped silently.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paretomtl.problems._data.array_file import checksum
from paretomtl.problems._data.images import BrokenPictureError, Pixels, listing, pictures_in, read_picture

GENDERS = ("male", "female")
RACES = ("White", "Black", "Asian", "Indian", "Others")
OLDEST = 120

_NAME = re.compile(r"(\d+)_(\d+)_(\d+)_\d{17,18} ?\.(jpg|jpeg|png)(\.chip\.jpg)?", re.IGNORECASE)


@dataclass(frozen=True)
class Faces:
    """Faces in the order of their names.

    Attributes:
        images: ``[n, 3, side, side]`` in unsigned bytes.
        labels: ``[n, 3]`` in unsigned bytes: gender (0 male, 1 female), race (0 White, 1 Black, 2 Asian, 3 Indian, 4
            Others) and age in years.
        names: ``[n]``, the names of the published files.
    """

    images: Pixels
    labels: Pixels
    names: NDArray[Any]

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays by name, as they are stored."""
        return {"images": self.images, "labels": self.labels, "names": self.names}

    def checksum(self) -> str:
        """The SHA-256 of the arrays. None is published: decoders of JPEG differ in the last bit."""
        return checksum(self.arrays)


def labels_of(name: str) -> tuple[int, int, int]:
    """Parse gender, race and age from the name of a published file; an error says what is wrong with it.

    Example:
        >>> labels_of("26_0_1_20170116174525125.jpg.chip.jpg")
        (0, 1, 26)
    """
    match = _NAME.fullmatch(name)
    if match is None:
        raise ValueError("its name must be age_gender_race_date.jpg, with a date of 17 digits")
    age, gender, race = map(int, match.group(1, 2, 3))
    for what, value, high in (("age", age, OLDEST), ("gender", gender, 1), ("race", race, 4)):
        if value > high:
            raise ValueError(f"the {what} in its name must be from 0 to {high}, got {value}")
    return gender, race, age


def read_faces(folder: Path, side: int, skip_broken: bool, log: Callable[[str], None]) -> Faces:
    """Read the faces of the published folder: a picture for each face, with its labels in its name."""
    if not folder.is_dir():
        raise FileNotFoundError(
            f"'source' (--from) must be a folder with the faces of UTKFace. There is no '{folder}'."
        )
    paths = pictures_in(folder)
    if not paths:
        raise FileNotFoundError(
            f"'{folder}' must hold the pictures of UTKFace, such as 26_0_1_20170116174525125.jpg.chip.jpg. There is "
            "no picture in it."
        )
    images, labels, names, bad = [], [], [], []
    for path in paths:
        try:
            face_labels = labels_of(path.name)
            images.append(read_picture(path, (side, side)))
        except BrokenPictureError as error:
            bad.append(str(error))
        except ValueError as error:
            bad.append(f"'{path}': {error}.")
        else:
            labels.append(face_labels)
            names.append(path.name)
    if bad and not skip_broken:
        raise ValueError(
            f"'{folder}' must hold pictures that decode, with their labels in their names. {len(bad):,} of "
            f"{len(paths):,} are not like that; skip_broken=True (--skip-broken) leaves them out:{listing(bad)}"
        )
    if not names:
        raise ValueError(f"'{folder}' must hold a picture that can be used. None of {len(paths):,} can:{listing(bad)}")
    if bad:
        log(f"Left out {len(bad):,} of {len(paths):,} pictures:{listing(bad)}")
    return _by_name(np.stack(images), labels, names)


def _by_name(images: Pixels, labels: Sequence[tuple[int, int, int]], names: Sequence[str]) -> Faces:
    """Faces in the order of their names, so that the split does not depend on the file system."""
    order = sorted(range(len(names)), key=names.__getitem__)
    return Faces(images[order], np.array(labels, dtype=np.uint8)[order], np.array(names)[order])
