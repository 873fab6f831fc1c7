"""Prepared data on disk: arrays in one file with a few words about them, whole or absent, with a checksum."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paretomtl._files import whole_file

Arrays = Mapping[str, NDArray[Any]]


def checksum(arrays: Arrays) -> str:
    """The SHA-256 of arrays: name, kind, shape and bytes of each, in their order."""
    digest = hashlib.sha256()
    for name, array in arrays.items():
        digest.update(f"{name} {array.dtype} {list(array.shape)}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def write_arrays(path: Path, arrays: Arrays, **words: str | int) -> str:
    """Write arrays, and words such as ``version`` and ``name``, whole or not at all; returns their checksum."""
    found = checksum(arrays)
    content: dict[str, Any] = {**words, "checksum": found, **arrays}
    with whole_file(path) as file:
        np.savez(file, **content)
    return found


def read_arrays(path: Path, command: str, **words: str | int) -> dict[str, NDArray[Any]]:
    """What :func:`write_arrays` wrote; an error for a file that is missing, damaged, changed, or of other words.

    Args:
        path: the file.
        command: what makes it, for messages.
        words: those that the file must have been written with.
    """
    if not path.is_file():
        raise FileNotFoundError(f"'{path}' is not there yet. Make it with: {command}")
    again = f"Make it again with: {command}"
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            if any(member.compress_type != zipfile.ZIP_STORED for member in stored.zip.infolist()):
                raise ValueError("it is compressed, as no such file is written")  # a little may become very much
            content = {key: stored[key] for key in stored.files}
        found = {key: content.pop(key).item() for key in (*words, "checksum")}
        same = checksum(content) == found["checksum"]
    except OSError:
        raise
    except Exception as error:
        raise ValueError(f"'{path}' must be a whole file of prepared data. It is damaged ({error}). {again}") from None
    for key, value in words.items():
        if found[key] != value:
            raise ValueError(f"'{path}' must be of {key} {value}. Got {key} {found[key]} instead. {again}")
    if not same:
        raise ValueError(f"'{path}' must be as it was written. Its checksum differs: it was changed. {again}")
    return content
