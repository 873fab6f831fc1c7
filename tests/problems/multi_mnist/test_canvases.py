from __future__ import annotations

import hashlib
import itertools
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from _helpers.sources import real_folder
from paretomtl.problems._multi_mnist.canvases import MIXES, PAPER, Mix, generate_canvases, overlap
from paretomtl.problems._multi_mnist.files import PUBLISHED
from paretomtl.problems._multi_mnist.idx import SOURCES, Images, read_source

CORNERS = (
    {shift: (shift, shift) for shift in range(5)},  # top left
    {shift: (shift, shift) for shift in range(5, 9)},  # bottom right
    {shift: (shift, 8 - shift) for shift in range(5)},  # top right
)
"""Row and column of an image's first pixel, by position and shift."""

Sources = Mapping[str, Mapping[str, Images]]


def some_images(count: int, seed: int, high: int = 256) -> Images:
    random = np.random.default_rng(seed)
    images = random.integers(1, high, (count, 28, 28)).astype(np.uint8)
    return Images(images, (np.arange(count) % 10).astype(np.uint8))


def some_sources() -> Sources:
    return {key: {"train": some_images(60, i), "t10k": some_images(12, i + 2)} for i, key in enumerate(SOURCES)}


def put(images: Sequence[np.ndarray], corners: Sequence[tuple[int, int]]) -> np.ndarray:
    """One canvas, with room for sums over 255 before they are clipped."""
    canvas = np.zeros((36, 36), dtype=int)
    for image, (row, column) in zip(images, corners, strict=True):
        canvas[row : row + 28, column : column + 28] += image
    return np.minimum(canvas, 255)


def found(picture: np.ndarray, labels: np.ndarray, mix: Mix, images: Mapping[str, Images]) -> list[int]:
    """Which image lies at each position, by trying all: no image has a zero byte, so that corners tell the shifts."""
    down, across = np.flatnonzero(picture.diagonal()), np.flatnonzero(picture[:, ::-1].diagonal())
    shifts = [int(down[0]), int(down[-1]) - 27, int(across[0])]
    corners = [CORNERS[place][shifts[place]] for place in range(len(mix))]
    candidates = [np.flatnonzero(images[mix[place]].labels == labels[place]) for place in range(len(mix))]
    matches = [
        [int(number) for number in numbers]
        for numbers in itertools.product(*candidates)
        if np.array_equal(
            put([images[source].images[i] for source, i in zip(mix, numbers, strict=True)], corners), picture
        )
    ]
    assert len(matches) == 1
    return matches[0]


def drawn_slowly(
    mix: Mix, labels: Mapping[str, Sequence[int]], random: np.random.RandomState
) -> tuple[list[list[int]], list[list[int]]]:
    """The recipe number by number: which image lies at each position of each canvas, and by how much it is shifted."""
    numbers = 2 * list(range(len(labels[mix[0]])))
    chosen = [numbers]
    for place in range(1, len(mix)):
        mine = labels[mix[place]]
        rivals = [(chosen[other], labels[mix[other]]) for other in range(place) if mix[other] == mix[place]]
        drawn, again = [0] * len(numbers), list(range(len(numbers)))
        while again:
            for n in again:
                drawn[n] = int(random.randint(len(mine), dtype=np.int64))
            again = [n for n in again if any(classes[other[n]] == mine[drawn[n]] for other, classes in rivals)]
        chosen.append(drawn)
    shifts = [
        [int(random.randint(min(corners), max(corners) + 1, dtype=np.int64)) for _ in numbers]
        for corners in CORNERS[: len(mix)]
    ]
    return chosen, shifts


def check_by_the_recipe(name: str, sources: Sources, every: int) -> None:
    """All labels and every n-th canvas of a set are those of the recipe, carried out number by number."""
    mix, random = MIXES[name], np.random.RandomState(0)
    made = generate_canvases(name, 0, sources)
    size, test = (len(sources[mix[0]][split]) for split in ("train", "t10k"))
    cut = size - size // 6
    assert [len(array) for array in made.arrays.values()] == [2 * size, 2 * size, 2 * test, 2 * test]
    assert made.validation == 2 * (size - cut)
    for split, part, pictures, labels in (
        ("train", slice(cut), made.train_images[: 2 * cut], made.train_labels[: 2 * cut]),
        ("train", slice(cut, None), made.train_images[2 * cut :], made.train_labels[2 * cut :]),
        ("t10k", slice(None), made.test_images, made.test_labels),
    ):
        images = {source: sources[source][split][part] for source in mix}
        chosen, shifts = drawn_slowly(mix, {key: each.labels.tolist() for key, each in images.items()}, random)
        expected = [images[source].labels[numbers] for source, numbers in zip(mix, chosen, strict=True)]
        assert np.array_equal(labels, np.stack(expected, -1))
        for n in {*range(0, len(labels), every), len(labels) - 1}:
            each = [images[source].images[numbers[n]] for source, numbers in zip(mix, chosen, strict=True)]
            corners = [CORNERS[place][shifts[place][n]] for place in range(len(mix))]
            assert np.array_equal(pictures[n], put(each, corners))


@pytest.mark.parametrize("mix", MIXES.values(), ids=MIXES)
@given(seed=st.integers(0, 2**32 - 1))
def test_every_canvas_is_its_images_added_and_clipped(mix: Mix, seed: int) -> None:
    images = {"mnist": some_images(20, 1), "fashion-mnist": some_images(20, 2)}
    pictures, labels = overlap(mix, images, np.random.RandomState(seed))
    assert pictures.dtype == labels.dtype == np.uint8
    assert labels.shape == (40, len(mix))
    first = [found(picture, mine, mix, images)[0] for picture, mine in zip(pictures, labels, strict=True)]
    assert first == [*range(20), *range(20)], "each image twice at the top left"
    for one, other in itertools.combinations(range(len(mix)), 2):
        assert mix[one] != mix[other] or (labels[:, one] != labels[:, other]).all()


