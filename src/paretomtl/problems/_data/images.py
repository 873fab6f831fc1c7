"""Pictures: JPEG and PNG, decoded and shrunk by Pillow, which is imported nowhere else."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from paretomtl._support.argument_checks import check_count, quote
from paretomtl._support.imports.optional_packages import require

Size: TypeAlias = tuple[int, int]
"""Height and width, as in the shape of an array."""

Pixels: TypeAlias = NDArray[np.uint8]

SUFFIXES = (".jpg", ".jpeg", ".png")
_FORMATS = ("JPEG", "PNG")  # Pillow knows dozens, some of which start other programs
_LARGEST = 40_000_000  # pixels, of 4 bytes each; conversion to RGB and progressive JPEG take as much again


class BrokenPictureError(ValueError):
    """A picture file that is damaged or unsupported; the message names it."""


def check_size(name: str, size: Size) -> None:
    """Raise an error if a size is not a height and a width."""
    if not isinstance(size, (tuple, list)) or len(size) != 2:
        raise ValueError(f"'{name}' must be (height, width). Got {quote(size)} instead.")
    for part in size:
        check_count(name, part)


def pictures_in(folder: Path) -> list[Path]:
    """The pictures directly in a folder, sorted by name."""
    return sorted(path for path in folder.iterdir() if path.suffix.lower() in SUFFIXES and path.is_file())


def read_picture(path: Path, size: Size) -> Pixels:
    """Read a picture as ``[3, height, width]``, resized with antialiasing.

    Raises :class:`BrokenPictureError` for a file that is neither JPEG nor PNG, does not decode, or is larger than any
    photograph.

    JPEG is decoded at a half, a quarter or an eighth if that still leaves twice the size, and then resized with a
    Lanczos filter. This makes a photograph of five million pixels several times faster to read.
    """
    height, width = size
    return _channels_first(_fit(_decoded(path, at_least=(2 * width, 2 * height)), size))


def read_pictures(
    paths: Sequence[Path], size: Size, folder: Path, skip_broken: bool, log: Callable[[str], None]
) -> tuple[Pixels, list[int]]:
    """Read pictures as ``[n, 3, height, width]``, and return the indices of those that decode.

    Args:
        paths: the files.
        size: height and width that pictures are resized to.
        folder: the folder of the files, for messages.
        skip_broken: leave out pictures that do not decode, and list them in the log; else they are an error.
        log: called with the list.
    """
    pixels, whole, broken = [], [], []
    for i, path in enumerate(paths):
        try:
            pixels.append(read_picture(path, size))
        except BrokenPictureError as error:
            broken.append(str(error))
        else:
            whole.append(i)
    share = f"{len(broken):,} of {len(paths):,}"
    if broken and not (skip_broken and whole):
        way = "; skip_broken=True (--skip-broken) leaves them out" if whole else ""
        raise ValueError(f"'{folder}' must hold pictures that decode. {share} do not{way}:{listing(broken)}")
    if broken:
        log(f"Left out {share} pictures:{listing(broken)}")
    return np.stack(pixels), whole


def listing(lines: Iterable[str]) -> str:
    """Indent lines under a message."""
    return "".join(f"\n  {line}" for line in lines)


def _decoded(path: Path, at_least: tuple[int, int]) -> Any:
    """Open a picture with Pillow as RGB; JPEG is decoded at a fraction that leaves at least this width and height."""
    image = require("PIL.Image", "images")
    content = io.BytesIO(path.read_bytes())  # in memory, so that declared lengths cannot make Pillow read past the end
    try:
        file = image.open(content, formats=_FORMATS)
    except require("PIL", "images").UnidentifiedImageError:
        raise _broken(path, f"it is neither {' nor '.join(_FORMATS)}") from None
    except Exception as error:  # decoders raise whatever the bytes lead them to
        raise _broken(path, error) from None
    try:
        if math.prod(file.size) > _LARGEST:
            raise ValueError(f"it has {math.prod(file.size):,} pixels, and {_LARGEST:,} are the most")
        file.draft(None, at_least)
        return file.convert("RGB")
    except Exception as error:
        raise _broken(path, error) from None


def _broken(path: Path, error: Exception | str) -> BrokenPictureError:
    return BrokenPictureError(f"'{path}' must be a whole picture. It does not decode: {error}.")


def _fit(picture: Any, size: Size) -> Any:
    height, width = size
    resampling = require("PIL.Image", "images").Resampling
    return picture if picture.size == (width, height) else picture.resize((width, height), resampling.LANCZOS)


def _channels_first(picture: Any) -> Pixels:
    return np.ascontiguousarray(np.asarray(picture, dtype=np.uint8).transpose(2, 0, 1))
