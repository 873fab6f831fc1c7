"""Convert repacked copies of the data sets to the layouts in which the sets are published.

    python experiments/dev_data/convert.py --from COPIES --out FOLDER
    paretomtl data prepare census --from FOLDER
    paretomtl data prepare utkface --from FOLDER/utkface
    paretomtl data prepare localization --from FOLDER/7scenes-redkitchen

The copies are small: text as .xz, and pictures as tiles on large JPEG sheets. Data are not published in this form, so
the library does not read it. Tiles become PNG files, which keep every pixel, under the names of the published files.
Such a name may end with .jpg, because pictures are recognized by their content. MNIST and Fashion-MNIST are copies of
the published files and need no conversion.

It needs numpy and Pillow. Sets that the folder does not have are left out.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import lzma
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

Tile = np.ndarray[Any, np.dtype[np.uint8]]

CENSUS, FACES, FRAMES = "census-income-kdd", "utkface", "7scenes-redkitchen"


def convert_census(source: Path, out: Path) -> None:
    """Convert text compressed as .xz to .gz."""
    for packed in sorted(source.glob("census-income.*.xz")):
        target = out / packed.with_suffix(".gz").name
        with lzma.open(packed) as text, gzip.GzipFile(target, "wb", compresslevel=1, mtime=0) as file:
            shutil.copyfileobj(text, file, 1 << 20)


def convert_faces(source: Path, out: Path) -> None:
    """Convert tiles of 48 by 48 to a picture for each row of ``labels.csv``, under the name of the published file."""
    by_sheet: dict[int, list[dict[str, str]]] = {}
    for row in _read_table(source / "labels.csv"):
        by_sheet.setdefault(int(row["sheet"]), []).append(row)
    for sheet, rows in by_sheet.items():
        tiles = read_tiles(source / f"sheet_{sheet:02d}.jpg", grid=(25, 40), tile=(48, 48))
        for row in rows:
            _save(tiles[int(row["tile"])], out / Path(row["file"]).name)


def convert_frames(source: Path, out: Path) -> None:
    """Convert tiles of 64 by 48 and ``poses.csv`` to the pictures and matrices of 7-Scenes; frame i is tile i."""
    sheets = [read_tiles(path, grid=(10, 25), tile=(48, 64)) for path in sorted(source.glob("sheet_?.jpg"))]
    tiles = np.concatenate(sheets)
    for row in _read_table(source / "poses.csv"):
        name = f"frame-{int(row['frame']):06d}"
        _save(tiles[int(row["frame"])], out / f"{name}.color.png")
        lines = [" ".join(row[f"m{i}{j}"] for j in range(4)) for i in range(3)]
        (out / f"{name}.pose.txt").write_text("\n".join([*lines, "0 0 0 1"]) + "\n")


CONVERTERS: dict[str, Callable[[Path, Path], None]] = {
    CENSUS: convert_census,
    FACES: convert_faces,
    FRAMES: convert_frames,
}
"""The converter of each folder."""


def read_tiles(path: Path, grid: tuple[int, int], tile: tuple[int, int]) -> Tile:
    """The tiles ``[rows * columns, height, width, 3]`` of a sheet, row by row."""
    from PIL import Image

    (rows, columns), (height, width) = grid, tile
    with Image.open(path) as sheet:
        pixels = np.asarray(sheet.convert("RGB"))
    if pixels.shape != (rows * height, columns * width, 3):
        raise ValueError(f"'{path}' must have {columns} by {rows} tiles of {width} by {height}. Got {pixels.shape}.")
    return pixels.reshape(rows, height, columns, width, 3).swapaxes(1, 2).reshape(-1, height, width, 3)


def _read_table(path: Path) -> Iterator[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        yield from csv.DictReader(file)


def _save(tile: Tile, path: Path) -> None:
    from PIL import Image

    if path.exists():
        raise FileExistsError(f"'{path}' is there already: each picture must have one row, in an empty folder.")
    Image.fromarray(tile).save(path, format="PNG", compress_level=1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--from", dest="source", type=Path, required=True, help="folder with a subfolder for each copy")
    parser.add_argument("--out", type=Path, required=True, help="folder for the published layouts")
    parser.add_argument("--only", choices=list(CONVERTERS), help="convert only this folder")
    arguments = parser.parse_args()
    names = [arguments.only] if arguments.only else [name for name in CONVERTERS if (arguments.source / name).is_dir()]
    for name in names:
        out = arguments.out / name
        out.mkdir(parents=True, exist_ok=True)
        CONVERTERS[name](arguments.source / name, out)
        print(f"{name}: {sum(1 for _ in out.iterdir()):,} files in {out}")


if __name__ == "__main__":
    main()
