"""Attributes of modules other than parameters and buffers: read, compared, restored."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence, Set
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn

_OF_TORCH = frozenset(vars(nn.Module()))
_DEEPEST = 4  # nesting of containers and plain objects that is compared

Spaces: TypeAlias = dict[str, MutableMapping[str, Any]]
"""Attributes by the name of their owner, then by their own."""

Place: TypeAlias = tuple[str, str]
"""The name of an attribute's owner, and its own."""


def changes(before: Mapping[str, Mapping[str, Any]], now: Mapping[str, Mapping[str, Any]]) -> list[Place]:
    """The attributes that differ."""
    return [
        (label, name)
        for label in now
        for name in {**before[label], **now[label]}
        if name not in now[label] or name not in before[label] or not _same(before[label][name], now[label][name])
    ]


def attributes_of(module: nn.Module) -> Spaces:
    """The attributes of each submodule other than its parameters and buffers, by the submodule's name."""
    return {name: _Attributes(part) for name, part in module.named_modules()}


class _Attributes(MutableMapping[str, Any]):
    """The attributes of a module that are not torch's own."""

    def __init__(self, module: nn.Module) -> None:
        self._own = vars(module)

    def __getitem__(self, name: str) -> Any:
        return self._own[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self._own[name] = value

    def __delitem__(self, name: str) -> None:
        del self._own[name]

    def __iter__(self) -> Any:
        return iter([name for name in self._own if name not in _OF_TORCH])

    def __len__(self) -> int:
        return len(list(iter(self)))


def differing_from_first(modules: Sequence[nn.Module]) -> list[int]:
    """The models that differ from the first in attributes other than parameters and buffers."""
    first = attributes_of(modules[0])
    return [k for k, module in enumerate(modules) if k and _differ(first, attributes_of(module))]


def _differ(one: Mapping[str, Mapping[str, Any]], other: Mapping[str, Mapping[str, Any]]) -> bool:
    return one.keys() != other.keys() or bool(changes(one, other))


def _same(one: Any, other: Any, depth: int = _DEEPEST) -> bool:
    """Whether two values are equal, as far as they can be compared; others count as equal."""
    if one is other or depth == 0:
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, Tensor):
        return (
            one.shape == other.shape and one.dtype == other.dtype and torch.equal(one.nan_to_num(), other.nan_to_num())
        )
    if isinstance(one, np.ndarray):
        return bool(np.array_equal(one, other, equal_nan=one.dtype.kind in "fc"))
    if isinstance(one, torch.Generator):
        return torch.equal(one.get_state(), other.get_state())
    if isinstance(one, (bool, int, float, complex, str, bytes)):
        return bool(one == other) or one != one
    if isinstance(one, Mapping):
        return one.keys() == other.keys() and all(_same(one[key], other[key], depth - 1) for key in one)
    if isinstance(one, Sequence):
        return len(one) == len(other) and all(_same(a, b, depth - 1) for a, b in zip(one, other, strict=True))
    if isinstance(one, Set):
        return len(one) == len(other)
    if isinstance(one, nn.Module) or callable(one):
        return True
    return not hasattr(one, "__dict__") or _same(vars(one), vars(other), depth - 1)
