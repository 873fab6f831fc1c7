"""The files of MNIST and of Fashion-MNIST: their names and published checksums, and how to read them."""

from __future__ import annotations

import gzip
import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from paretomtl.problems._data.download import Published

Bytes = NDArray[np.uint8]

CLASSES = 10
_MAGIC = {1: 0x00000801, 3: 0x00000803}  # unsigned bytes of one dimension, of three


@dataclass(frozen=True)
class Source(Published):
    """A published set of images in the four gzipped files of MNIST's format.

    Attributes:
        classes: the short names of the labels.
        sizes: the number of images of each split, by the prefix of its files.
    """

    classes: tuple[str, ...]
    sizes: Mapping[str, int]


_SIZES = {"train": 60_000, "t10k": 10_000}

SOURCES = {
    "mnist": Source(
        name="MNIST",
        folder="mnist",
        md5={
            "train-images-idx3-ubyte.gz": "f68b3c2dcbeaaa9fbdd348bbdeb94873",
            "train-labels-idx1-ubyte.gz": "d53e105ee54ea40749a09fcbcd1e9432",
            "t10k-images-idx3-ubyte.gz": "9fb629c4189551a2d022fa330f9573f3",
            "t10k-labels-idx1-ubyte.gz": "ec29112dd5afa0611ce80d1b7f02629c",
        },
        mirrors=(
            "https://ossci-datasets.s3.amazonaws.com/mnist/",
            "https://storage.googleapis.com/cvdf-datasets/mnist/",
            "http://yann.lecun.com/exdb/mnist/",
        ),
        classes=tuple(map(str, range(CLASSES))),
        sizes=_SIZES,
    ),
    "fashion-mnist": Source(
        name="Fashion-MNIST",
        folder="fashion-mnist",
        md5={
            "train-images-idx3-ubyte.gz": "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
            "train-labels-idx1-ubyte.gz": "25c81989df183df01b3e8a0aad5dffbe",
            "t10k-images-idx3-ubyte.gz": "bef4ecab320f06d8554ea6380940ec79",
            "t10k-labels-idx1-ubyte.gz": "bb300cfdad3c16e7a12a480ee83cd310",
        },
        mirrors=(
            "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
            "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
        ),
        classes=("T-shirt", "trousers", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "boot"),
        sizes=_SIZES,
    ),
}
"""The published sets from which canvases are made."""


@dataclass(frozen=True)
class Images:
    """Images ``[n, 28, 28]`` and their labels ``[n]``, unsigned bytes."""

    images: Bytes
    labels: Bytes

    def __getitem__(self, part: slice) -> Images:
        return Images(self.images[part], self.labels[part])

    def __len__(self) -> int:
        return len(self.labels)


def read_source(source: Source, folder: Path) -> dict[str, Images]:
    """Read all splits of a set, from files with the published checksums."""
    source_folder = source.folder_in(folder)
    for file, md5 in source.md5.items():
        check_file(source_folder / file, md5, source)
    return {
        split: Images(
            read_idx(source_folder / f"{split}-images-idx3-ubyte.gz", (size, 28, 28)),
            _checked_labels(source_folder / f"{split}-labels-idx1-ubyte.gz", size),
        )
        for split, size in source.sizes.items()
    }


def check_file(path: Path, md5: str, source: Source) -> None:
    """Raise an error if a file is missing or is not the published one."""
    if not path.is_file():
        raise FileNotFoundError(
            f"'source' (--from) must be a folder with the files of {source.name}: {', '.join(source.md5)}, directly or "
            f"in '{source.folder}'. There is no '{path}'."
        )
    actual = source.md5_of(path)
    if actual == md5:
        return
    other = next((each.name for each in SOURCES.values() if actual in each.md5.values()), None)
    hint = f"which is {other}'s" if other else f"in {path.stat().st_size:,} bytes: it is truncated or was altered"
    raise ValueError(f"'{path}' must be the published file of {source.name}, md5 {md5}. Got md5 {actual}, {hint}.")


def read_idx(path: Path, shape: tuple[int, ...]) -> Bytes:
    """Read the unsigned bytes of a gzipped idx file; a ValueError names a file that does not have this shape.

    At most one byte more than the shape needs is unpacked.
    """
    size = 4 * (len(shape) + 1) + math.prod(shape)
    try:
        with gzip.open(path) as file:
            content = file.read(size + 1)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"'{path}' must be a whole gzip file. It is damaged: {error}.") from None
    rank = len(shape)
    header = np.frombuffer(content[: 4 * (rank + 1)], dtype=">u4") if len(content) >= 4 * (rank + 1) else None
    magic = content[:4].hex() or "nothing"
    if header is None or int(header[0]) != _MAGIC[rank]:
        raise ValueError(f"'{path}' must begin with the magic number {_MAGIC[rank]:08x}. Got {magic} instead.")
    sizes = tuple(map(int, header[1:]))
    if sizes != shape:
        raise ValueError(f"'{path}' must have the shape {list(shape)}. Got {list(sizes)} instead.")
    values = np.frombuffer(content, dtype=np.uint8, offset=4 * (rank + 1))
    if len(values) != math.prod(shape):
        size_read = "more" if len(content) > size else f"{len(values):,}"
        raise ValueError(f"'{path}' must hold {math.prod(shape):,} bytes after its header. Got {size_read} instead.")
    return values.reshape(shape)


def _checked_labels(path: Path, size: int) -> Bytes:
    labels = read_idx(path, (size,))
    if labels.max(initial=0) >= CLASSES:
        raise ValueError(f"'{path}' must hold labels from 0 to {CLASSES - 1}. Got {labels.max()} instead.")
    return labels
