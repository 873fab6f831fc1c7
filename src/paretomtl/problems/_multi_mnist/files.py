"""Canvases on disk: one file for each set and seed, written atomically, with a published checksum for seed 0."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from paretomtl._support.argument_checks import check_not_negative, quote
from paretomtl.problems._data.array_file import ArraySpec, read_arrays, write_arrays
from paretomtl.problems._data.cache import data_folder, load_or_make
from paretomtl.problems._data.download import download
from paretomtl.problems._multi_mnist.canvases import CANVAS, MIXES, Canvases, generate_canvases
from paretomtl.problems._multi_mnist.idx import CLASSES, SOURCES, read_source
from paretomtl.problems.registry import prepare_command

VERSION = 1
"""The version of the recipe and of the file; another version makes other canvases."""

PUBLISHED = {
    "multi-mnist": "7eae89c8c92440e5043126a2f2b494ed62b751813c132d79f563308305875b4f",
    "multi-fashion": "b178d9ef5406a33ed44faf7b198d9ee828cf259d081f44e1003f5653e2a4989a",
    "multi-fashion-mnist": "bc65adea83aac01c27c786b8ef4c6a27890f0c4ea9a17db407d67c430de00318",
    "multi-mnist-3": "621e85efad1d3a8566c2699e8fdbb0fee52f3e4223e1c0d27d2ee85a7bf2aded",
    "multi-fashion-3": "34109e763f938f06ac1ddb77282316ac5f061a299ec32bdd2ed2f628fa298819",
}
"""The SHA-256 of :meth:`paretomtl.problems.Canvases.checksum` for seed 0."""


def canvases_file(name: str, cache: str | Path | None, seed: int) -> Path:
    """The file of a set of canvases."""
    if name not in MIXES:
        raise ValueError(f"'name' must be one of {', '.join(MIXES)}. Got {quote(name)} instead.")
    seed = check_not_negative("seed", seed)
    if seed >= 2**32:
        raise ValueError(f"'seed' must be under 2**32. Got {seed} instead.")
    return data_folder(cache) / f"{name}-seed{seed}.npz"


def prepare_canvases(
    name: str,
    *,
    source: str | Path | None = None,
    cache: str | Path | None = None,
    seed: int = 0,
    log: Callable[[str], None] = lambda text: None,
) -> Canvases:
    """Make a set of canvases after the paper (section 6.1) and store it; later calls load the stored file.

    Args:
        name: ``"multi-mnist"``, ``"multi-fashion"`` or ``"multi-fashion-mnist"``, the paper's; or, with three images on
            a canvas, ``"multi-mnist-3"`` or ``"multi-fashion-3"``.
        source: a folder with the four published files of MNIST or of Fashion-MNIST, or with a subfolder for each,
            ``mnist`` and ``fashion-mnist``. None downloads them into ``cache``.
        cache: the folder of the prepared file; ``$PARETOMTL_DATA`` or the user's cache folder if left out.
        seed: the seed of all draws. The checksums of seed 0 are published.
        log: called with a line about each step.
    """
    path = canvases_file(name, cache, seed)

    def make() -> Canvases:
        read = {}
        for each in dict.fromkeys(MIXES[name]):
            known = SOURCES[each]
            if source is None:
                download(known, path.parent / known.folder, log=log)
            read[each] = read_source(known, path.parent if source is None else Path(source).expanduser())
        began = time.perf_counter()
        canvases = generate_canvases(name, seed, read)
        _check_published(canvases.name, seed, canvases.checksum(), "The canvases")
        write_arrays(path, canvases.arrays, version=VERSION, name=name, seed=seed)
        log(f"Made in {time.perf_counter() - began:.1f} s: {path}")
        return canvases

    return load_or_make(path, lambda: load_canvases(name, cache, seed), make, log)


def load_canvases(name: str, cache: str | Path | None = None, seed: int = 0) -> Canvases:
    """Load the canvases that :func:`prepare_canvases` stored; a missing, damaged or different file is an error."""
    path = canvases_file(name, cache, seed)
    command = prepare_command(name, cache, seed=seed or None)
    schema = {}
    for part, size in (("train", "n"), ("test", "t")):
        schema[f"{part}_images"] = ArraySpec("u1", (size, CANVAS, CANVAS))
        schema[f"{part}_labels"] = ArraySpec("u1", (size, len(MIXES[name])), CLASSES - 1)
    canvases = Canvases(name, seed, **read_arrays(path, command, schema, version=VERSION, name=name, seed=seed))
    _check_published(name, seed, canvases.checksum(), f"'{path}'")
    return canvases


def _check_published(name: str, seed: int, checksum: str, what: str) -> None:
    """Reject canvases of seed 0 whose checksum is not the published one."""
    if seed == 0 and checksum != PUBLISHED[name]:
        raise ValueError(
            f"{what} must have the published SHA-256 {PUBLISHED[name]} of {name}. Got {checksum} instead: download the "
            "files again, or take another seed for your own files."
        )
