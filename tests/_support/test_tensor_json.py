from __future__ import annotations

import json
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from paretomtl._support.tensor_json import from_lists, from_numbers, to_lists, to_numbers, to_significant


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


def test_numbers_are_read_back_with_nan_for_none() -> None:
    tensor = torch.tensor([[0.1, math.nan], [math.nan, 2.0]], dtype=torch.float64)
    assert torch.equal(from_numbers(to_numbers(tensor)).nan_to_num(7.0), tensor.nan_to_num(7.0))


def test_whatever_json_knows_stays_as_it_is() -> None:
    content = {"a": [1, True, None, "nan"], "b": (0.5, math.inf)}
    assert json.dumps(to_numbers(content), allow_nan=False) == '{"a": [1, true, null, "nan"], "b": [0.5, null]}'
    assert to_numbers(torch.tensor([1, 2])) == [1.0, 2.0]


@given(value=st.floats(allow_nan=False, allow_infinity=False), digits=st.integers(1, 9))
def test_rounding_keeps_significant_digits(value: float, digits: int) -> None:
    found = to_significant(value, digits)
    assert found == pytest.approx(value, rel=10.0 ** (1 - digits), abs=0)
    assert len(json.dumps(found)) <= max(digits, 17) + 7
