from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from _helpers.sources import use_small_sources
from paretomtl.problems import prepare_canvases
from paretomtl.problems._multi_mnist import files as _prepared
from paretomtl.problems._multi_mnist.canvases import MIXES
from paretomtl.problems._multi_mnist.files import canvases_file, load_canvases


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return use_small_sources(tmp_path / "sources", monkeypatch)


@pytest.fixture
def cache(tmp_path: Path, sources: Path) -> Path:
    """A cache with multi-mnist of seed 1."""
    prepare_canvases("multi-mnist", source=sources, cache=tmp_path / "cache", seed=1)
    return tmp_path / "cache"


def rewrite(path: Path, **changes: Any) -> None:
    with np.load(path) as stored:
        content: dict[str, Any] = {**{key: stored[key] for key in stored.files}, **changes}
    np.savez(path, **{key: value for key, value in content.items() if value is not None})


@pytest.mark.parametrize("name", MIXES)
def test_what_is_stored_is_loaded(tmp_path: Path, sources: Path, name: str) -> None:
    made = prepare_canvases(name, source=sources, cache=tmp_path, seed=1)
    found = load_canvases(name, tmp_path, 1)
    assert (found.name, found.seed) == (name, 1)
    assert found.checksum() == made.checksum()
    for key, array in found.arrays.items():
        assert array.dtype == np.uint8
        assert np.array_equal(array, made.arrays[key])
    with np.load(tmp_path / f"{name}-seed1.npz", allow_pickle=False) as stored:
        assert str(stored["checksum"]) == made.checksum()
        assert int(stored["version"]) == 1
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == [f"{name}-seed1.npz"]


def test_what_is_there_is_only_read(cache: Path) -> None:
    told: list[str] = []
    prepare_canvases("multi-mnist", source="nowhere", cache=cache, seed=1, log=told.append)
    assert told == [f"There already: {cache / 'multi-mnist-seed1.npz'}"]


def test_what_is_damaged_is_made_again(cache: Path, sources: Path) -> None:
    path = cache / "multi-mnist-seed1.npz"
    path.write_bytes(path.read_bytes()[:5000])
    told: list[str] = []
    prepare_canvases("multi-mnist", source=sources, cache=cache, seed=1, log=told.append)
    assert told[0].startswith(f"Making it again: '{path}' must be a whole file of prepared data")
    load_canvases("multi-mnist", cache, 1)


def test_a_write_that_fails_leaves_nothing(tmp_path: Path, sources: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(file: Any, **content: Any) -> None:
        file.write(b"half")
        raise OSError("full")

    monkeypatch.setattr("paretomtl.problems._data.array_file.np.savez", fail)
    with pytest.raises(OSError, match="full"):
        prepare_canvases("multi-mnist", source=sources, cache=tmp_path / "cache", seed=1)
    assert list((tmp_path / "cache").iterdir()) == []


@pytest.mark.parametrize("left", [0, 10, 5000, -100])
def test_a_truncated_file_is_named(cache: Path, left: int) -> None:
    path = cache / "multi-mnist-seed1.npz"
    path.write_bytes(path.read_bytes()[:left])
    with pytest.raises(ValueError, match=r"must be a whole file of prepared data. It is damaged") as error:
        load_canvases("multi-mnist", cache, 1)
    assert str(error.value).startswith(f"'{path}'")
    assert "paretomtl data prepare multi-mnist" in str(error.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": 0}, "must be of version 1. Got version 0"),
        ({"seed": 2}, "must be of seed 1. Got seed 2"),
        ({"name": "multi-fashion"}, "must be of name multi-mnist. Got name multi-fashion"),
        ({"test_labels": np.zeros((24, 2), dtype=np.uint8)}, "must be as it was written. Its checksum differs"),
        ({"test_labels": None}, "must be as it was written. Its checksum differs"),
        ({"other": np.zeros(1)}, "must be as it was written. Its checksum differs"),
        ({"seed": None}, "must be a whole file of prepared data"),
        ({"train_images": np.array([{}], dtype=object)}, "must be a whole file of prepared data"),
    ],
)
def test_a_file_of_something_else_is_named(cache: Path, changes: dict[str, Any], message: str) -> None:
    path = cache / "multi-mnist-seed1.npz"
    rewrite(path, **changes)
    with pytest.raises(ValueError, match=message) as error:
        load_canvases("multi-mnist", cache, 1)
    assert str(error.value).startswith(f"'{path}'")


def test_canvases_of_seed_0_are_the_published_ones_or_none(
    tmp_path: Path, sources: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ValueError, match="The canvases must have the published SHA-256 7eae89c8"):
        prepare_canvases("multi-mnist", source=sources, cache=tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == []
    checksum = prepare_canvases("multi-mnist", source=sources, cache=tmp_path, seed=1).checksum()
    rewrite(tmp_path / "multi-mnist-seed1.npz", seed=0)
    (tmp_path / "multi-mnist-seed1.npz").rename(tmp_path / "multi-mnist-seed0.npz")
    with pytest.raises(ValueError, match=f"npz' must have the published SHA-256 7eae.* Got {checksum}"):
        load_canvases("multi-mnist", tmp_path)
    monkeypatch.setitem(_prepared.PUBLISHED, "multi-mnist", checksum)
    load_canvases("multi-mnist", tmp_path)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("multi-faces", None, 0),
            "'name' must be one of multi-mnist, .*, multi-mnist-3, multi-fashion-3. Got 'multi-faces'",
        ),
        (("multi-mnist", None, -1), "'seed' must be a whole number that is not negative. Got -1"),
        (("multi-mnist", None, 2**32), r"'seed' must be under 2\*\*32. Got 4294967296"),
    ],
)
def test_bad_arguments_are_named(arguments: tuple[str, None, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        canvases_file(*arguments)


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path, sources: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="'cache' must be a folder that can be written"):
        prepare_canvases("multi-mnist", source=sources, cache=tmp_path / "file", seed=1)


def test_a_folder_without_permission_is_named(tmp_path: Path, sources: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever runs the tests may be allowed everything, so that the refusal is made up."""

    def refuse(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("paretomtl._support.files.atomic_files.create_file", refuse)
    with pytest.raises(ValueError, match=r"'cache' must be a folder that can be written.*Permission denied"):
        prepare_canvases("multi-mnist", source=sources, cache=tmp_path / "cache", seed=1)


def test_left_overs_of_others_go_when_they_are_old(cache: Path, sources: Path) -> None:
    import os

    old, fresh = cache / ".x.npz.unfinished-1", cache / ".y.npz.unfinished-2"
    for path in (old, fresh):
        path.write_text("half")
    os.utime(old, (0, 0))
    prepare_canvases("multi-fashion", source=sources, cache=cache, seed=1)
    assert not old.exists()
    assert fresh.exists(), "somebody may be writing it"


def test_torch_and_numpy_are_enough() -> None:
    code = (
        "import sys, paretomtl.problems._multi_mnist.files\n"
        "print([m for m in ('safetensors', 'matplotlib', 'typer', 'rich') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
