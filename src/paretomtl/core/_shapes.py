"""Checks of arguments that the core functions share: an error names the parameter, the rule and what was found."""

from __future__ import annotations

import math

import torch
from torch import Tensor

BLOCK = 1 << 22
"""So many numbers are compared at a time where all pairs of rows are: 32 MiB in float64."""


def check_count(name: str, count: int) -> None:
    """Refuse what is not a positive whole number."""
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        raise ValueError(f"'{name}' must be a whole number of at least 1. Got {count!r} instead.")


def check_not_negative(name: str, count: int) -> None:
    """Refuse what is not a whole number of at least zero."""
    if not isinstance(count, int) or isinstance(count, bool) or count < 0:
        raise ValueError(f"'{name}' must be a whole number that is not negative. Got {count!r} instead.")


def check_tasks(name: str, tasks: int) -> None:
    """Refuse fewer than two tasks: one loss has no trade-off."""
    if not isinstance(tasks, int) or isinstance(tasks, bool) or tasks < 2:
        raise ValueError(f"'{name}' must be at least 2: a trade-off needs two tasks. Got {tasks!r} instead.")


def check_floating(name: str, tensor: Tensor) -> None:
    """Refuse integer, bool and complex tensors."""
    if not tensor.is_floating_point():
        raise TypeError(f"'{name}' must be a floating-point tensor. Got {tensor.dtype} instead.")


def check_trailing(name: str, tensor: Tensor, *expected: int | str) -> None:
    """Refuse a tensor whose last dimensions differ from ``expected``; a string there is a free size."""
    found = tensor.shape[-len(expected) :]
    fits = len(found) == len(expected)
    if not fits or any(isinstance(size, int) and size != f for size, f in zip(expected, found, strict=True)):
        shown = ", ".join(["...", *map(str, expected)])
        raise ValueError(f"'{name}' must have shape [{shown}]. Got {list(tensor.shape)} instead.")


def may_ask(tensor: Tensor) -> bool:
    """Whether asking for a value costs nothing: on a CPU, outside of a compiler."""
    return tensor.device.type == "cpu" and not torch.compiler.is_compiling()


def known_finite(*tensors: Tensor) -> bool:
    """Whether all numbers are finite, by their sums; False also where asking is not free, or a sum overflows."""
    return all(may_ask(tensor) and math.isfinite(float(tensor.detach().sum())) for tensor in tensors)


def check_gramian(name: str, gramian: Tensor) -> int:
    """Refuse what is not a batch of square floating-point matrices; return the number of tasks."""
    check_floating(name, gramian)
    if gramian.ndim < 2 or gramian.shape[-1] != gramian.shape[-2] or gramian.shape[-1] == 0:
        raise ValueError(f"'{name}' must have shape [..., m, m]. Got {list(gramian.shape)} instead.")
    return gramian.shape[-1]


def blocks(count: int, each: int) -> list[slice]:
    """All of ``count`` rows in blocks, so that a block with ``each`` numbers a row takes little memory; one if few.

    Example:
        >>> blocks(3, 10)
        [slice(0, 3, None)]
    """
    size = max(1, BLOCK // max(1, each))
    return [slice(start, min(start + size, count)) for start in range(0, count, size)] or [slice(0, 0)]
