"""Small sets in the format of MNIST, and real data, if they lie next to the repository."""

from __future__ import annotations

import functools
import gzip
import hashlib
import importlib.util
import tempfile
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from _helpers.places import ROOT
from paretomtl.problems._multi_mnist.idx import SOURCES, Source

REAL = Path(__file__).parents[3] / "shared" / "data"


def real_folder() -> Path:
    """The published files of MNIST and Fashion-MNIST."""
    missing = [source.folder for source in SOURCES.values() if not (REAL / source.folder).is_dir()]
    if missing:
        pytest.skip(f"needs the published files of {', '.join(missing)} in ../shared/data beside the repository")
    return REAL


@functools.cache
def converter() -> ModuleType:
    """The program that turns repacked copies of data into the published layouts."""
    found = importlib.util.spec_from_file_location("convert", ROOT / "experiments" / "dev_data" / "convert.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


@functools.cache
def _converted_here() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="paretomtl-converted-")  # lives as long as this process


@functools.cache
def converted(name: str) -> Path:
    """A data set in its published layout, from the copy next to the repository; converted once per process."""
    if not (REAL / name).is_dir():
        pytest.skip(f"needs the files of {name} in ../shared/data beside the repository")
    out = Path(_converted_here().name) / name
    out.mkdir()
    converter().CONVERTERS[name](REAL / name, out)
    return out


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
