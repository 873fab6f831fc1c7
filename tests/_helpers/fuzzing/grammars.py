"""Inputs by the grammar of each format, with arbitrary values, drawn by hypothesis."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np
import torch
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from _helpers.census_files import ORDINARY
from _helpers.fuzzing.format import Files, Format
from _helpers.fuzzing.mutations import NUMBERS
from _helpers.fuzzing.packing import PACK
from paretomtl._support.files.tensor_files import checksum_of
from paretomtl.problems._data.array_file import checksum

TEXT = st.text(max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT | st.sampled_from(["nan", "train", "float32"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
NUMBER = st.sampled_from(NUMBERS) | st.floats().map(str) | st.integers(-2, 130).map(str)


def like(value: Any) -> st.SearchStrategy[Any]:
    """Values of the same form with other numbers and words, and sometimes of another form."""
    if isinstance(value, dict):
        same = st.fixed_dictionaries({key: like(part) for key, part in value.items()})
        return same | same.flatmap(lambda part: JSON.map(lambda more: {**part, "more": more})) | JSON
    if isinstance(value, list):
        return st.tuples(*[like(part) for part in value]).map(list) | st.lists(like(value[0]) if value else JSON)
    others: dict[type, st.SearchStrategy[Any]] = {
        bool: st.booleans(),
        int: st.integers(),
        float: st.floats(),
        str: TEXT,
    }
    return st.just(value) | st.just(value) | others.get(type(value), st.none()) | JSON


def json_file(path: str, data: bytes) -> st.SearchStrategy[Files]:
    """A JSON object with one field of another type, or all of them."""
    content = {name: value for name, value in json.loads(data).items() if name != "sha256"}  # as in older files
    one = st.sampled_from(sorted(content)).flatmap(
        lambda name: like(content[name]).map(lambda value: {**content, name: value})
    )
    return (one | like(content)).map(lambda found: {path: json.dumps(found).encode(errors="replace")})


def log_file(path: str) -> st.SearchStrategy[Files]:
    """Lines of JSON."""
    lines = st.lists(JSON.map(lambda value: json.dumps(value).encode()) | st.binary(max_size=20), max_size=8)
    return lines.map(lambda found: {path: b"\n".join(found)})


def census_text(path: str, suffix: str) -> st.SearchStrategy[Files]:
    """Records with other fields."""
    fields = [st.just(value) | st.just(value) | NUMBER | TEXT for value in ORDINARY.values()]
    record = st.tuples(*fields).map(", ".join) | st.lists(NUMBER, max_size=43).map(",".join)
    return st.lists(record, max_size=4).map(lambda lines: {path: PACK[suffix]("\n".join(lines).encode())})


def pose_text(path: str, data: bytes) -> st.SearchStrategy[Files]:
    """Lines of both forms, for images that exist or not."""
    names = [word for word in data.decode().split() if word.endswith(".jpg")]
    name = st.sampled_from(names) | TEXT
    angles = st.tuples(name, st.lists(NUMBER | st.just("0.5"), min_size=6, max_size=6)).map(
        lambda pair: f"{pair[0]} {','.join(pair[1])}"
    )
    identity = np.eye(4).reshape(-1).tolist()
    matrix = st.tuples(st.tuples(*[st.just(str(v)) | NUMBER for v in identity]), name).map(
        lambda pair: f"{' '.join(pair[0])} {pair[1]}"
    )
    lines = st.lists(angles | matrix, max_size=4)
    return lines.map(lambda found: {path: "\n".join(found).encode()})


def matrix_text(path: str) -> st.SearchStrategy[Files]:
    """Matrices of 4 by 4 with other entries."""
    rows = [" ".join(["{}"] * 4)] * 4
    entries = st.tuples(*[st.just(str(v)) | st.just(str(v)) | NUMBER | TEXT for v in np.eye(4).reshape(-1).tolist()])
    return entries.map(lambda found: {path: "\n".join(rows).format(*found).encode(errors="replace")})


def idx_file(path: str) -> st.SearchStrategy[Files]:
    """A header of any sizes, and any bytes after it."""
    sizes = st.sampled_from([3, 4, 5, 0, 1, 2**31, 2**32 - 1])
    header = st.tuples(st.sampled_from([0x803, 0x801, 0x903]), sizes, sizes, sizes)
    return st.tuples(header, st.integers(0, 70)).map(
        lambda pair: {path: gzip.compress(b"".join(n.to_bytes(4, "big") for n in pair[0]) + bytes(pair[1]), 1)}
    )


def arrays_file(path: str, data: bytes) -> st.SearchStrategy[Files]:
    """The arrays of a file, one with another dtype, shape or content, with a valid checksum."""
    with np.load(io.BytesIO(data)) as stored:
        content = dict(stored)
    names = [name for name in content if content[name].ndim]
    kinds = arrays_of.scalar_dtypes() | arrays_of.unicode_string_dtypes(max_len=4)

    def other(name: str) -> st.SearchStrategy[Any]:
        array = content[name]
        shape = st.just(array.shape) | arrays_of.array_shapes(min_dims=0, min_side=0, max_side=4)
        return arrays_of.arrays(st.just(array.dtype) | kinds, shape, fill=st.nothing() if array.size < 100 else None)

    def signed(name: str, array: Any) -> Files:
        arrays = {key: array if key == name else content[key] for key in names}
        words = {key: value for key, value in content.items() if key not in names}
        with suppress(ValueError):  # dates have no bytes to sign
            words["checksum"] = np.array(checksum(arrays))
        file = io.BytesIO()
        np.savez(file, **words, **arrays)
        return {path: file.getvalue()}

    return st.sampled_from(names).flatmap(lambda name: other(name).map(lambda array: signed(name, array)))


def tensors_file(path: str, data: bytes) -> st.SearchStrategy[Files]:
    """Any tensors with the metadata of a file, one entry of which is changed, with a valid checksum."""
    from safetensors.torch import load, save

    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    meta = {key: value for key, value in header["__metadata__"].items() if key != "sha256"}
    tensors = load(data)
    kinds = st.sampled_from([torch.float32, torch.float64, torch.bool, torch.int64, torch.uint8, torch.bfloat16])
    sizes = st.lists(st.integers(0, 3), max_size=3)
    tensor = st.tuples(sizes, kinds).map(lambda pair: torch.ones(pair[0], dtype=pair[1]))
    change = st.dictionaries(st.sampled_from(sorted(tensors)) | TEXT, tensor, max_size=2)

    def words(name: str) -> st.SearchStrategy[tuple[str, str]]:
        try:
            value = like(json.loads(meta[name])).map(json.dumps)
        except ValueError:
            value = TEXT
        return st.tuples(st.just(name), value)

    def signed(changed: Mapping[str, Any], word: tuple[str, str] | None) -> Files:
        found = {**tensors, **changed}
        said = {**meta, **({} if word is None else dict([word]))}
        return {path: save(found, metadata={**said, "sha256": checksum_of(found, said)})}

    return st.tuples(change, st.none() | st.sampled_from(sorted(meta)).flatmap(words)).map(lambda pair: signed(*pair))


def names_of(data: bytes) -> st.SearchStrategy[Files]:
    """A picture with any name."""
    digits = st.text("0123456789\u0661", max_size=3)
    parts = st.tuples(digits, digits, digits, st.text("0123456789", min_size=16, max_size=19))
    end = st.sampled_from([".jpg", ".png", ".jpg.chip.jpg", " .jpg", ".JPEG"])
    return st.tuples(parts, end).map(lambda pair: {"_".join(pair[0]) + pair[1]: data})


def picture_file(path: str) -> st.SearchStrategy[Files]:
    """Pictures of all modes and small sizes."""
    from PIL import Image

    def encoded(mode: str, size: tuple[int, int], options: dict[str, Any]) -> Files:
        file = io.BytesIO()
        kind = "PNG" if path.endswith("png") else "JPEG"
        Image.new(mode, size).save(file, kind, **options)
        return {path: file.getvalue()}

    modes = ["1", "L", "LA", "P", "RGB", "RGBA", "I;16"] if path.endswith("png") else ["L", "RGB", "CMYK", "YCbCr"]
    sizes = st.tuples(st.integers(1, 80), st.integers(1, 80))
    return st.tuples(st.sampled_from(modes), sizes).map(lambda pair: encoded(*pair, {}))


def grammar(form: Format) -> st.SearchStrategy[Files]:
    """Inputs of a format."""
    path = form.changes[0][0] if form.changes else next(iter(form.files))
    data = form.files[path]
    if form.name in ("idx", "run, log.jsonl", "faces, names", "options"):
        return {
            "idx": idx_file(path),
            "run, log.jsonl": log_file(path),
            "faces, names": names_of(data),
            "options": st.tuples(st.sampled_from(["epsilon=", "other=", ""]), TEXT | JSON.map(repr) | NUMBER).map(
                lambda pair: {path: "".join(pair).encode(errors="surrogateescape")}
            ),
        }[form.name]
    if path.endswith(".pose.txt"):
        return matrix_text(path)
    if "census-income" in path:
        return census_text(path, path.removeprefix("census-income.data"))
    if path.endswith(".safetensors") or form.name == "run, resumed":
        path = next(each for each in form.files if each.endswith(".safetensors"))
        return tensors_file(path, form.files[path])
    makers: dict[str, Any] = {".json": json_file, ".npz": arrays_file, ".txt": pose_text}
    ending = path[path.rindex(".") :]
    return makers[ending](path, data) if ending in makers else picture_file(path)
