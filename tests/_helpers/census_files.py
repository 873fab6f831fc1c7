"""Made-up files in the layout of Census-Income (KDD), and the real ones if they lie next to the repository."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from _helpers.sources import converted
from paretomtl.problems._census import files as _census_prepared
from paretomtl.problems._census.layout import CATEGORIES, CENSUS, COLUMNS, NUMBERS, TARGETS

FILES = ("census-income.data", "census-income.test")

ORDINARY = {
    **dict.fromkeys(COLUMNS, "Not in universe"),
    **dict.fromkeys((*NUMBERS, "instance_weight"), "0"),
    "education": "High school graduate",
    "marital_stat": "Never married",
    "income_50k": "- 50000.",
}
"""A valid record."""


def real_folder() -> Path:
    """The published files."""
    return converted(CENSUS.folder)


def text_of(records: Iterable[Mapping[str, str]], end: str = "\n") -> bytes:
    """Records as text of a file; fields that are left out are ordinary."""
    return "".join(", ".join({**ORDINARY, **record}.values()) + end for record in records).encode()


def some_records(count: int, seed: int) -> list[dict[str, str]]:
    """Records of three categories a column, whole numbers, and labels that follow from them, roughly."""
    random = np.random.default_rng(seed)
    records = []
    for n in range(count):
        kind = n if n < 3 else int(random.integers(3))  # the first three have all categories
        record = {name: f"{name} {(kind + i) % 3}" for i, name in enumerate(CATEGORIES)}
        record |= {name: str(random.integers(100)) for name in NUMBERS}
        record |= {name: list(values)[(kind == 0) - 1] for name, values in TARGETS.items()}
        record["income_50k"] += "."
        records.append({name: record.get(name, "1.5") for name in COLUMNS})
    return records


def write_small_files(folder: Path, train: int = 60, test: int = 20) -> Path:
    """Write both files into their own folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for file, count, seed in zip(FILES, (train, test), (0, 1), strict=True):
        (folder / file).write_bytes(text_of(some_records(count, seed)))
    return folder


def use_small_files(folder: Path, monkeypatch: pytest.MonkeyPatch, mirrors: tuple[str, ...] = ()) -> Path:
    """Small files in place of the published ones."""
    write_small_files(folder)
    md5 = {f"{file}.gz": hashlib.md5((folder / file).read_bytes()).hexdigest() for file in FILES}
    monkeypatch.setattr(_census_prepared, "CENSUS", replace(CENSUS, md5=md5, mirrors=mirrors))
    monkeypatch.setattr(_census_prepared, "PUBLISHED_CENSUS", _census_prepared.read_census(folder).checksum())
    return folder
