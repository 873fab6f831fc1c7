"""Faces with their gender, race and age: the folder that UTKFace is published as, and sheets of small tiles."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paretomtl.problems._data.array_file import checksum
from paretomtl.problems._data.csv import read_table
from paretomtl.problems._data.images import BrokenPictureError, Pixels, fit_tiles, listing, pictures_in, read_picture
from paretomtl.problems._data.tiles import read_tiles

GENDERS = ("male", "female")
RACES = ("White", "Black", "Asian", "Indian", "Others")
OLDEST = 120

TILE, GRID = (48, 48), (25, 40)  # height and width; rows and columns
COLUMNS = ("sheet", "tile", "age", "gender", "race", "file")

_NAME = re.compile(r"(\d+)_(\d+)_(\d+)_\d{17,18} ?\.(jpg|jpeg|png)(\.chip\.jpg)?", re.IGNORECASE)


@dataclass(frozen=True)
class Faces:
    """Faces in the order of their names.

    Attributes:
        images: ``[n, 3, side, side]`` in unsigned bytes.
        labels: ``[n, 3]`` in unsigned bytes: gender (0 male, 1 female), race (0 White, 1 Black, 2 Asian, 3 Indian, 4
            Others) and age in years.
        names: ``[n]``, those of the published files.
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
    """Gender, race and age from the name of a published file; an error that says what is wrong with it.

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
    """The faces of a folder in either layout."""
    if not folder.is_dir():
        raise FileNotFoundError(
            f"'source' (--from) must be a folder with the faces of UTKFace. There is no '{folder}'."
        )
    if (folder / "labels.csv").is_file():
        return _read_sheets(folder, side)
    return _read_folder(folder, side, skip_broken, log)


def _read_folder(folder: Path, side: int, skip_broken: bool, log: Callable[[str], None]) -> Faces:
    """The published folder: a picture for each face, with its labels in its name."""
    paths = pictures_in(folder)
    if not paths:
        raise FileNotFoundError(
            f"'{folder}' must hold the pictures of UTKFace, such as 26_0_1_20170116174525125.jpg.chip.jpg, or sheets "
            "of them with labels.csv. There is no picture in it."
        )
    images, labels, names, bad = [], [], [], []
    for path in paths:
        try:
            found = labels_of(path.name)
            images.append(read_picture(path, (side, side)))
        except BrokenPictureError as error:
            bad.append(str(error))
        except ValueError as error:
            bad.append(f"'{path}': {error}.")
        else:
            labels.append(found)
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


def _read_sheets(folder: Path, side: int) -> Faces:
    """Sheets of 1,000 tiles each, with a table of labels."""
    table = folder / "labels.csv"
    labels: list[tuple[int, int, int]] = []
    names: list[str] = []
    places: dict[tuple[int, int], int] = {}
    seen: dict[str, str] = {}
    for row in read_table(table, COLUMNS):
        found = row.whole("gender", 0, 1), row.whole("race", 0, 4), row.whole("age", 0, OLDEST)
        place = row.whole("sheet", 0, 99), row.whole("tile", 0, GRID[0] * GRID[1] - 1)
        name = row.fields["file"]
        if place in places:
            raise ValueError(f"{row.place}: a tile must have one row. Sheet {place[0]}, tile {place[1]} has two.")
        if name in seen:
            raise ValueError(f"{row.place}: a file must have one row. {name!r} is in {seen[name]}, too.")
        try:
            told = labels_of(name)
        except ValueError as error:
            raise ValueError(
                f"{row.place}: 'file' must be the name of a published file. Got {name!r}: {error}."
            ) from None
        if told != found:
            raise ValueError(
                f"{row.place}: the labels must be those in the name of the file. Got {found} for {name!r}."
            )
        seen[name], places[place] = row.place, len(names)
        labels.append(found)
        names.append(name)
    tiles, order = read_tiles(folder, "sheet_{:02d}.jpg", GRID, TILE, places, table)
    return _by_name(fit_tiles(tiles, (side, side)), [labels[i] for i in order], [names[i] for i in order])


def _by_name(images: Pixels, labels: Sequence[tuple[int, int, int]], names: Sequence[str]) -> Faces:
    """Faces in the order of their names, so that the split does not depend on the layout."""
    order = sorted(range(len(names)), key=names.__getitem__)
    return Faces(images[order], np.array(labels, dtype=np.uint8)[order], np.array(names)[order])
