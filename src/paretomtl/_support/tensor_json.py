"""Tensors and numbers to JSON and back: the only converter. JSON has neither NaN nor infinity.

:func:`to_lists` is exact, and :func:`from_lists` reads it. The others are for readers, and write None for NaN:
:func:`to_numbers` keeps all digits or rounds to decimals, and :func:`from_numbers` reads it; :func:`to_significant`
rounds to significant digits. Commands that print JSON use this module without torch.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
    from torch import Tensor


def to_lists(tensor: Tensor) -> Any:
    """Convert a tensor to nested lists of numbers, exactly; non-finite ones become strings, which JSON allows."""
    if tensor.ndim:
        return [to_lists(part) for part in tensor]
    value = tensor.item()
    return value if value - value == 0 else str(value)


def from_lists(lists: Any, dtype: torch.dtype) -> Tensor:
    """Rebuild the tensor that :func:`to_lists` converted."""
    import torch

    if isinstance(lists, list):
        return torch.stack([from_lists(part, dtype) for part in lists]) if lists else torch.zeros(0, dtype=dtype)
    return torch.tensor(float(lists), dtype=dtype)


def to_numbers(values: Any, decimals: int | None = None) -> Any:
    """Convert tensors, numbers, lists and mappings for JSON: None for non-finite values, rounded if asked.

    Tensors become nested lists. Whole numbers, text and None stay as they are.

    Example:
        >>> import torch
        >>> to_numbers({"a": torch.tensor([0.125, float("nan")]), "b": "text"}), to_numbers(-0.001, 2)
        ({'a': [0.125, None], 'b': 'text'}, 0.0)
    """
    if _is_tensor(values):
        values = values.double().tolist()
    if isinstance(values, Mapping):
        return {name: to_numbers(part, decimals) for name, part in values.items()}
    if isinstance(values, (list, tuple)):
        return [to_numbers(part, decimals) for part in values]
    if not isinstance(values, float):
        return values
    if not math.isfinite(values):
        return None
    return values if decimals is None else round(values, decimals) + 0.0  # minus zero becomes zero


def from_numbers(lists: Any) -> Tensor:
    """Rebuild the tensor of :func:`to_numbers` in float64, with NaN for None.

    Example:
        >>> from_numbers([[0.5, None]])
        tensor([[0.5000,    nan]], dtype=torch.float64)
    """
    import torch

    def known(part: Any) -> Any:
        return [known(each) for each in part] if isinstance(part, list) else math.nan if part is None else part

    return torch.tensor(known(lists), dtype=torch.float64)


def to_significant(values: Any, digits: int) -> Any:
    """Round numbers, a tensor, or nested lists of them to significant digits; None for non-finite values.

    Whole numbers become integers, which are shorter.

    Example:
        >>> to_significant([0.123456789, float("nan"), 2.0], 6)
        [0.123457, None, 2]
    """
    if _is_tensor(values):
        values = values.tolist()
    if isinstance(values, (list, tuple)):
        return [to_significant(part, digits) for part in values]
    if values is None or not math.isfinite(values):
        return None
    short = float(f"{values:.{digits}g}")
    if math.isinf(short):  # the largest numbers round up to infinity
        return values
    return int(short) if short.is_integer() and abs(short) < 1e15 else short


def _is_tensor(values: Any) -> bool:
    torch = sys.modules.get("torch")  # without it, there are no tensors
    return torch is not None and isinstance(values, torch.Tensor)
