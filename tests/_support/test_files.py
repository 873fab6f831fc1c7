from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from paretomtl._support.files import from_lists, pack, read_tensors, to_lists, unpack, write_tensors, write_text

PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)
NESTED = st.recursive(
    PLAIN,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.integers() | st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=10,
)


@given(NESTED)
def test_what_is_packed_is_unpacked(value: Any) -> None:
    tensors: dict[str, torch.Tensor] = {}
    packed = json.loads(json.dumps(pack(value, tensors)))
    assert unpack(packed, tensors) == value


def test_tensors_and_counters_are_packed_too(tmp_path: Path) -> None:
    value = {"a": [torch.ones(2), {3: torch.tensor(True)}], "c": Counter({4: 2}), "inf": float("inf")}
    tensors: dict[str, torch.Tensor] = {}
    packed = pack(value, tensors)
    write_tensors(tmp_path / "x", tensors, {"packed": json.dumps(packed)})
    stored, meta = read_tensors(tmp_path / "x")
    found = unpack(json.loads(meta["packed"]), stored)
    assert torch.equal(found["a"][0], torch.ones(2))
    assert bool(found["a"][1][3])
    assert found["c"] == Counter({4: 2})
    assert isinstance(found["c"], Counter)
    assert found["inf"] == float("inf")
    with pytest.raises(TypeError, match=r"must be made of numbers, strings and tensors to be stored. Got set"):
        pack({"a": {1, 2}}, {})


def test_every_kind_of_tensor_is_stored(tmp_path: Path) -> None:
    base = torch.arange(12.0)
    tensors = {
        "view": base[2:5],
        "same": base,
        "again": base,
        "transposed": base.reshape(3, 4).T,
        "scalar": torch.tensor(3),
        "empty": torch.zeros(0, 4),
        "half": torch.ones(3, dtype=torch.bfloat16),
        "bool": torch.tensor([True, False]),
        "bytes": torch.arange(5, dtype=torch.uint8),
    }
    write_tensors(tmp_path / "x", tensors, {})
    found, _ = read_tensors(tmp_path / "x")
    assert set(found) == set(tensors)
    assert all(
        torch.equal(found[name], tensor) and found[name].dtype == tensor.dtype for name, tensor in tensors.items()
    )


@given(st.lists(st.lists(st.floats(width=32), min_size=2, max_size=2), min_size=1, max_size=4))
def test_lists_keep_every_bit(rows: list[list[float]]) -> None:
    tensor = torch.tensor(rows, dtype=torch.float32)
    found = from_lists(json.loads(json.dumps(to_lists(tensor), allow_nan=False)), torch.float32)
    assert torch.equal(found.isnan(), tensor.isnan())
    assert torch.equal(found.nan_to_num(7.0), tensor.nan_to_num(7.0))


@pytest.mark.parametrize("fails", [1, 2])
def test_a_rename_that_fails_leaves_the_old_file(fails: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file before it would be kept under another name; one of both is always whole."""
    path, earlier = tmp_path / "x", tmp_path / "earlier"
    for value in (1.0, 2.0):
        write_tensors(path, {"a": torch.tensor(value)}, {}, earlier)
    original, calls = os.replace, 0

    def fail(source: Any, target: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == fails:
            raise OSError("full")
        original(source, target)

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="full"):
        write_tensors(path, {"a": torch.tensor(3.0)}, {}, earlier)
    assert float(read_tensors(path)[0]["a"]) == 2.0
    monkeypatch.undo()
    write_tensors(path, {"a": torch.tensor(4.0)}, {}, earlier)
    assert (float(read_tensors(path)[0]["a"]), float(read_tensors(earlier)[0]["a"])) == (4.0, 2.0)


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x"
    write_text(path, "old")
    write_tensors(tmp_path / "t", {"a": torch.ones(1)}, {})

    def fail(handle: int) -> None:
        raise OSError("full")

    monkeypatch.setattr("paretomtl._support.files.os.fsync", fail)
    with pytest.raises(OSError, match="full"):
        write_text(path, "new")
    with pytest.raises(OSError, match="full"):
        write_tensors(tmp_path / "t", {"a": torch.zeros(1)}, {})
    assert path.read_text() == "old"
    assert float(read_tensors(tmp_path / "t")[0]["a"]) == 1.0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["t", "x"]
