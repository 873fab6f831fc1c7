"""Pictures: decoded by Pillow, which is imported nowhere else, and sheets that hold many small ones as tiles."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from paretomtl._support.checks import check_count
from paretomtl._support.optional import require

Size: TypeAlias = tuple[int, int]
"""Height and width, as in the shape of an array."""

Pixels: TypeAlias = NDArray[np.uint8]

SUFFIXES = (".jpg", ".jpeg", ".png")


_FORMATS = ("JPEG", "PNG")  # Pillow knows dozens, some of which start other programs
_LARGEST = 40_000_000  # pixels; each takes 4 bytes, and as many again in red, green and blue or in a progressive JPEG


class BrokenPictureError(ValueError):
    """A file that does not decode, by its own fault; the message names it."""


def check_size(name: str, size: Size) -> None:
    """Refuse what is not a height and a width."""
    if not isinstance(size, (tuple, list)) or len(size) != 2:
        raise ValueError(f"'{name}' must be (height, width). Got {size!r} instead.")
    for part in size:
        check_count(name, part)


def pictures_in(folder: Path) -> list[Path]:
    """The pictures that lie in a folder itself, by name."""
    return sorted(path for path in folder.iterdir() if path.suffix.lower() in SUFFIXES and path.is_file())


def read_picture(path: Path, size: Size) -> Pixels:
    """A picture as ``[3, height, width]``, squeezed into a size with antialiasing.

    A :class:`BrokenPictureError` for what is neither JPEG nor PNG, does not decode, or is larger than any photograph.

    JPEG is decoded at a half, a quarter or an eighth where that still leaves twice the size: a photograph of five
    million pixels is read several times faster, and the rest of the way is Lanczos's.
    """
    height, width = size
    return _channels_first(_fit(_decoded(path, at_least=(2 * width, 2 * height)), size))


def read_sheet(path: Path, grid: Size, tile: Size) -> Pixels:
    """The tiles ``[rows * columns, 3, height, width]`` of a sheet, row by row.

    Args:
        path: the sheet.
        grid: how many rows and columns it has.
        tile: the height and width of each.
    """
    (rows, columns), (height, width) = grid, tile
    whole = columns * width, rows * height

    def check(found: tuple[int, int]) -> None:
        if found != whole:
            raise ValueError(
                f"'{path}' must be a sheet of {columns} by {rows} tiles of {width} by {height} pixels, so "
                f"{whole[0]} by {whole[1]} in all. Got {found[0]} by {found[1]} instead."
            )

    sheet = _channels_first(_decoded(path, check=check))
    parted = sheet.reshape(3, rows, height, columns, width)
    return np.ascontiguousarray(parted.transpose(1, 3, 0, 2, 4).reshape(-1, 3, height, width))


def fit_tiles(tiles: Pixels, size: Size) -> Pixels:
    """Tiles ``[n, 3, ...]`` in another size; as they are where it is theirs."""
    if tiles.shape[2:] == tuple(size):
        return tiles
    image = require("PIL.Image", "images")
    return np.stack([_channels_first(_fit(image.fromarray(tile.transpose(1, 2, 0)), size)) for tile in tiles])


def listing(lines: Iterable[str]) -> str:
    """Lines under a message, indented."""
    return "".join(f"\n  {line}" for line in lines)


def _decoded(
    path: Path, at_least: tuple[int, int] | None = None, check: Callable[[tuple[int, int]], None] | None = None
) -> Any:
    """A picture of Pillow's in red, green and blue.

    Args:
        path: the file.
        at_least: decode JPEG at a fraction that leaves this width and height.
        check: is called with width and height before anything is decoded.
    """
    image = require("PIL.Image", "images")
    content = io.BytesIO(path.read_bytes())  # of which no more is read than there is, whatever lengths are declared
    try:
        file = image.open(content, formats=_FORMATS)
    except require("PIL", "images").UnidentifiedImageError:
        raise _broken(path, f"it is neither {' nor '.join(_FORMATS)}") from None
    except Exception as error:  # decoders raise whatever the bytes lead them to
        raise _broken(path, error) from None
    if check is not None:
        check(file.size)
    try:
        if math.prod(file.size) > _LARGEST:
            raise ValueError(f"it has {math.prod(file.size):,} pixels, and {_LARGEST:,} are the most")
        if at_least is not None:
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
