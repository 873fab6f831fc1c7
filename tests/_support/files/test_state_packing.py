from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from paretomtl._support.files.state_packing import pack, unpack
from paretomtl._support.files.tensor_files import read_tensors, write_tensors

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
    with pytest.raises(
        TypeError, match=r"'a' must be made of numbers, strings, tensors and .* to be stored. Got object"
    ):
        pack({"a": object()}, {})
