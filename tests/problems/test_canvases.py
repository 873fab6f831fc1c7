from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paretomtl.problems._canvases import MIXES, Canvases, generate_canvases, overlap
from paretomtl.problems._idx import SOURCES, Images, read_source
from paretomtl.problems._prepared import PUBLISHED
from problems.sources import real_folder


def some_images(count: int, seed: int, high: int = 256) -> Images:
    random = np.random.default_rng(seed)
    images = random.integers(1, high, (count, 28, 28)).astype(np.uint8)
    return Images(images, (np.arange(count) % 10).astype(np.uint8))


def one_by_one(canvases: tuple[np.ndarray, np.ndarray], left: Images, right: Images) -> tuple[list[int], list[int]]:
    """Which image lies where, found by trying all: no image has a zero byte, so that corners tell the shifts."""
    first, second = [], []
    for picture, (a, b) in zip(canvases[0], canvases[1], strict=True):
        top = int(np.flatnonzero(picture.diagonal())[0])
        bottom = int(np.flatnonzero(picture.diagonal())[-1]) - 27
        assert top in range(5)
        assert bottom in range(5, 9)
        found = []
        for i in np.flatnonzero(left.labels == a):
            for j in np.flatnonzero(right.labels == b):
                canvas = np.zeros((36, 36), dtype=int)
                canvas[top : top + 28, top : top + 28] += left.images[i]
                canvas[bottom : bottom + 28, bottom : bottom + 28] += right.images[j]
                if np.array_equal(np.minimum(canvas, 255), picture):
                    found.append((int(i), int(j)))
        assert len(found) == 1
        first.append(found[0][0])
        second.append(found[0][1])
    return first, second


@given(seed=st.integers(0, 2**32 - 1), other_class=st.booleans())
def test_every_pair_is_two_images_added_and_clipped(seed: int, other_class: bool) -> None:
    left, right = some_images(20, 1), some_images(20, 2)
    canvases = overlap(left, right, np.random.RandomState(seed), other_class=other_class)
    assert canvases[0].dtype == canvases[1].dtype == np.uint8
    first, _ = one_by_one(canvases, left, right)
    assert first == [*range(20), *range(20)], "each image twice at the top left"
    assert not other_class or (canvases[1][:, 0] != canvases[1][:, 1]).all()


def test_shifts_and_partners_are_drawn_evenly() -> None:
    images = some_images(2000, 0)
    pictures, labels = overlap(images, images, np.random.RandomState(3), other_class=True)
    top = (pictures.diagonal(axis1=1, axis2=2) > 0).argmax(-1)
    bottom = 36 - (pictures.diagonal(axis1=1, axis2=2)[:, ::-1] > 0).argmax(-1) - 28
    for shifts, values in ((top, range(5)), (bottom, range(5, 9))):
        counts = np.bincount(shifts, minlength=9)[values.start : values.stop]
        assert counts.sum() == 4000
        assert abs(counts - 4000 / len(values)).max() < 120, "four standard deviations"
    assert abs(np.bincount(labels[:, 1]) - 400).max() < 80


def test_any_class_goes_with_any_where_the_sources_differ() -> None:
    left, right = some_images(600, 1), some_images(600, 2)
    splits = {"mnist": {"train": left, "t10k": left[:100]}, "fashion-mnist": {"train": right, "t10k": right[:100]}}
    labels = generate_canvases("multi-fashion-mnist", 0, splits).train_labels
    assert 0.07 < (labels[:, 0] == labels[:, 1]).mean() < 0.13


@pytest.mark.parametrize("name", MIXES)
def test_the_last_sixth_shares_no_image_with_the_rest(name: str) -> None:
    """The last sixth of the images is dark all over, the others are bright: no canvas has both."""
    images = np.repeat(np.array([100] * 50 + [1] * 10, dtype=np.uint8), 28 * 28).reshape(60, 28, 28)
    both = Images(images, (np.arange(60) % 10).astype(np.uint8))
    made = generate_canvases(name, 0, {key: {"train": both, "t10k": both[:12]} for key in SOURCES})
    assert made.validation == 20
    assert set(np.unique(made.train_images[:-20])) == {0, 100, 200}
    assert set(np.unique(made.train_images[-20:])) == {0, 1, 2}


def test_the_same_seed_makes_the_same_canvases_and_another_one_others() -> None:
    splits = {"mnist": {"train": some_images(60, 1), "t10k": some_images(12, 2)}}
    sums = [generate_canvases("multi-mnist", seed, splits).checksum() for seed in (0, 0, 1)]
    assert sums[0] == sums[1] != sums[2]


def test_the_checksum_is_that_of_names_shapes_and_bytes() -> None:
    canvases = generate_canvases("multi-mnist", 0, {"mnist": {"train": some_images(60, 1), "t10k": some_images(12, 2)}})
    text = b""
    for name in ("train_images", "train_labels", "test_images", "test_labels"):
        array = getattr(canvases, name)
        text += f"{name} uint8 {list(array.shape)}".encode() + array.tobytes()
    assert canvases.checksum() == hashlib.sha256(text).hexdigest()


@pytest.mark.parametrize("name", MIXES)
def test_the_published_checksum_is_that_of_the_published_files(name: str) -> None:
    folder = real_folder()
    canvases = generate_canvases(name, 0, {key: read_source(SOURCES[key], folder) for key in MIXES[name].sources})
    assert canvases.checksum() == PUBLISHED[name]
    assert canvases.validation == 20_000
    _check_real(canvases, folder)


def _check_real(canvases: Canvases, folder: Path) -> None:
    """What the recipe says of the whole set, and some canvases built one by one."""
    assert canvases.train_images.shape == (120_000, 36, 36)
    assert canvases.train_labels.shape == (120_000, 2)
    assert canvases.test_images.shape == (20_000, 36, 36)
    assert canvases.test_labels.shape == (20_000, 2)
    mix = MIXES[canvases.name]
    left, right = (read_source(SOURCES[key], folder) for key in (mix.top_left, mix.bottom_right))
    same = (canvases.train_labels[:, 0] == canvases.train_labels[:, 1]).mean()
    assert same == 0 if mix.top_left == mix.bottom_right else abs(same - 0.1) < 0.004
    blocks = [
        (canvases.train_images[:100_000], canvases.train_labels[:100_000], "train", slice(50_000)),
        (canvases.train_images[100_000:], canvases.train_labels[100_000:], "train", slice(50_000, None)),
        (canvases.test_images, canvases.test_labels, "t10k", slice(None)),
    ]
    for pictures, labels, split, part in blocks:
        top, bottom = left[split][part], right[split][part]
        assert np.array_equal(labels[:, 0], np.tile(top.labels, 2))
        for n in (0, len(labels) // 2 + 7, len(labels) - 1):
            assert _is_made_of(pictures[n], top.images[n % len(top)], bottom.images[bottom.labels == labels[n, 1]])


def _is_made_of(picture: np.ndarray, top: np.ndarray, candidates: np.ndarray) -> bool:
    for s1 in range(5):
        for s2 in range(5, 9):
            first = np.zeros((36, 36), dtype=np.int16)
            first[s1 : s1 + 28, s1 : s1 + 28] = top
            rest = picture.astype(np.int16) - first  # outside of the second image nothing may be left
            window = picture[s2 : s2 + 28, s2 : s2 + 28]
            rest[s2 : s2 + 28, s2 : s2 + 28] = 0
            under = first[s2 : s2 + 28, s2 : s2 + 28]
            if not rest.any() and (np.minimum(candidates + under, 255) == window).all((1, 2)).any():
                return True
    return False
