"""Prepared data on disk: arrays and a header in one file, written atomically, with a checksum.

A checksum detects damage, not forgery, so dtypes, shapes and ranges are checked, too. Arrays are never compressed:
their sizes can then be compared with the length of the file before memory is allocated.
"""

from __future__ import annotations

import errno
import hashlib
import math
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from paretomtl._support.files.atomic_files import whole_file
from paretomtl._support.files.safe_open import TENSORS, open_file

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class ArraySpec:
    """The dtype and shape that an array must have.

    Attributes:
        kind: the dtype, such as ``"u1"``, or ``"U"`` for text of any length. Floating-point numbers must be finite.
        shape: a letter stands for any size, the same in all arrays of a file; no array may be empty.
        highest: the largest allowed integer, or that of each column. Integers must not be negative then.
    """

    kind: str
    shape: tuple[int | str, ...]
    highest: int | tuple[int, ...] | None = None

    def misfit(self, array: NDArray[Any], sizes: dict[str, int]) -> str:
        """Describe the fault of an array, or return ""; ``sizes`` holds the letters so far, and new ones are added."""
        if array.dtype.kind != self.kind and array.dtype != np.dtype(self.kind):
            return f"values of {array.dtype}"
        letters = [size for size in self.shape if isinstance(size, str)]
        if array.ndim == len(self.shape):
            by_letter = dict(zip(self.shape, array.shape, strict=True))
            sizes |= {letter: by_letter[letter] for letter in letters if letter not in sizes}
        wanted = tuple(sizes.get(size, 0) if isinstance(size, str) else size for size in self.shape)
        if array.shape != wanted or not array.size:
            return f"the shape {list(array.shape)}"
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            return "values that are not finite"
        if self.highest is not None and ((array < 0) | (array > self.highest)).any():
            return "values out of range"
        return ""


Schema = Mapping[str, ArraySpec]
"""The arrays of a file by name, in order."""


def checksum(arrays: Arrays) -> str:
    """The SHA-256 of arrays: name, dtype, shape and bytes of each, in order."""
    digest = hashlib.sha256()
    for name, array in arrays.items():
        digest.update(f"{name} {array.dtype} {list(array.shape)}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def write_arrays(path: Path, arrays: Arrays, **header: str | int) -> str:
    """Write arrays and a header such as ``version`` and ``name`` atomically; return the checksum of the arrays."""
    digest = checksum(arrays)
    content: dict[str, Any] = {**header, "checksum": digest, **arrays}
    with whole_file(path) as file:
        np.savez(file, **content)
    return digest


def read_arrays(path: Path, command: str, schema: Schema, **header: str | int) -> dict[str, NDArray[Any]]:
    """Read the arrays that :func:`write_arrays` wrote.

    A missing file is a FileNotFoundError. A file that is damaged or changed, or has a different header or different
    arrays, is a ValueError. Both name the file. Nothing is decompressed or unpickled, and no array is larger than its
    bytes in the file.

    Args:
        path: the file.
        command: the command that makes it, for messages.
        schema: the arrays that the file must have.
        header: the header that the file must have.
    """
    if not path.exists():
        raise FileNotFoundError(f"'{path}' does not exist yet. Make it with: {command}")
    again = f"Make it again with: {command}"
    with open_file(path, limit=TENSORS, follow=True) as file:  # data may lie on another disk
        try:
            _check_sizes(file)
            with np.load(file, allow_pickle=False) as stored:
                content = {key: stored[key] for key in stored.files}
            stored_header = {key: content.pop(key).item() for key in (*header, "checksum")}
            same = checksum(content) == stored_header["checksum"]
        except Exception as error:
            if isinstance(error, OSError) and error.errno != errno.EINVAL:  # EINVAL: a seek to an impossible offset
                raise
            message = f"'{path}' must be a whole file of prepared data. It is damaged ({error}). {again}"
            raise ValueError(message) from None
    for key, value in header.items():
        if stored_header[key] != value:
            raise ValueError(f"'{path}' must be of {key} {value}. Got {key} {stored_header[key]} instead. {again}")
    if not same:
        raise ValueError(f"'{path}' must be as it was written. Its checksum differs: it was changed. {again}")
    if wrong := _misfit(content, schema):
        raise ValueError(f"'{path}' must hold {', '.join(schema)} as they are prepared. {wrong}. {again}")
    return content


def _check_sizes(file: IO[bytes]) -> None:
    """Reject arrays that are compressed, or whose header claims more than the file holds: both can exhaust memory."""
    with zipfile.ZipFile(file) as archive:
        for member in archive.infolist():
            if member.compress_type != zipfile.ZIP_STORED:
                raise ValueError("it is compressed, and prepared files never are")
            with archive.open(member) as opened:
                version = np.lib.format.read_magic(opened)
                read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
                shape, _, kind = read(opened)
                bytes_left = member.file_size - opened.tell()
            if math.prod(shape) * kind.itemsize != bytes_left or bytes_left < 0:
                raise ValueError(f"'{member.filename}' is not as long as its header says")
    file.seek(0)


def _misfit(arrays: Arrays, schema: Schema) -> str:
    """Describe the first fault of the arrays, or return "" if they match the schema."""
    if list(arrays) != list(schema):
        return f"Got {', '.join(arrays)} instead"
    sizes: dict[str, int] = {}
    faults = ((name, spec.misfit(arrays[name], sizes)) for name, spec in schema.items())
    return next((f"'{name}' has {fault}" for name, fault in faults if fault), "")
