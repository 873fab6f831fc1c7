"""Files within files: archives, tensors and arrays unpacked, changed and packed again, with a valid checksum."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import struct
import zipfile
import zlib
from collections.abc import Mapping
from contextlib import suppress
from random import Random
from typing import Any

import numpy as np

from _helpers.fuzzing.mutations import LARGEST, VALUES, json_bytes, mutate, mutate_json
from paretomtl._support.files.tensor_files import checksum_of
from paretomtl.problems._data.array_file import checksum

PACK = {
    "": lambda data: data,
    ".gz": lambda data: gzip.compress(data, 1, mtime=0),
    ".bz2": lambda data: bz2.compress(data, 1),
}

BOMB = 1 << 28
"""Bytes that a small archive unpacks to."""


def bomb(suffix: str, byte: bytes, size: int = BOMB) -> bytes:
    """A decompression bomb: a small archive of very many equal bytes."""
    if not suffix:
        return byte * LARGEST
    packer: Any = {
        ".gz": lambda: zlib.compressobj(1, zlib.DEFLATED, 31),
        ".bz2": lambda: bz2.BZ2Compressor(9),
    }[suffix]()
    parts = [packer.compress(byte * LARGEST) for _ in range(size // LARGEST)]
    return b"".join([*parts, packer.flush()])


def tensor_file(data: bytes, random: Random) -> bytes:
    """A file of tensors with another header; half of them get a valid checksum, so that more than that is tested."""
    (length,) = struct.unpack("<Q", data[:8])
    header, body = json.loads(data[8 : 8 + length]), data[8 + length :]
    header = mutate_json(header, random) if random.random() < 0.5 else _other_meta(header, random)
    text = json_bytes(header, random)
    text += b" " * (-len(text) % 8)
    changed = struct.pack("<Q", len(text)) + text + body
    return _signed(changed) if random.random() < 0.7 else changed


def _other_meta(header: dict[str, Any], random: Random) -> dict[str, Any]:
    """Changed metadata of the tensors, including JSON inside it."""
    meta = dict(header.get("__metadata__", {}))
    names = [key for key in meta if key != "sha256"]
    name = max(names, key=lambda key: len(meta[key])) if random.random() < 0.7 else random.choice(names)
    try:
        inner = json_bytes(mutate_json(json.loads(meta[name]), random), random)
    except ValueError:
        inner = mutate(meta[name].encode(), random)
    return {**header, "__metadata__": {**meta, name: inner[:LARGEST].decode(errors="replace")}}


def _signed(data: bytes) -> bytes:
    """The file with the checksum of its content; unchanged if it cannot be read."""
    from safetensors.torch import load, save

    try:
        (length,) = struct.unpack("<Q", data[:8])
        meta = {k: v for k, v in json.loads(data[8 : 8 + length])["__metadata__"].items() if k != "sha256"}
        tensors = load(data)
        return save(tensors, metadata={**meta, "sha256": checksum_of(tensors, meta)})
    except Exception:
        return data


def arrays_file(data: bytes, random: Random) -> bytes:
    """A file of arrays with another part in it, with a valid checksum if possible."""
    with np.load(io.BytesIO(data)) as stored:
        content = dict(stored)
    words = [name for name in content if content[name].ndim == 0]
    name = random.choice(list(content))
    way = random.random()
    if way < 0.15:
        content.pop(name)
    elif way < 0.3:
        content[random.choice((*content, "more", "../x", "a/b"))] = _array(random)
    elif way < 0.8:
        content[name] = _array(random) if random.random() < 0.5 else _bent(content[name], random)
    parts = {key: _npy(value) for key, value in content.items()}
    if way >= 0.8:
        parts[name] = _headed(parts[name], random)
    elif random.random() < 0.8:
        arrays = {key: value for key, value in content.items() if key not in words}
        with suppress(ValueError, TypeError):  # dates have no bytes to sign
            parts["checksum"] = _npy(np.array(checksum(arrays)))
    return _zipped(parts, random)


def _array(random: Random) -> Any:
    value = random.choice([*(v for v in VALUES if isinstance(v, (bool, int, float, str)) and v != "\ud800"), b"x"])
    try:
        return np.zeros(random.choice(((), (0,), (3,), (3, 3), (2, 0), (1, 1, 1, 1))), dtype=np.array(value).dtype)
    except TypeError:
        return np.zeros(2, dtype="M8[s]")


def _bent(array: Any, random: Random) -> Any:
    """An array of another dtype, shape or content."""
    way = random.randrange(4)
    if way == 0:
        kinds = ("U7", "U1") if array.dtype.kind in "US" else ("f8", "u1", "i2", "S4", "U7", "?", "c8", "<f2")
        return array.astype(random.choice(kinds))
    if way == 1:
        return array[..., None] if random.random() < 0.5 else array.reshape(-1)
    if way == 2:
        return array[: random.randint(0, len(array))] if array.ndim else np.array([array.item()] * 2)
    return np.frombuffer(random.randbytes(array.nbytes), dtype=array.dtype).reshape(array.shape)


def _npy(value: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, value)
    return file.getvalue()


def _headed(npy: bytes, random: Random) -> bytes:
    """An array whose header says something else."""
    (length,) = struct.unpack("<H", npy[8:10])
    kinds = ("'|O'", "'<f8'", "'|V0'", "'<U1000000'", "[('a', '<f8')]", "'|S0'", "5", "'M8[s]'", "'<f16'", "(" * 900)
    shapes = ("()", "(0,)", "(-1,)", "(1e3,)", "(2**62,)", "(10**11,)", "(4000000000, 4000000000)", "(True,)", "'x'")
    kind, order = random.choice(kinds), random.choice(("False", "True", "2", "None"))
    shape = random.choice((*shapes, "(100000000000,)", "(300000000,)", "[" * 900))
    header = f"{{'descr': {kind}, 'fortran_order': {order}, 'shape': {shape}, }}"
    text = (header if random.random() < 0.8 else npy[10 : 10 + length].decode("latin1") + "\\z").encode("latin1")
    return npy[:8] + struct.pack("<H", len(text)) + text + npy[10 + length :]


def _zipped(parts: Mapping[str, bytes], random: Random) -> bytes:
    file = io.BytesIO()
    method = random.choice((*[zipfile.ZIP_STORED] * 6, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2))
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, part in parts.items():
            archive.writestr(f"{name}.npy", part)
    return file.getvalue()


def zip_bomb() -> bytes:
    """A decompression bomb: a small file with an array of very many zeros."""
    file = io.BytesIO()
    with (
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("images.npy", "w", force_zip64=True) as member,
    ):
        member.write(_npy(np.zeros(0, dtype=np.uint8)).replace(b"(0,), }         ", b"(%d,), }" % (4 * BOMB)))
        for _ in range(4 * BOMB // LARGEST):
            member.write(bytes(LARGEST))
    return file.getvalue()
