"""Nested structures, such as the state of an optimizer, as JSON and tensors, and back. Nothing is pickled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

_SEQUENCES = {kind.__name__: kind for kind in (tuple, list, set, frozenset)}
_NUMBERS = "biufcSUMm"  # kinds of arrays that are plain bytes


def pack(value: Any, tensors: dict[str, Tensor], name: str = "") -> Any:
    """Convert a nested structure to JSON; its tensors go to ``tensors``, named by their path.

    Supports what state dictionaries of optimizers and schedulers hold: numbers, strings, tensors, arrays of NumPy,
    lists, tuples, sets, dictionaries with keys of these types, and counters.
    """
    if name in tensors:  # keys such as 1 and "1" are written alike
        name = f"{len(tensors)}:{name}"
    if isinstance(value, Tensor) and value.layout == torch.strided and not value.is_quantized:
        tensors[name] = torch.view_as_real(value.detach().resolve_conj()) if value.is_complex() else value.detach()
        return {"complex" if value.is_complex() else "tensor": name}
    is_scalar = isinstance(value, np.generic) and not isinstance(value, str)
    if (is_scalar or type(value) is np.ndarray) and value.dtype.kind in _NUMBERS:
        flat = np.ascontiguousarray(value).reshape(-1)
        tensors[name] = torch.from_numpy(flat.view(np.uint8).copy())
        return {"scalar" if is_scalar else "array": [name, value.dtype.str, list(value.shape)]}
    if isinstance(value, complex):
        return {"number": [value.real, value.imag]}
    if value is None or isinstance(value, (bool, int, float, str)):
        return {"value": value}
    for kind in (kind for kind, type_ in _SEQUENCES.items() if isinstance(value, type_)):
        return {kind: [pack(part, tensors, f"{name}/{i}") for i, part in enumerate(value)]}
    if isinstance(value, dict):
        kind = "counter" if isinstance(value, Counter) else "dict"
        return {kind: [[pack(k, tensors), pack(part, tensors, f"{name}/{k}")] for k, part in value.items()]}
    raise TypeError(
        f"'{name.lstrip('/')}' must be made of numbers, strings, tensors and arrays to be stored. "
        f"Got {type(value).__name__}."
    )


def unpack(packed: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> Any:
    """Rebuild the structure that :func:`pack` converted; malformed input may raise any exception."""
    ((kind, content),) = packed.items()
    if kind == "tensor":
        return tensors[content]
    if kind == "complex":
        return torch.view_as_complex(tensors[content])
    if kind in ("array", "scalar"):
        stored, dtype, shape = content
        if np.dtype(dtype).kind not in _NUMBERS:
            raise ValueError(f"{dtype!r:.80} is no type of numbers")
        array = tensors[stored].numpy().view(dtype).reshape(shape).copy()
        return array if kind == "array" else array[()]
    if kind == "number":
        return complex(*content)
    if kind == "value":
        return content
    if kind in _SEQUENCES:
        return _SEQUENCES[kind](unpack(part, tensors) for part in content)
    pairs = {unpack(key, tensors): unpack(part, tensors) for key, part in content}
    return Counter(pairs) if kind == "counter" else pairs
