from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from _helpers.sources import idx_bytes, real_folder, small_source
from paretomtl.problems._multi_mnist.idx import SOURCES, Source, read_idx, read_source

IMAGES, LABELS = "train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz"


@pytest.fixture
def source(tmp_path: Path) -> Source:
    return small_source("mnist", tmp_path)


def test_what_was_written_is_read(tmp_path: Path) -> None:
    array = np.random.default_rng(0).integers(0, 256, (5, 28, 28)).astype(np.uint8)
    (tmp_path / "x.gz").write_bytes(idx_bytes(array))
    assert np.array_equal(read_idx(tmp_path / "x.gz", (5, 28, 28)), array)


@pytest.mark.parametrize("layout", ["directly", "in a folder of its own"])
def test_files_lie_in_the_folder_or_in_one_of_their_own(tmp_path: Path, layout: str) -> None:
    source = small_source("fashion-mnist", tmp_path / "fashion-mnist" if layout != "directly" else tmp_path)
    read = read_source(source, tmp_path)
    assert {split: len(images) for split, images in read.items()} == {"train": 60, "t10k": 12}
    assert read["train"].images.shape == (60, 28, 28)
    assert read["t10k"].labels.tolist() == [n % 10 for n in range(12)]


@pytest.mark.parametrize(("key", "mean"), [("mnist", 33.32), ("fashion-mnist", 72.94)])
def test_the_published_files_are_read(key: str, mean: float) -> None:
    read = read_source(SOURCES[key], real_folder())
    assert read["train"].images.mean() == pytest.approx(mean, abs=0.01)
    assert np.bincount(read["t10k"].labels).sum() == 10_000


def test_a_missing_file_is_named(tmp_path: Path, source: Source) -> None:
    (tmp_path / LABELS).unlink()
    with pytest.raises(
        FileNotFoundError, match=r"'source' \(--from\) must be a folder with the files of MNIST"
    ) as error:
        read_source(source, tmp_path)
    assert f"directly or in 'mnist'. There is no '{tmp_path / LABELS}'" in str(error.value)


@pytest.mark.parametrize("change", ["truncated", "altered"])
def test_a_file_that_is_not_the_published_one_is_named(tmp_path: Path, source: Source, change: str) -> None:
    content = bytearray((tmp_path / IMAGES).read_bytes())
    if change == "truncated":
        del content[1000:]
    else:
        content[1000] ^= 1
    (tmp_path / IMAGES).write_bytes(content)
    with pytest.raises(ValueError, match="must be the published file of MNIST, md5") as error:
        read_source(source, tmp_path)
    assert str(error.value).startswith(f"'{tmp_path / IMAGES}'")
    assert source.md5[IMAGES] in str(error.value)
    assert f"in {len(content):,} bytes: it is truncated or was altered" in str(error.value)


def test_files_of_the_other_set_are_recognised(tmp_path: Path) -> None:
    folder = real_folder()
    with pytest.raises(ValueError, match=r"published file of MNIST.*which is Fashion-MNIST's"):
        read_source(SOURCES["mnist"], folder / "fashion-mnist")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (idx_bytes(np.zeros(5), magic=0x803), "must begin with the magic number 00000801. Got 00000803"),
        (idx_bytes(np.zeros(6)), r"must have the shape \[5\]. Got \[6\]"),
        (idx_bytes(np.zeros(5))[:-12], "must be a whole gzip file. It is damaged"),
        (b"no gzip", "must be a whole gzip file. It is damaged"),
        (b"", r"must begin with the magic number 00000801. Got nothing"),
    ],
)
def test_bad_files_are_named(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "x.gz").write_bytes(content)
    with pytest.raises(ValueError, match=message) as error:
        read_idx(tmp_path / "x.gz", (5,))
    assert str(error.value).startswith(f"'{tmp_path / 'x.gz'}'")


def test_a_file_shorter_than_its_header_says_is_named(tmp_path: Path) -> None:
    import gzip

    whole = gzip.decompress(idx_bytes(np.zeros(5)))
    (tmp_path / "x.gz").write_bytes(gzip.compress(whole[:-2]))
    with pytest.raises(ValueError, match=r"must hold 5 bytes after its header. Got 3"):
        read_idx(tmp_path / "x.gz", (5,))


def test_labels_are_classes(tmp_path: Path, source: Source) -> None:
    import hashlib
    from dataclasses import replace

    (tmp_path / LABELS).write_bytes(idx_bytes(np.full(60, 10)))
    md5 = {**source.md5, LABELS: hashlib.md5((tmp_path / LABELS).read_bytes()).hexdigest()}
    with pytest.raises(ValueError, match=r"must hold labels from 0 to 9. Got 10"):
        read_source(replace(source, md5=md5), tmp_path)
