"""The two text files of Census-Income (KDD): how they are found, unpacked and read.

The text is identified by the md5 of its unpacked content, because it is published with different compressions.
"""

from __future__ import annotations

import bz2
import gzip
import hashlib
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from paretomtl.problems._census.layout import CATEGORIES, CENSUS, COLUMNS, NUMBERS, TARGETS, UNKNOWN
from paretomtl.problems._data.download import LARGEST_TEXT

_OPEN: Mapping[str, Callable[[Path], Any]] = {
    "": lambda path: path.open("rb"),
    ".gz": gzip.open,
    ".bz2": bz2.open,
}
_NUMBER = re.compile(rb"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)")
_LARGEST = float(np.finfo(np.float32).max)
_TEXT = bytes([*b"\t\n\r", *range(32, 127), *range(128, 256)])
_BLOCK, _LONGEST = 1 << 20, 1 << 16  # bytes read at a time, and the most in a line


@dataclass(frozen=True)
class Records:
    """The records of one file.

    Attributes:
        codes: ``[n, 29]``, for each of ``CATEGORIES`` the index of the record's category in the sorted names, or
            ``UNKNOWN``.
        numbers: ``[n, 9]``, the values of ``NUMBERS``.
        labels: ``[n, 3]``, 0 or 1 for each of ``TARGETS``.
        categories: the sorted names of all categories of each column.
    """

    codes: NDArray[np.uint8]
    numbers: NDArray[np.float32]
    labels: NDArray[np.uint8]
    categories: tuple[tuple[str, ...], ...]


def find_text(folder: Path, name: str) -> Path:
    """Find the file of this name in a folder or in the data set's subfolder, plain or compressed."""
    there = CENSUS.folder_in(folder)
    for suffix in _OPEN:
        if (path := there / f"{name}{suffix}").is_file():
            return path
    raise FileNotFoundError(
        f"'source' (--from) must be a folder with the files of {CENSUS.name}: census-income.data and "
        f"census-income.test, plain or as .gz or .bz2, directly or in '{CENSUS.folder}'. There is no '{name}' in "
        f"'{there}'."
    )


def read_records(
    path: Path,
    *,
    md5: str | None = None,
    categories: Sequence[Sequence[str]] | None = None,
    unknown: str = "error",
) -> Records:
    """Read one of the files, a block at a time; a ValueError names the file and the line of a fault.

    Args:
        path: plain text, or compressed as .gz or .bz2.
        md5: the md5 that the text must have; None takes any text.
        categories: those of the training file, for each of ``CATEGORIES``. None takes them from this file.
        unknown: "error" rejects a category that is not among them; "ignore" gives it the code ``UNKNOWN``.
    """
    tables = _tables(categories, unknown)
    digest, size = hashlib.md5(usedforsecurity=False), 0
    parts: list[tuple[NDArray[Any], ...]] = []
    line = 1
    for block in _blocks(path):
        digest.update(block)
        size += len(block)
        _check_text(path, block, line)
        if not block.strip():
            line += block.count(b"\n")
            continue
        lines = block.removesuffix(b"\n").split(b"\n")
        records = [(line + i, text) for i, text in enumerate(lines) if text.strip()]
        line += len(lines)
        if records:
            parts.append(_arrays(path, records, tables))
    if md5 is not None and digest.hexdigest() != md5:
        raise ValueError(
            f"'{path}' must be the published text of {CENSUS.name}, md5 {md5}. Got md5 {digest.hexdigest()}, in "
            f"{size:,} bytes: it is truncated or was altered. Files of your own are read with verify=False."
        )
    if not parts:
        raise ValueError(f"'{path}' must hold records. It has none.")
    codes, numbers, labels = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    names = [list(tables[name].names) for name in CATEGORIES]
    for i, column_names in enumerate(names):  # from order of appearance to sorted order
        order = sorted(range(len(column_names)), key=column_names.__getitem__)
        places = np.full(UNKNOWN + 1, UNKNOWN, dtype=np.uint8)
        places[order] = np.arange(len(order))
        codes[:, i] = places[codes[:, i]]
    return Records(codes, numbers, labels, tuple(tuple(sorted(column_names)) for column_names in names))


class _BadValueError(Exception):
    """A bad value, as written in the file, and the rule that it breaks."""

    def __init__(self, raw: bytes, rule: str, hint: str = "") -> None:
        super().__init__()
        self.raw, self.rule, self.hint = raw, rule, hint


class _Table(dict[bytes, float]):
    """A cache of the parsed values of a column: each value is parsed at its first occurrence, and then looked up."""

    names: Mapping[str, int]

    def __missing__(self, raw: bytes) -> float:
        self[raw] = value = self.read(raw)
        return value

    def read(self, raw: bytes) -> float:
        raise NotImplementedError


class _Numbers(_Table):
    def read(self, raw: bytes) -> float:
        value_text = raw.strip()
        value = float(value_text) if _NUMBER.fullmatch(value_text) else float("inf")
        if abs(value) > _LARGEST:
            raise _BadValueError(raw, "a number")
        return value


class _Targets(_Table):
    def __init__(self, names: Mapping[str, int]) -> None:
        super().__init__()
        self.names = names

    def read(self, raw: bytes) -> float:
        name = raw.decode().strip().removesuffix(".")
        if name not in self.names:
            shown = "- 50000. or 50000+." if "50000+" in self.names else f"one of {', '.join(self.names)}"
            raise _BadValueError(raw, shown)
        return self.names[name]


