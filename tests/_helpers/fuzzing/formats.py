"""Every file format that this library reads: a valid example, its loader, and its mutations."""

from __future__ import annotations

import functools
import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from _helpers.census_files import some_records, text_of
from _helpers.fuzzing.format import Files, Format, made
from _helpers.fuzzing.mutations import mutate
from _helpers.fuzzing.packing import PACK, arrays_file, bomb, zip_bomb
from _helpers.fuzzing.stored import STORED
from _helpers.pictures import DATE, picture, some_frames, write_faces, write_picture, write_road, write_scene
from paretomtl.problems import Census, Faces, Frames
from paretomtl.problems._census.files import load_census
from paretomtl.problems._census.layout import CENSUS
from paretomtl.problems._census.text import read_records
from paretomtl.problems._data.array_file import write_arrays
from paretomtl.problems._data.images import read_picture
from paretomtl.problems._localization.apolloscape import read_apolloscape
from paretomtl.problems._localization.files import load_localization
from paretomtl.problems._localization.seven_scenes import read_seven_scenes
from paretomtl.problems._multi_mnist.canvases import Canvases
from paretomtl.problems._multi_mnist.files import load_canvases
from paretomtl.problems._multi_mnist.idx import read_idx
from paretomtl.problems._utkface.files import load_utkface
from paretomtl.problems._utkface.folder import read_faces


def _idx(name: str) -> Format:
    shape = (3, 4, 5)
    header = b"".join(n.to_bytes(4, "big") for n in (0x803, *shape))
    plain = header + bytes(range(60))

    def change(data: bytes, random: Random) -> bytes:
        return PACK[".gz"](mutate(plain, random))

    def load(folder: Path) -> None:
        assert read_idx(folder / "a.gz", shape).shape == shape

    bombs = (lambda: {"a.gz": bomb(".gz", b"\0")}, lambda: {"a.gz": PACK[".gz"](header) + bomb(".gz", b"\0")})
    return Format(name, {"a.gz": PACK[".gz"](plain)}, load, (("a.gz", change), ("a.gz", mutate)), 80, bombs)


def _census(suffix: str) -> Format:
    text = text_of(some_records(6, 0))
    path = f"census-income.data{suffix}"

    def change(data: bytes, random: Random) -> bytes:
        return PACK[suffix](mutate(text, random))

    def load(folder: Path) -> None:
        found = read_records(folder / path)
        count = len(found.codes)
        assert found.codes.shape == (count, 29)
        assert found.numbers.shape == (count, 9)
        assert found.labels.shape == (count, 3)
        assert bool(np.isfinite(found.numbers).all())
        assert [int(column.max()) < len(names) for column, names in zip(found.codes.T, found.categories, strict=True)]

    changes = ((path, change), *([(path, mutate)] if suffix else []))
    once = [functools.partial(lambda byte: {path: bomb(suffix, byte)}, byte) for byte in (b"\n", b"a", b"\0", b",")]
    return Format(f"census text{suffix}", {path: PACK[suffix](text)}, load, changes, 40, tuple(once))


def _published() -> Format:
    text = text_of(some_records(6, 0))
    path = "census-income.data.gz"

    def load(folder: Path) -> None:
        assert isinstance(CENSUS.md5_of(folder / path), str)

    files = {path: PACK[".gz"](text)}
    return Format("published gzip", files, load, ((path, mutate),), 10, (lambda: {path: bomb(".gz", b"\0")},))


def _lengths(found: Faces | Frames | Census | Canvases) -> None:
    """Check that all parts fit together."""
    if isinstance(found, Frames):
        assert {len(array) for array in found.arrays.values()} == {len(found)}
        assert found.positions.shape[1:] == (3,)
        assert found.quaternions.shape[1:] == (4,)
        assert found.images.dtype == np.uint8
        assert len(found.origin) == 3
    elif isinstance(found, Faces):
        assert {len(array) for array in found.arrays.values()} == {len(found)}
        assert found.labels.shape[1:] == (3,)
        assert found.images.dtype == np.uint8
    elif isinstance(found, Census):
        assert found.features(found.train_codes, found.train_numbers, found.train_numbers).ndim == 2
        assert len(found.feature_names) == 9 + len(found.categories)
        assert len(found.test_codes) == len(found.test_numbers) == len(found.test_labels)
    else:
        assert found.train_images.shape == (len(found.train_labels), 36, 36)
        assert found.test_labels.shape == (len(found.test_images), len(found.positions))


def _road() -> Format:
    files = made(lambda folder: write_road(folder, 2, ["Camera_1"]))
    images = [path for path in files if path.endswith(".jpg")]
    names = [path.removeprefix("image/") for path in images]
    files["split/train.txt"] = "\n".join(names[1:]).encode()
    files["split/val.txt"] = names[0].removesuffix(".jpg").encode() + b"\n"
    poses = [path for path in files if path.startswith("pose")]
    numbers = " ".join(map(str, np.eye(4).reshape(-1)))
    lines = files[poses[1]].decode().splitlines()
    files[poses[1]] = "\n".join(f"{numbers} {line.split()[0]}" for line in lines).encode()
    changes = (*[(path, mutate) for path in poses * 3], ("split/train.txt", mutate), ("split/val.txt", mutate))
    load = lambda folder: _lengths(read_apolloscape(folder, (6, 8)))  # noqa: E731
    return Format("poses, ApolloScape", files, load, (*changes, (images[0], mutate)), 60)


