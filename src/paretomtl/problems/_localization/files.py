"""Frames with poses on disk: one file of images, positions and quaternions."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from paretomtl.problems._data.array_file import ArraySpec, read_arrays, write_arrays
from paretomtl.problems._data.cache import data_folder, load_or_make
from paretomtl.problems._data.images import Size, check_size
from paretomtl.problems._localization.apolloscape import LAYOUTS, layout_of, read_apolloscape
from paretomtl.problems._localization.frames import NEITHER, Frames
from paretomtl.problems._localization.seven_scenes import is_seven_scenes, read_seven_scenes
from paretomtl.problems.data_set import PrepareOptions
from paretomtl.problems.registry import prepare_command

VERSION = 1
"""The version of the file."""

SIZE = PrepareOptions.size


def prepare_localization(
    source: str | Path | None,
    cache: str | Path | None = None,
    size: Size = SIZE,
    log: Callable[[str], None] = lambda text: None,
    skip_broken: bool = False,
) -> Frames:
    """Read frames with their poses and store them in one file; later calls load the stored file.

    Two layouts are supported. The layout of ApolloScape is for a road such as the Zpark sample: images in
    ``image/RECORD/CAMERA/NAME.jpg``, poses in ``pose/RECORD/CAMERA.txt`` or ``pose/RECORD/CAMERA/pose.txt``, or the
    same under ``ColorImage`` and ``Pose``. A record may be several folders deep. A line of poses is ``NAME
    roll,pitch,yaw,x,y,z`` in radians and metres, or the 16 numbers of a matrix and ``NAME``. The folder ``split`` or
    ``trainval_split`` may list the split in ``train.txt`` and ``val.txt``, with a line ``RECORD/CAMERA/NAME`` for each
    image.

    The layout of 7-Scenes has a picture ``frame-000000.color.png`` and a pose ``frame-000000.pose.txt``, the 16 numbers
    of a matrix, for each frame, directly or in ``seq-01`` and so on. ``TrainSplit.txt`` and ``TestSplit.txt`` may list
    sequences, such as ``sequence1``.

    Args:
        source: the folder. None reads the prepared file, which must exist.
        cache: the folder of the prepared file; ``$PARETOMTL_DATA`` or the user's cache folder if left out.
        size: height and width that images are resized to, by Pillow (extra ``images``), whatever their proportions.
        log: called with a line about each step.
        skip_broken: leave out images that do not decode, and list them in ``log``; else they are an error.
    """
    path = localization_file(cache, size)

    def make() -> Frames:
        began = time.perf_counter()
        frames = _read(source, size, skip_broken, log)
        write_arrays(path, frames.arrays, version=VERSION, name="localization", height=size[0], width=size[1])
        log(f"Read {len(frames):,} frames in {time.perf_counter() - began:.1f} s: {path}")
        return frames

    return load_or_make(path, lambda: load_localization(cache, size), make, log, ", delete it to read other files")


def _read(source: str | Path | None, size: Size, skip_broken: bool, log: Callable[[str], None]) -> Frames:
    """Read the frames of a folder in either layout."""
    if source is None:
        raise ValueError(
            "'source' (--from) must be a folder with frames and poses. Got None, and no prepared file exists."
        )
    folder = Path(source).expanduser()
    if not folder.is_dir():
        raise FileNotFoundError(f"'source' (--from) must be a folder with frames and poses. There is no '{folder}'.")
    if is_seven_scenes(folder):
        return read_seven_scenes(folder, size, skip_broken, log)
    if layout_of(folder) is not None:
        return read_apolloscape(folder, size, skip_broken, log)
    pairs = " or ".join(f"'{images}' and '{poses}'" for images, poses in LAYOUTS)
    raise FileNotFoundError(
        f"'{folder}' must hold the folders {pairs}, or frames of 7-Scenes with their poses. It has none of these."
    )


def load_localization(cache: str | Path | None = None, size: Size = SIZE) -> Frames:
    """Load the frames that :func:`prepare_localization` stored; a missing, damaged or different file is an error."""
    path = localization_file(cache, size)
    resized = None if tuple(size) == SIZE else f"{size[0]}x{size[1]}"
    command = prepare_command("localization", cache, size=resized)
    header: dict[str, str | int] = {"version": VERSION, "name": "localization", "height": size[0], "width": size[1]}
    frames = Frames(**read_arrays(path, command, {"images": ArraySpec("u1", ("n", 3, *size)), **_SCHEMA}, **header))
    if len(np.unique(frames.records)) != frames.records.max() + 1:
        raise ValueError(f"'{path}' must have frames of every record. Make it again with: {command}")
    return frames


_SCHEMA = {
    "positions": ArraySpec("f8", ("n", 3)),
    "quaternions": ArraySpec("f8", ("n", 4)),
    "records": ArraySpec("i8", ("n",), 2**31),
    "moments": ArraySpec("i8", ("n",), 2**31),
    "listed": ArraySpec("u1", ("n",), NEITHER),
    "names": ArraySpec("U", ("n",)),
}


def localization_file(cache: str | Path | None, size: Size) -> Path:
    """The file of the frames."""
    check_size("size", size)
    return data_folder(cache) / f"localization-{size[0]}x{size[1]}.npz"
