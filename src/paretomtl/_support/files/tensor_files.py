"""Tensor files: safetensors, written atomically, with a checksum inside; single rows can be read alone."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from paretomtl._support.files.atomic_files import whole_file
from paretomtl._support.files.safe_open import TENSORS, open_file
from paretomtl._support.imports.optional_packages import require

_HINT = " Nothing in it can be trusted."


def write_tensors(
    path: Path, tensors: Mapping[str, Tensor], meta: Mapping[str, str], earlier: Path | None = None
) -> str:
    """Write tensors and metadata atomically; return the checksum of both.

    With ``earlier``, the previous file is kept under that name.
    """
    data, checksum = _serialized(tensors, meta)
    with whole_file(path, earlier) as file:
        file.write(data)
    return checksum


def write_named_tensors(
    folder: Path, stem: str, tensors: Mapping[str, Tensor], meta: Mapping[str, str]
) -> tuple[Path, str]:
    """Write tensors to a file named by their checksum, ``STEM-SHA256[:16].safetensors``; return path and checksum.

    Other content has another name, so a file under such a name never changes.
    """
    data, checksum = _serialized(tensors, meta)
    path = folder / f"{stem}-{checksum[:16]}.safetensors"
    with whole_file(path) as file:
        file.write(data)
    return path, checksum


def read_tensors(path: Path, checksum: str = "") -> tuple[dict[str, Tensor], dict[str, str]]:
    """Read what :func:`write_tensors` wrote; raise a ValueError for a file that is truncated or was changed.

    Args:
        path: the file.
        checksum: the beginning of the expected checksum, if it is known from elsewhere. An intact file of other tensors
            under this name is then an error too.
    """
    with _opened(path) as file:
        meta = dict(file.metadata() or {})
        # Copies: a tensor in mapped memory changes with the file, after its checksum was verified.
        tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118 (not a dictionary)
    stored = meta.pop("sha256", None)
    if stored != checksum_of(tensors, meta):
        raise ValueError(f"'{path}' must be as it was written. Its checksum differs: it was changed.{_HINT}")
    _check_is(path, stored, checksum)
    return tensors, meta


def read_shapes(path: Path, checksum: str) -> dict[str, tuple[int, ...]]:
    """Read the shapes of the tensors in a file, by name, from its header only.

    Raises a ValueError if the file is truncated or has another checksum. Changed numbers go unnoticed.
    """
    with _opened(path) as file:
        stored = (file.metadata() or {}).get("sha256", "")
        shapes = {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
    _check_is(path, stored, checksum)
    return shapes


def read_row(path: Path, row: int, checksum: str) -> dict[str, Tensor]:
    """Read one row of every tensor in a file, and nothing else; raise a ValueError if the row was changed.

    Args:
        path: the file, whose tensors share their leading size.
        row: the index of the row.
        checksum: the checksum of the row by :func:`checksum_of`.
    """
    with _opened(path) as file:
        rows = {name: file.get_slice(name)[row : row + 1][0].clone() for name in file.keys()}  # noqa: SIM118
    if checksum_of(rows) != checksum:
        raise ValueError(
            f"'{path}' must be as it was written. The checksum of row {row} differs: it was changed.{_HINT}"
        )
    return rows


def checksum_of(tensors: Mapping[str, Tensor], meta: Mapping[str, str] | None = None) -> str:
    """The SHA-256 of tensors and metadata: names, dtypes, shapes and numbers."""
    digest = hashlib.sha256(b"" if meta is None else json.dumps(dict(sorted(meta.items()))).encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype} {list(tensor.shape)}".encode())
        flat = tensor.detach().cpu().contiguous().reshape(-1)
        digest.update(memoryview(flat.view(torch.uint8).numpy()))  # type: ignore[arg-type]
    return digest.hexdigest()


def _check_is(path: Path, stored: str, checksum: str) -> None:
    if not stored.startswith(checksum):
        raise ValueError(
            f"'{path}' must hold the tensors with the checksum {checksum[:16]}... Got those of another file, "
            f"{stored[:16]}..."
        )


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """Open a tensor file for reading; turn any problem with it into a ValueError that names it."""
    safetensors = require("safetensors", "all")
    with open_file(path, limit=TENSORS) as opened:  # an error of the system is not damage
        try:
            with safetensors.safe_open(path, framework="pt") as file:
                yield file
        except Exception as error:
            raise ValueError(f"'{path}' must be a whole file of tensors. It is damaged ({error}).{_HINT}") from None
        if not os.path.samestat(os.fstat(opened.fileno()), path.lstat()):
            raise ValueError(f"'{path}' must not change while it is read. It was replaced.{_HINT}")


def _serialized(tensors: Mapping[str, Tensor], meta: Mapping[str, str]) -> tuple[bytes, str]:
    """The content of a file, and its checksum."""
    separate = _without_aliases(tensors)
    meta = {name: text.encode(errors="backslashreplace").decode() for name, text in meta.items()}  # lone surrogates
    checksum = checksum_of(separate, meta)
    data: bytes = require("safetensors.torch", "all").save(separate, metadata={**meta, "sha256": checksum})
    return data, checksum


def _without_aliases(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Copy tensors so that all are contiguous, on the CPU, and no two share memory."""
    separate: dict[str, Tensor] = {}
    used: set[int] = set()
    for name, tensor in tensors.items():
        copy = tensor.detach().cpu().contiguous()
        storage = copy.untyped_storage()
        if storage.data_ptr() in used or storage.nbytes() != copy.nbytes:
            copy = copy.clone()
        used.add(copy.untyped_storage().data_ptr())
        separate[name] = copy
    return separate