def _scene() -> Format:
    files = made(lambda folder: write_scene(folder / "seq-01", 2, (6, 8)))
    files |= {f"seq-02/{path.rsplit('/')[-1]}": data for path, data in files.items()}
    files |= {"TrainSplit.txt": b"sequence1\n", "TestSplit.txt": b"sequence2\n"}
    poses = [path for path in files if path.endswith(".pose.txt")]
    images = [path for path in files if path.endswith(".png")]
    changes = (*[(path, mutate) for path in poses * 2], ("TrainSplit.txt", mutate), ("TestSplit.txt", mutate))
    load = lambda folder: _lengths(read_seven_scenes(folder, (6, 8)))  # noqa: E731
    return Format("poses, 7-Scenes", files, load, (*changes, (images[0], mutate)), 60)


@dataclass(frozen=True)
class _Names(Format):
    """A folder of pictures, one of which has another name."""

    def draw(self, random: Random) -> Files:
        name = mutate(f"26_0_1_{DATE}.jpg".encode(), random)[:200].replace(b"/", b"_").replace(b"\0", b"0")
        end = random.choice((b"", b".jpg", b".png", b".jpg.chip.jpg"))
        text = (name + end).decode(errors="replace").encode()[:200].decode(errors="ignore")
        return {text: self.files[next(iter(self.files))]} if text not in ("", ".", "..") else {}


def _face_names() -> Format:
    files = made(lambda folder: write_faces(folder, [(26, 0, 1)], size=4))
    return _Names("faces, names", files, lambda f: _lengths(read_faces(f, 4, False, lambda text: None)), (), 60)


def _pictures(suffix: str) -> Format:
    from PIL import Image

    files = made(lambda folder: write_picture(folder / f"a{suffix}", picture(0)))

    def load(folder: Path) -> None:
        assert read_picture(folder / f"a{suffix}", (5, 4)).shape == (3, 5, 4)

    def flat(mode: str, side: int) -> Files:
        file = io.BytesIO()
        Image.new(mode, (side, side)).save(file, "png" if suffix == ".png" else "jpeg")
        return {f"a{suffix}": file.getvalue()}

    def other(kind: str) -> Files:
        file = io.BytesIO()
        Image.new("RGB", (8, 8)).save(file, kind)
        return {f"a{suffix}": file.getvalue()}

    once = [functools.partial(other, kind) for kind in ("gif", "bmp", "tiff", "eps", "ppm", "webp")]
    once += [functools.partial(flat, mode, 9000) for mode in (("L", "1") if suffix == ".png" else ("L",))]
    return Format(f"pictures, {suffix}", files, load, ((f"a{suffix}", mutate),), 60, tuple(once))


def _arrays(what: str, path: str, arrays: Mapping[str, Any], load: Callable[[Path], Any], **words: Any) -> Format:
    files = made(lambda folder: write_arrays(folder / path, arrays, version=1, **words))
    changes = ((path, arrays_file), (path, arrays_file), (path, mutate))
    return Format(f"prepared {what}", files, lambda f: _lengths(load(f)), changes, 35, (lambda: {path: zip_bomb()},))


def _prepared() -> list[Format]:
    random = np.random.default_rng(0)
    byte = functools.partial(random.integers, 0, 2, dtype=np.uint8)
    faces = Faces(byte((5, 3, 4, 4)), byte((5, 3)), np.array([f"{i}.jpg" for i in range(5)]))
    frames = some_frames([0] * 6, list(range(6)))
    parts = [byte((4, 29)), random.random((4, 9), dtype=np.float32), byte((4, 3))]
    names = np.array([f"c{i}" for i in range(58)])
    census = Census(*parts, *parts, categories=names, sizes=np.full(29, 2))
    canvases = Canvases("multi-mnist", 1, byte((6, 36, 36)), byte((6, 2)), byte((2, 36, 36)), byte((2, 2)))
    return [
        _arrays("faces", "utkface-4.npz", faces.arrays, lambda f: load_utkface(f, 4), name="utkface", side=4),
        _arrays(
            "frames",
            "localization-2x2.npz",
            frames.arrays,
            lambda f: load_localization(f, (2, 2)),
            name="localization",
            height=2,
            width=2,
        ),
        _arrays("census", "census-own.npz", census.arrays, lambda f: load_census(f, verify=False), name="census"),
        _arrays(
            "canvases",
            "multi-mnist-seed1.npz",
            canvases.arrays,
            lambda f: load_canvases("multi-mnist", f, 1),
            name="multi-mnist",
            seed=1,
        ),
    ]


@functools.cache
def formats() -> dict[str, Format]:
    """All formats by name."""
    pictures = [_road, _scene, _face_names]
    found = [
        _idx("idx"),
        *[_census(suffix) for suffix in PACK],
        _published(),
        *[make() for make in pictures],
        *[_pictures(suffix) for suffix in (".jpg", ".png")],
        *_prepared(),
        *[make() for make in STORED],
    ]
    return {each.name: each for each in found}