@pytest.mark.parametrize("name", MIXES)
def test_everything_is_drawn_in_the_order_of_the_recipe(name: str) -> None:
    check_by_the_recipe(name, some_sources(), every=1)


@pytest.mark.parametrize("mix", [MIXES["multi-mnist"], MIXES["multi-mnist-3"]], ids=len)
def test_shifts_and_partners_are_drawn_evenly(mix: Mix) -> None:
    pictures, labels = overlap(mix, {"mnist": some_images(2000, 0)}, np.random.RandomState(3))
    down, across = (each.diagonal(axis1=1, axis2=2) > 0 for each in (pictures, pictures[:, :, ::-1]))
    shifts = [down.argmax(-1), 8 - down[:, ::-1].argmax(-1), across.argmax(-1)]
    for place, values in enumerate((range(5), range(5, 9), range(5))[: len(mix)]):
        counts = np.bincount(shifts[place], minlength=9)[values.start : values.stop]
        assert counts.sum() == 4000
        assert abs(counts - 4000 / len(values)).max() < 120, "four standard deviations"
        assert abs(np.bincount(labels[:, place]) - 400).max() < 80


def test_any_class_goes_with_any_where_the_sources_differ() -> None:
    left, right = some_images(600, 1), some_images(600, 2)
    splits = {"mnist": {"train": left, "t10k": left[:100]}, "fashion-mnist": {"train": right, "t10k": right[:100]}}
    labels = generate_canvases("multi-fashion-mnist", 0, splits).train_labels
    assert 0.07 < (labels[:, 0] == labels[:, 1]).mean() < 0.13


@pytest.mark.parametrize("name", MIXES)
def test_the_last_sixth_shares_no_image_with_the_rest(name: str) -> None:
    """The last sixth of the images is dark all over, the others are bright: no canvas has both."""
    images = np.repeat(np.array([80] * 50 + [1] * 10, dtype=np.uint8), 28 * 28).reshape(60, 28, 28)
    both = Images(images, (np.arange(60) % 10).astype(np.uint8))
    made = generate_canvases(name, 0, {key: {"train": both, "t10k": both[:12]} for key in SOURCES})
    together = np.arange(len(MIXES[name]) + 1)
    assert made.validation == 20
    assert set(np.unique(made.train_images[:-20])) == set(80 * together)
    assert set(np.unique(made.train_images[-20:])) == set(together)


def test_the_same_seed_makes_the_same_canvases_and_another_one_others() -> None:
    sums = [generate_canvases("multi-mnist", seed, some_sources()).checksum() for seed in (0, 0, 1)]
    assert sums[0] == sums[1] != sums[2]


@pytest.mark.parametrize("name", MIXES)
def test_a_set_knows_its_positions_and_where_it_comes_from(name: str) -> None:
    made = generate_canvases(name, 0, some_sources())
    assert [each.name for each in made.positions] == ["top-left", "bottom-right", "top-right"][: len(MIXES[name])]
    assert made.origin == ("made" if name.endswith("-3") else "regenerated")
    assert (name in PAPER) == (made.origin == "regenerated")


def test_the_checksum_is_that_of_names_shapes_and_bytes() -> None:
    canvases = generate_canvases("multi-mnist", 0, some_sources())
    text = b""
    for name in ("train_images", "train_labels", "test_images", "test_labels"):
        array = getattr(canvases, name)
        text += f"{name} uint8 {list(array.shape)}".encode() + array.tobytes()
    assert canvases.checksum() == hashlib.sha256(text).hexdigest()


@pytest.mark.parametrize(
    ("name", "checksum"),
    {
        "multi-mnist": "d3b1531afe5196e30af3b55a95df838a377f8f893accee43ce132b6a5c006bf2",
        "multi-fashion": "bcf1ff059bb73d82ec9aeb98e462d74c1682761e638c9e23b09286d0607aff41",
        "multi-fashion-mnist": "d682c52bf79df47fe84ddc30d46c0f3acb9cc585b9e0048f6841079bf3197983",
        "multi-mnist-3": "3ae38ac9a006ef6c9177dc2a797e802daf6c70191de6d7cd7449cbf4fa021298",
        "multi-fashion-3": "1d3f35fa815636a9fd9951b95c45be03e9afbd6caac4ac2710ab0be18d59f35e",
    }.items(),
)
def test_the_recipe_stays_as_it_is(name: str, checksum: str) -> None:
    """Known checksums of small sources, for machines without the published files."""

    def formula(count: int, start: int) -> Images:
        images = ((np.arange(count * 28 * 28) + start) * 7919 % 251 + 1).astype(np.uint8)
        return Images(images.reshape(count, 28, 28), (np.arange(count) % 10).astype(np.uint8))

    sources = {
        "mnist": {"train": formula(60, 0), "t10k": formula(12, 1)},
        "fashion-mnist": {"train": formula(60, 2), "t10k": formula(12, 3)},
    }
    assert generate_canvases(name, 0, sources).checksum() == checksum


@pytest.mark.study
@pytest.mark.parametrize("name", MIXES)
def test_the_published_checksum_is_that_of_the_published_files(name: str) -> None:
    folder = real_folder()
    sources = {key: read_source(SOURCES[key], folder) for key in MIXES[name]}
    assert generate_canvases(name, 0, sources).checksum() == PUBLISHED[name]
    check_by_the_recipe(name, sources, every=1000)
