"""Argument checks that all packages share: an error names the parameter, the rule and the value."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

_LONG = 200  # characters of a value in an error message

BLOCK = 1 << 22
"""The most numbers in a block when all pairs of rows are compared: 32 MiB in float64."""


def check_count(name: str, count: int) -> int:
    """A positive whole number as an int; refuse anything else."""
    return _whole(name, count, 1, "a whole number of at least 1")


def check_not_negative(name: str, count: int) -> int:
    """A whole number of at least zero as an int; refuse anything else."""
    return _whole(name, count, 0, "a whole number that is not negative")


def check_tasks(name: str, tasks: int) -> int:
    """A number of tasks as an int; refuse fewer than two: one loss has no trade-off."""
    return _whole(name, tasks, 2, "at least 2: a trade-off needs two tasks")


def check_seed(name: str, seed: int) -> int:
    """A whole number as an int; refuse anything else."""
    return _whole(name, seed, -math.inf, "a whole number")


def _whole(name: str, value: Any, least: float, rule: str) -> int:
    whole = as_whole(value)
    if not isinstance(whole, int) or isinstance(whole, bool) or whole < least:
        raise ValueError(f"'{name}' must be {rule}. Got {quote(value)} instead.")
    return whole


def quote(value: Any) -> str:
    """A value as code, or in a few words where that is long or takes several lines, for error messages."""
    text = repr(value)
    if len(text) <= _LONG and "\n" not in text:
        return text
    return f"{text[:_LONG]}..." if isinstance(value, str) else describe_value(value)


def check_names(tasks: Sequence[str]) -> None:
    """Refuse fewer names than a trade-off has tasks."""
    if len(tasks) < 2:
        raise ValueError(
            f"'tasks' must have at least 2 names: a trade-off needs two tasks. Got {list(tasks)} instead: name a "
            "second loss, such as a cost or a penalty."
        )


def check_flag(name: str, value: bool) -> None:
    """Refuse anything but True and False: the text "false" would count as true."""
    if not isinstance(value, bool):
        raise ValueError(f"'{name}' must be True or False. Got {quote(value)} instead.")


def is_number(value: Any) -> bool:
    """Whether a value is one real number; text, tensors and booleans are not."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def check_positive(name: str, value: float) -> None:
    """Refuse anything but a positive, finite number."""
    if not is_number(value) or not 0 < value < math.inf:
        raise ValueError(f"'{name}' must be positive. Got {quote(value)} instead.")


def check_share(name: str, value: float) -> None:
    """Refuse anything but a number over 0 and under 1."""
    if not is_number(value) or not 0 < value < 1:
        raise ValueError(f"'{name}' must be over 0 and under 1, a share. Got {quote(value)} instead.")


def as_whole(value: Any) -> Any:
    """Convert a whole number of NumPy or torch to a Python int, which can be stored; return anything else unchanged."""
    if isinstance(value, Tensor) and value.ndim == 0 and not value.is_complex():
        value = value.item()
    return int(value) if isinstance(value, numbers.Integral) and not isinstance(value, bool) else value


def as_numbers(values: Any) -> list[float] | None:
    """Convert a list, an array or a tensor of real numbers to a list; None for anything else."""
    values = values.tolist() if hasattr(values, "tolist") else values
    if isinstance(values, str) or not isinstance(values, Iterable):
        return None
    plain = [value.item() if isinstance(value, Tensor) and value.ndim == 0 else value for value in values]
    return [float(value) for value in plain] if all(is_number(value) for value in plain) else None


def as_rows(name: str, rows: Any) -> Tensor:
    """Convert numbers to a float64 tensor; raise an error if they are not numbers, or rows differ in length."""
    try:
        if isinstance(rows, Tensor) and rows.is_complex():
            raise TypeError
        return torch.as_tensor(rows, dtype=torch.float64).detach().cpu()
    except (TypeError, ValueError, RuntimeError):
        raise TypeError(f"'{name}' must be real numbers in rows of equal length. Got {quote(rows)} instead.") from None


def check_tensor(name: str, tensor: Tensor) -> None:
    """Refuse lists and NumPy arrays."""
    if not isinstance(tensor, Tensor):
        raise TypeError(f"'{name}' must be a tensor. Got {type(tensor).__name__} instead.")


def check_floating(name: str, tensor: Tensor) -> None:
    """Refuse integer, bool and complex tensors."""
    check_tensor(name, tensor)
    if not tensor.is_floating_point():
        raise TypeError(f"'{name}' must be a floating-point tensor. Got {tensor.dtype} instead.")


def check_trailing(name: str, tensor: Tensor, *expected: int | str) -> None:
    """Refuse a tensor whose last dimensions differ from ``expected``; a string there is a free size."""
    check_tensor(name, tensor)
    actual = tensor.shape[-len(expected) :]
    fits = len(actual) == len(expected)
    if not fits or any(isinstance(size, int) and size != n for size, n in zip(expected, actual, strict=True)):
        shown = ", ".join(["...", *map(str, expected)])
        raise ValueError(f"'{name}' must have shape [{shown}]. Got {list(tensor.shape)} instead.")


def may_ask(tensor: Tensor) -> bool:
    """Whether reading a value needs no synchronization: on a CPU, outside a compiler."""
    return tensor.device.type == "cpu" and not torch.compiler.is_compiling()


def known_finite(*tensors: Tensor) -> bool:
    """Whether all numbers are finite, by their sums; also False if reading them is not free, or a sum overflows."""
    return all(may_ask(tensor) and math.isfinite(float(tensor.detach().sum())) for tensor in tensors)


def check_gramian(name: str, gramian: Tensor) -> int:
    """Refuse anything but a batch of square floating-point matrices; return the number of tasks."""
    check_floating(name, gramian)
    if gramian.ndim < 2 or gramian.shape[-1] != gramian.shape[-2] or gramian.shape[-1] == 0:
        raise ValueError(f"'{name}' must have shape [..., m, m]. Got {list(gramian.shape)} instead.")
    return gramian.shape[-1]


def blocks(count: int, each: int) -> list[slice]:
    """Split ``count`` rows with ``each`` numbers a row into blocks that take little memory; one block if they are few.

    Example:
        >>> blocks(3, 10)
        [slice(0, 3, None)]
    """
    size = max(1, BLOCK // max(1, each))
    return [slice(start, min(start + size, count)) for start in range(0, count, size)] or [slice(0, 0)]


def describe_value(value: Any) -> str:
    """Describe a value in a few words, for error messages."""
    if isinstance(value, Tensor):
        return f"a tensor of shape {list(value.shape)}"
    if isinstance(value, (tuple, list)):
        return f"a {type(value).__name__} of {len(value)}"
    if isinstance(value, Mapping):
        return f"a {type(value).__name__} with keys {quote(list(value)[:6])}"
    return type(value).__name__
