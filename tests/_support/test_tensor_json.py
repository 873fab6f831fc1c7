from __future__ import annotations

import json
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from paretomtl._support.tensor_json import from_lists, to_lists, to_numbers, to_significant


@given(st.lists(st.lists(st.floats(width=32), min_size=2, max_size=2), min_size=1, max_size=4))
def test_lists_keep_every_bit(rows: list[list[float]]) -> None:
    tensor = torch.tensor(rows, dtype=torch.float32)
    found = from_lists(json.loads(json.dumps(to_lists(tensor), allow_nan=False)), torch.float32)
    assert torch.equal(found.isnan(), tensor.isnan())
    assert torch.equal(found.nan_to_num(7.0), tensor.nan_to_num(7.0))


def test_numbers_for_readers_have_none_where_json_has_no_number() -> None:
    tensor = torch.tensor([[1 / 3, math.inf], [-1e-7, math.nan]], dtype=torch.float64)
    assert to_numbers(tensor) == [[1 / 3, None], [-1e-7, None]]
    assert json.dumps(to_numbers(tensor, 5)) == "[[0.33333, null], [0.0, null]]"
    assert json.dumps(to_significant(tensor, 3)) == "[[0.333, null], [-1e-07, null]]"


@given(value=st.floats(allow_nan=False, allow_infinity=False), digits=st.integers(1, 9))
def test_rounding_keeps_significant_digits(value: float, digits: int) -> None:
    found = to_significant(value, digits)
    assert found == pytest.approx(value, rel=10.0 ** (1 - digits), abs=0)
    assert len(json.dumps(found)) <= max(digits, 17) + 7
