"""UTKFace on disk: one file of images, labels and names."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from paretomtl._support.argument_checks import check_count
from paretomtl.problems._data.array_file import ArraySpec, read_arrays, write_arrays
from paretomtl.problems._data.cache import data_folder, load_or_make
from paretomtl.problems._utkface.folder import GENDERS, OLDEST, RACES, Faces, read_faces
from paretomtl.problems.data_set import PrepareOptions
from paretomtl.problems.registry import prepare_command

VERSION = 1
"""The version of the file."""

SIDE = PrepareOptions.side


def prepare_utkface(
    source: str | Path | None,
    cache: str | Path | None = None,
    side: int = SIDE,
    skip_broken: bool = False,
    log: Callable[[str], None] = lambda text: None,
) -> Faces:
    """Read the faces of UTKFace and store them in one file; later calls load the stored file.

    The published folder has a picture for each face, named ``age_gender_race_date.jpg``, such as
    ``26_0_1_20170116174525125.jpg.chip.jpg``.

    Args:
        source: the folder. None reads the prepared file, which must exist.
        cache: the folder of the prepared file; ``$PARETOMTL_DATA`` or the user's cache folder if left out.
        side: the side in pixels that images are resized to, by Pillow (extra ``images``).
        skip_broken: leave out pictures that do not decode, or whose name does not contain the labels (the published
            folder has four), and list them in ``log``; else they are an error.
        log: called with a line about each step.
    """
    path = utkface_file(cache, side)

    def make() -> Faces:
        if source is None:
            raise ValueError(
                "'source' (--from) must be a folder with the faces of UTKFace. Got None, and no prepared file exists."
            )
        began = time.perf_counter()
        faces = read_faces(Path(source).expanduser(), side, skip_broken, log)
        write_arrays(path, faces.arrays, version=VERSION, name="utkface", side=side)
        log(f"Read {len(faces):,} faces in {time.perf_counter() - began:.1f} s: {path}")
        return faces

    return load_or_make(path, lambda: load_utkface(cache, side), make, log, ", delete it to read other files")


def load_utkface(cache: str | Path | None = None, side: int = SIDE) -> Faces:
    """Load the faces that :func:`prepare_utkface` stored; a missing, damaged or different file is an error."""
    command = prepare_command("utkface", cache, side=None if side == SIDE else side)
    schema = {
        "images": ArraySpec("u1", ("n", 3, side, side)),
        "labels": ArraySpec("u1", ("n", 3), (len(GENDERS) - 1, len(RACES) - 1, OLDEST)),
        "names": ArraySpec("U", ("n",)),
    }
    return Faces(**read_arrays(utkface_file(cache, side), command, schema, version=VERSION, name="utkface", side=side))


def utkface_file(cache: str | Path | None, side: int) -> Path:
    """The file of the faces."""
    side = check_count("side", side)
    return data_folder(cache) / f"utkface-{side}.npz"
