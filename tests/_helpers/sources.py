"""Small sets in the format of MNIST, and the real one where it lies beside the repository."""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path

import numpy as np
import pytest

from paretomtl.problems._multi_mnist.idx import SOURCES, Source

REAL = Path(__file__).parents[3] / "shared" / "data"


def real_folder() -> Path:
    """The published files of MNIST and Fashion-MNIST."""
    missing = [source.folder for source in SOURCES.values() if not (REAL / source.folder).is_dir()]
    if missing:
        pytest.skip(f"needs the published files of {', '.join(missing)} in ../shared/data beside the repository")
    return REAL


def idx_bytes(array: np.ndarray, magic: int | None = None) -> bytes:
    """An array of bytes as an idx file, gzipped."""
    header = [(0x800 + array.ndim) if magic is None else magic, *array.shape]
    return gzip.compress(np.array(header, dtype=">u4").tobytes() + array.astype(np.uint8).tobytes(), mtime=0)


def small_source(key: str, folder: Path, *, train: int = 60, test: int = 12, mirrors: tuple[str, ...] = ()) -> Source:
    """A set like the one of this name, with few images of random bytes, written into a folder."""
    known = SOURCES[key]
    random = np.random.default_rng(len(key))
    folder.mkdir(parents=True, exist_ok=True)
    md5 = {}
    for split, size in (("train", train), ("t10k", test)):
        arrays = {
            f"{split}-images-idx3-ubyte.gz": random.integers(0, 256, (size, 28, 28)),
            f"{split}-labels-idx1-ubyte.gz": np.arange(size) % 10,
        }
        for file, array in arrays.items():
            (folder / file).write_bytes(idx_bytes(array))
            md5[file] = hashlib.md5((folder / file).read_bytes()).hexdigest()
    return Source(known.name, known.folder, md5, mirrors, known.classes, {"train": train, "t10k": test})


def use_small_sources(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Small sets in place of the published ones, in the folders that those lie in."""
    for key in list(SOURCES):
        monkeypatch.setitem(SOURCES, key, small_source(key, folder / key))
    return folder