class _New(_Table):
    """Categories of a training file, numbered in order of appearance."""

    def __init__(self) -> None:
        super().__init__()
        self.names: dict[str, int] = {}

    def read(self, raw: bytes) -> float:
        name = raw.decode().strip()
        if name not in self.names and len(self.names) == UNKNOWN:
            raise _BadValueError(raw, f"at most {UNKNOWN} categories", ", which is one more")
        return self.names.setdefault(name, len(self.names))


class _Known(_Table):
    """Categories that must be those of the training file."""

    def __init__(self, names: Sequence[str], unknown: str) -> None:
        super().__init__()
        self.names = {name: place for place, name in enumerate(names)}
        self._ignore = unknown == "ignore"

    def read(self, raw: bytes) -> float:
        name = raw.decode().strip()
        if name in self.names or self._ignore:
            return self.names.get(name, UNKNOWN)
        raise _BadValueError(raw, "a category of the training file", '; unknown="ignore" takes it for none of them')


def _tables(categories: Sequence[Sequence[str]] | None, unknown: str) -> dict[str, _Table]:
    if unknown not in ("error", "ignore"):
        raise ValueError(f'\'unknown\' must be "error" or "ignore". Got {unknown!r} instead.')
    tables: dict[str, _Table] = {name: _Numbers() for name in NUMBERS}
    tables |= {name: _Targets(values) for name, values in TARGETS.items()}
    if categories is None:
        return tables | {name: _New() for name in CATEGORIES}
    return tables | {name: _Known(known, unknown) for name, known in zip(CATEGORIES, categories, strict=True)}


def _arrays(path: Path, lines: list[tuple[int, bytes]], tables: Mapping[str, _Table]) -> tuple[NDArray[Any], ...]:
    """Codes, numbers and labels of some lines, given with their line numbers."""
    rows = [text.split(b",") for _, text in lines]
    for (line, text), row in zip(lines, rows, strict=True):
        if len(row) != len(COLUMNS):
            rule = f"{len(COLUMNS)} fields, separated by commas, in every record"
            _refuse(path, rule, line, f"{len(row)}: {_shown(text)}")
    columns = dict(zip(COLUMNS, zip(*rows, strict=True), strict=True))

    def read(name: str, table: _Table) -> Iterator[float]:
        try:
            yield from map(table.__getitem__, columns[name])
        except _BadValueError as error:
            line = lines[columns[name].index(error.raw)][0]
            _refuse(path, f"{error.rule} for '{name}'", line, f"{_shown(error.raw.strip())}{error.hint}")

    for _ in read("instance_weight", _Numbers()):  # checked but not used: a bad value shows that fields are shifted
        pass

    def array(names: Sequence[str], dtype: Any) -> NDArray[Any]:
        values = chain.from_iterable(read(name, tables[name]) for name in names)
        return np.ascontiguousarray(np.fromiter(values, dtype, len(rows) * len(names)).reshape(len(names), -1).T)

    return array(CATEGORIES, np.uint8), array(NUMBERS, np.float32), array(tuple(TARGETS), np.uint8)


def _blocks(path: Path) -> Iterator[bytes]:
    """The text in blocks of whole lines."""
    read = 0
    with _OPEN.get(path.suffix, _OPEN[""])(path) as file:
        while True:
            try:
                block: bytes = file.read(_BLOCK)
                end: bytes = b"" if block.endswith(b"\n") else file.readline(_LONGEST)
            except (EOFError, zlib.error) as error:
                _refuse_packed(path, error)
            except OSError as error:  # gzip and bz2 raise it without an errno
                if error.errno is not None:
                    raise
                _refuse_packed(path, error)
            if len(end) == _LONGEST and not end.endswith(b"\n"):
                raise ValueError(f"'{path}' must be text in lines. One has more than {_LONGEST:,} bytes.")
            if not block:
                return
            read += len(block) + len(end)
            if read > LARGEST_TEXT:
                raise ValueError(f"'{path}' must be a text of at most {LARGEST_TEXT:,} bytes, unpacked. It has more.")
            yield block + end


def _check_text(path: Path, block: bytes, line: int) -> None:
    """Reject bytes that are not text; ``line`` is the number of the block's first line."""
    odd = block.translate(None, delete=_TEXT)
    place = block.index(odd[:1]) if odd else None
    if place is None and not block.isascii():
        try:
            block.decode()
        except UnicodeDecodeError as error:
            place = error.start
    if place is not None:
        shown = repr(block[place : place + 8])[1:]
        _refuse(path, "text (UTF-8) alone", line + block.count(b"\n", 0, place), f"the bytes {shown}")


def _refuse(path: Path, rule: str, line: int, fault: str) -> NoReturn:
    raise ValueError(f"'{path}' must have {rule}. Line {line:,} has {fault}.") from None


def _refuse_packed(path: Path, error: Exception) -> NoReturn:
    raise ValueError(f"'{path}' must be a whole {path.suffix} file. It is damaged: {error}.") from None


def _shown(raw: bytes) -> str:
    text = raw.decode().strip()
    return repr(text if len(text) <= 80 else f"{text[:77]}...")
