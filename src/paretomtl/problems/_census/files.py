"""Census-Income (KDD) on disk: one file of category codes, numbers and labels, with a published checksum.

Codes and plain numbers take a thirtieth of the space of the features, and their checksum does not depend on how means
are rounded. The problem converts them to dense features once, so that a user's model sees only numbers.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paretomtl._support.files.atomic_files import check_writable
from paretomtl.problems._census.layout import CATEGORIES, CENSUS, NUMBERS, TARGETS, UNKNOWN
from paretomtl.problems._census.text import find_text, read_records
from paretomtl.problems._data.array_file import ArraySpec, checksum, read_arrays, write_arrays
from paretomtl.problems._data.cache import data_folder, load_or_make
from paretomtl.problems._data.download import download
from paretomtl.problems.registry import prepare_command

VERSION = 1
"""The version of the encoding and of the file; another version makes other arrays."""

PUBLISHED_CENSUS = "e1e98e36dca1fde0a47e04caebf7562a7e30f5da4448f750b107f7fee671c2f2"
"""The SHA-256 of :meth:`paretomtl.problems.Census.checksum` for the published files."""


@dataclass(frozen=True)
class Census:
    """The records of Census-Income (KDD) as codes and numbers, from which features are made on demand.

    Attributes:
        train_codes: ``[n, 29]``, unsigned bytes: the index of each record's category among those of its column, or 255
            for one that the training file does not have.
        train_numbers: ``[n, 9]``, float32, unchanged from the file.
        train_labels: ``[n, 3]``, 0 or 1: income above 50,000, a college degree, never married.
        test_codes: like those of the training records.
        test_numbers: like those of the training records.
        test_labels: like those of the training records.
        categories: the names of all categories, column by column, sorted in each.
        sizes: ``[29]``, the number of categories of each column.
    """

    train_codes: NDArray[np.uint8]
    train_numbers: NDArray[np.float32]
    train_labels: NDArray[np.uint8]
    test_codes: NDArray[np.uint8]
    test_numbers: NDArray[np.float32]
    test_labels: NDArray[np.uint8]
    categories: NDArray[Any]
    sizes: NDArray[np.int64]

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def checksum(self) -> str:
        """The SHA-256 of the arrays: name, dtype, shape and bytes of each, in order."""
        return checksum(self.arrays)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The name of each feature, such as ``"age"``, or ``"race=White"`` for an entry of a one-hot vector."""
        columns = np.repeat(CATEGORIES, self.sizes)
        return (*NUMBERS, *(f"{column}={name}" for column, name in zip(columns, self.categories, strict=True)))

    def features(
        self, codes: NDArray[np.uint8], numbers: NDArray[np.float32], like: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        """Features ``[n, 482]``: numbers with mean 0 and standard deviation 1, then one-hot vectors.

        Args:
            codes: the codes of some records.
            numbers: the numbers of the same records.
            like: the numbers of the training records, from which mean and deviation are computed.
        """
        mean, deviation = like.mean(0, dtype=np.float64), like.std(0, dtype=np.float64)
        features = np.zeros((len(codes), len(NUMBERS) + len(self.categories)), dtype=np.float32)
        features[:, : len(NUMBERS)] = (numbers - mean) / np.where(deviation > 0.0, deviation, 1.0)
        start = len(NUMBERS)
        for column, size in zip(codes.T, self.sizes, strict=True):
            known = np.flatnonzero(column != UNKNOWN)
            features[known, start + column[known].astype(np.int64)] = 1.0
            start += int(size)
        return features


def census_file(cache: str | Path | None, verify: bool) -> Path:
    """The prepared file of the published records, or of the user's own files."""
    return data_folder(cache) / f"census{'' if verify else '-own'}.npz"


def prepare_census(
    source: str | Path | None = None,
    cache: str | Path | None = None,
    log: Callable[[str], None] = lambda text: None,
    *,
    verify: bool = True,
    unknown: str = "error",
) -> Census:
    """Read the files of Census-Income (KDD) (paper, supplement) and store them; later calls load the stored file.

    Args:
        source: a folder with ``census-income.data`` and ``census-income.test``, plain or as .gz or .bz2, directly or in
            ``census-income-kdd``. None downloads them into ``cache``.
        cache: the folder of the prepared file; ``$PARETOMTL_DATA`` or the user's cache folder if left out.
        log: called with a line about each step.
        verify: whether the text must have the published checksum. False reads your own files in the same layout, every
            time, and stores them in a separate file.
        unknown: "error" rejects a category that only the test file has; "ignore" makes its one-hot vector zero. The
            published files have none.
    """
    path = census_file(cache, verify)
    if not verify and source is None:
        raise ValueError("'source' must be a folder with your own files if 'verify' is False. Got None instead.")

    def make() -> Census:
        if source is None:
            download(CENSUS, path.parent / CENSUS.folder, log=log)
        began = time.perf_counter()
        folder = path.parent if source is None else Path(source).expanduser()
        census = read_census(folder, verify=verify, unknown=unknown)
        if verify:
            _check_published(census, "The records")
        write_arrays(path, census.arrays, version=VERSION, name="census")
        log(f"Made in {time.perf_counter() - began:.1f} s: {path}")
        return census

    if verify:
        return load_or_make(path, lambda: load_census(cache), make, log)
    check_writable("cache", path.parent)
    return make()


def read_census(folder: Path, *, verify: bool = True, unknown: str = "error") -> Census:
    """Read both files of a folder; categories are those of the training file."""
    names = [file.removesuffix(".gz") for file in CENSUS.md5]
    paths = [find_text(folder, name) for name in names]
    md5 = list(CENSUS.md5.values()) if verify else [None, None]
    train = read_records(paths[0], md5=md5[0])
    test = read_records(paths[1], md5=md5[1], categories=train.categories, unknown=unknown)
    return Census(
        train.codes,
        train.numbers,
        train.labels,
        test.codes,
        test.numbers,
        test.labels,
        categories=np.array([name for names in train.categories for name in names]),
        sizes=np.array([len(names) for names in train.categories], dtype=np.int64),
    )


_SCHEMA = {
    "train_codes": ArraySpec("u1", ("n", len(CATEGORIES))),
    "train_numbers": ArraySpec("f4", ("n", len(NUMBERS))),
    "train_labels": ArraySpec("u1", ("n", len(TARGETS)), 1),
    "test_codes": ArraySpec("u1", ("t", len(CATEGORIES))),
    "test_numbers": ArraySpec("f4", ("t", len(NUMBERS))),
    "test_labels": ArraySpec("u1", ("t", len(TARGETS)), 1),
    "categories": ArraySpec("U", ("c",)),
    "sizes": ArraySpec("i8", (len(CATEGORIES),), UNKNOWN),
}


def load_census(cache: str | Path | None = None, *, verify: bool = True) -> Census:
    """Load the records that :func:`prepare_census` stored; a missing, damaged or different file is an error."""
    path = census_file(cache, verify)
    own = "paretomtl.problems.prepare_census(FOLDER, verify=False)"
    command = prepare_command("census", cache) if verify else own
    census = Census(**read_arrays(path, command, _SCHEMA, version=VERSION, name="census"))
    codes = np.concatenate([census.train_codes, census.test_codes])
    if census.sizes.sum() != len(census.categories) or ((codes >= census.sizes) & (codes != UNKNOWN)).any():
        raise ValueError(f"'{path}' must have codes of its categories. Make it again with: {command}")
    if verify:
        _check_published(census, f"'{path}'")
    return census


def _check_published(census: Census, what: str) -> None:
    """Reject records whose checksum is not the published one."""
    actual = census.checksum()
    if actual != PUBLISHED_CENSUS:
        raise ValueError(
            f"{what} must have the published SHA-256 {PUBLISHED_CENSUS} of census. Got {actual} instead: download the "
            "files again, or pass verify=False for your own records."
        )
