"""Nested structures, such as the state of an optimizer, as JSON and tensors, and back. Nothing is pickled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from torch import Tensor


def pack(value: Any, tensors: dict[str, Tensor], name: str = "") -> Any:
    """Convert a nested structure to JSON; its tensors go to ``tensors``, named by their path.

    Supports what state dictionaries of optimizers and schedulers hold: numbers, strings, tensors, lists, tuples,
    dictionaries with keys of these types, and counters.
    """
    if isinstance(value, Tensor):
        tensors[name] = value.detach()
        return {"tensor": name}
    if value is None or isinstance(value, (bool, int, float, str)):
        return {"value": value}
    if isinstance(value, (tuple, list)):
        kind = "tuple" if isinstance(value, tuple) else "list"
        return {kind: [pack(part, tensors, f"{name}/{i}") for i, part in enumerate(value)]}
    if isinstance(value, dict):
        kind = "counter" if isinstance(value, Counter) else "dict"
        return {kind: [[pack(k, tensors), pack(part, tensors, f"{name}/{k}")] for k, part in value.items()]}
    raise TypeError(f"'{name}' must be made of numbers, strings and tensors to be stored. Got {type(value).__name__}.")


def unpack(packed: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> Any:
    """Rebuild the structure that :func:`pack` converted; malformed input may raise any exception."""
    ((kind, content),) = packed.items()
    if kind == "tensor":
        return tensors[content]
    if kind == "value":
        return content
    if kind in ("tuple", "list"):
        parts = [unpack(part, tensors) for part in content]
        return tuple(parts) if kind == "tuple" else parts
    pairs = {unpack(key, tensors): unpack(part, tensors) for key, part in content}
    return Counter(pairs) if kind == "counter" else pairs
