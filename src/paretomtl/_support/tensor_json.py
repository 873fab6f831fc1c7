"""Tensors as numbers that JSON knows, and back. JSON has neither NaN nor infinity.

:func:`to_lists` is exact, and :func:`from_lists` reads it. The others are for readers, and have None for NaN:
:func:`to_numbers` has all digits or decimals, and :func:`from_numbers` reads it; :func:`to_significant` has significant
digits.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor


def to_lists(tensor: Tensor) -> Any:
    """A tensor as nested lists of numbers, exactly; what is not finite as a string, which JSON knows."""
    if tensor.ndim:
        return [to_lists(part) for part in tensor]
    value = tensor.item()
    return value if value - value == 0 else str(value)


def from_lists(lists: Any, dtype: torch.dtype) -> Tensor:
    """The tensor that :func:`to_lists` took apart."""
    if isinstance(lists, list):
        return torch.stack([from_lists(part, dtype) for part in lists]) if lists else torch.zeros(0, dtype=dtype)
    return torch.tensor(float(lists), dtype=dtype)


def to_numbers(tensor: Tensor, decimals: int | None = None) -> Any:
    """A tensor as nested lists of numbers, rounded to decimals if any are given; None for what is not finite.

    Example:
        >>> to_numbers(torch.tensor([0.125, float("nan")])), to_numbers(torch.tensor(-0.001), 2)
        ([0.125, None], 0.0)
    """
    if tensor.ndim:
        return [to_numbers(part, decimals) for part in tensor]
    value = float(tensor)
    if not math.isfinite(value):
        return None
    return value if decimals is None else round(value, decimals) + 0.0  # minus zero becomes zero


def from_numbers(numbers: Any) -> Tensor:
    """The tensor, in float64, that :func:`to_numbers` took apart; NaN for None."""

    def known(part: Any) -> Any:
        return [known(each) for each in part] if isinstance(part, list) else torch.nan if part is None else part

    return torch.tensor(known(numbers), dtype=torch.float64)


def to_significant(values: Any, digits: int) -> Any:
    """Numbers, a tensor, or nested lists of them, to significant digits; None for what is not finite.

    Whole numbers become integers, which are shorter.

    Example:
        >>> to_significant([0.123456789, float("nan"), 2.0], 6)
        [0.123457, None, 2]
    """
    if isinstance(values, Tensor):
        values = values.tolist()
    if isinstance(values, (list, tuple)):
        return [to_significant(part, digits) for part in values]
    if values is None or not math.isfinite(values):
        return None
    short = float(f"{values:.{digits}g}")
    if math.isinf(short):  # the largest numbers round up to infinity
        return values
    return int(short) if short.is_integer() and abs(short) < 1e15 else short
