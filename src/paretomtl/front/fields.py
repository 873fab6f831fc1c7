"""What the fields of a front must be, for those that come from a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from paretomtl._support.files import from_lists

MOST = 10_000
"""How many solutions a front may have."""

SPLITS = ("train", "val", "test")
"""What losses and metrics may be measured on."""

_LARGEST = 2**63  # whole numbers in a file are smaller
_DTYPES = {
    "float64": torch.float64,
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}
_READINGS = ("direction", "importance", "start", "none")


def check_count(rows: Any) -> None:
    """Refuse a front of more rows of preferences than a front may have: work grows with their square."""
    count = rows if isinstance(rows, int) else len(rows) if isinstance(rows, list) else 0
    if count > MOST:
        raise ValueError(f"a front must have at most {MOST:,} solutions. Got {count:,} preferences instead")


def to_dtype(name: Any) -> torch.dtype:
    """The kind of numbers that losses are, by its name."""
    if not isinstance(name, str) or name not in _DTYPES:
        raise ValueError(f"'dtype' must be one of {', '.join(_DTYPES)}. Got {name!r:.80} instead")
    return _DTYPES[name]


def to_numbers(field: str, lists: Any, dtype: torch.dtype) -> Tensor:
    """A tensor from nested lists of numbers."""
    to_tuple(field, lists)
    try:
        return from_lists(lists, dtype)
    except (ArithmeticError, RuntimeError, TypeError, ValueError) as error:
        said = str(error).splitlines()[0]
        raise ValueError(f"'{field!s:.80}' must be numbers in rows of one length. Got something else: {said}") from None


def to_tuple(field: str, values: Any) -> tuple[Any, ...]:
    """A list of a file as it is kept in a front."""
    if not isinstance(values, list):
        raise ValueError(f"'{field}' must be a list. Got {type(values).__name__} instead")
    return tuple(values)


def to_mapping(field: str, values: Any) -> Mapping[str, Any]:
    """An object of a file as it is kept in a front."""
    if not isinstance(values, dict):
        raise ValueError(f"'{field}' must be an object. Got {type(values).__name__} instead")
    return values


def check_fields(fields: Mapping[str, Any]) -> None:
    """Refuse fields that no front has: of other kinds, or of shapes that do not go together."""
    tasks, rows, every = (len(fields[name]) for name in ("tasks", "subproblems", "preferences"))
    numbers, losses, metrics = fields["subproblems"], fields["losses"], fields["metrics"]
    need = {
        "tasks": tasks > 0 and all(isinstance(task, str) for task in fields["tasks"]),
        "preferences": fields["preferences"].shape == (every, 0 if fields["reading"] == "none" else tasks),
        "subproblems": _are(int, numbers, rows) and len(set(numbers)) == rows > 0 and set(numbers) <= set(range(every)),
        "losses": set(losses) <= set(SPLITS) and bool(losses) and _shaped(losses, (rows, tasks)),
        "metrics": set(metrics) <= set(losses) and all(_shaped(part, (rows,)) for part in metrics.values()),
        "better": all(word in ("higher", "lower") for word in fields["better"].values()),
        "status": _are(str, fields["status"], rows),
        "names": fields["names"] == () or (_are(str, fields["names"], rows) and len(set(fields["names"])) == rows),
        "since": fields["since"] is None or _are(int, fields["since"], rows),
        "epochs": fields["epochs"] == [] or _are(int, fields["epochs"], rows),
        "scale": fields["scale"] is None or fields["scale"].shape == (rows, tasks),
        "reading": fields["reading"] in _READINGS,
        "seed": fields["seed"] is None or _are(int, [fields["seed"]], 1),
        "seconds": _are(float, [fields["seconds"]], 1),
        "complete": isinstance(fields["complete"], bool),
        **{name: isinstance(fields[name], str) for name in ("problem", "method", "strategy", "ended")},
        **{name: fields[name] is None or _are(float, fields[name], tasks) for name in ("ideal", "reference")},
        **{name: _lead(fields[name], (rows,), 0) for name in ("parameters", "measured")},
        "made_by": isinstance(fields["made_by"], dict) and all(isinstance(v, str) for v in fields["made_by"].values()),
        "remarks": all(isinstance(remark, str) for remark in fields["remarks"]),
        "history": _lead(fields["history"], (rows, tasks), 1),
    }
    wrong = [name for name, good in need.items() if not good]
    if wrong:
        raise ValueError(f"invalid fields: {', '.join(wrong)}")


def _are(kind: type, values: Any, count: int) -> bool:
    """Whether these are so many values of a kind; whole numbers are numbers, truth values are not."""
    kinds = (int, float) if kind is float else kind
    if not isinstance(values, Sequence) or isinstance(values, str) or len(values) != count:
        return False
    return all(isinstance(value, kinds) and not isinstance(value, bool) and _is_small(value) for value in values)


def _is_small(value: Any) -> bool:
    """Whether a number can be computed with: whole numbers of a file may have thousands of digits."""
    return not isinstance(value, int) or abs(value) < _LARGEST


def _shaped(tensors: Mapping[str, Tensor], shape: tuple[int, ...]) -> bool:
    return all(tensor.shape == shape and tensor.is_floating_point() for tensor in tensors.values())


def _lead(tensors: Mapping[str, Tensor], sizes: tuple[int, ...], start: int) -> bool:
    """Whether the dimensions of tensors have these sizes, from a place on."""
    return all(tensor.shape[start : start + len(sizes)] == sizes for tensor in tensors.values())
