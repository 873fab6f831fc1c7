"""What the fields of a front must be, for those that come from a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

_SPLITS = ("train", "val", "test")
_READINGS = ("direction", "importance", "start")


def check_fields(fields: Mapping[str, Any]) -> None:
    """Refuse fields that no front has: of other kinds, or of shapes that do not go together."""
    tasks, rows, every = (len(fields[name]) for name in ("tasks", "subproblems", "preferences"))
    numbers, losses, metrics = fields["subproblems"], fields["losses"], fields["metrics"]
    need = {
        "tasks": tasks > 0 and all(isinstance(task, str) for task in fields["tasks"]),
        "preferences": fields["preferences"].shape == (every, tasks),
        "subproblems": _are(int, numbers, len(set(numbers))) and rows > 0 and set(numbers) <= set(range(every)),
        "losses": set(losses) <= set(_SPLITS) and bool(losses) and _shaped(losses, (rows, tasks)),
        "metrics": set(metrics) <= set(losses) and all(_shaped(part, (rows,)) for part in metrics.values()),
        "better": set(fields["better"].values()) <= {"higher", "lower"},
        "status": _are(str, fields["status"], rows),
        "since": fields["since"] is None or _are(int, fields["since"], rows),
        "epochs": fields["epochs"] == [] or _are(int, fields["epochs"], rows),
        "scale": fields["scale"] is None or fields["scale"].shape == (rows, tasks),
        "reading": fields["reading"] in _READINGS,
        "seed": _are(int, [fields["seed"]], 1),
        "seconds": _are(float, [fields["seconds"]], 1),
        "complete": isinstance(fields["complete"], bool),
        **{name: isinstance(fields[name], str) for name in ("problem", "method", "strategy")},
        **{name: fields[name] is None or _are(float, fields[name], tasks) for name in ("ideal", "reference")},
        **{name: _lead(fields[name], (rows,), 0) for name in ("parameters", "measured")},
        "made_by": isinstance(fields["made_by"], dict) and all(isinstance(v, str) for v in fields["made_by"].values()),
        "history": _lead(fields["history"], (rows, tasks), 1),
    }
    wrong = [name for name, good in need.items() if not good]
    if wrong:
        raise ValueError(f"no front has such {', '.join(wrong)}")


def _are(kind: type, values: Any, count: int) -> bool:
    """Whether these are so many values of a kind; whole numbers are numbers, truth values are not."""
    kinds = (int, float) if kind is float else kind
    if not isinstance(values, Sequence) or isinstance(values, str) or len(values) != count:
        return False
    return all(isinstance(value, kinds) and not isinstance(value, bool) for value in values)


def _shaped(tensors: Mapping[str, Tensor], shape: tuple[int, ...]) -> bool:
    return all(tensor.shape == shape and tensor.is_floating_point() for tensor in tensors.values())


def _lead(tensors: Mapping[str, Tensor], sizes: tuple[int, ...], start: int) -> bool:
    """Whether the dimensions of tensors have these sizes, from a place on."""
    return all(tensor.shape[start : start + len(sizes)] == sizes for tensor in tensors.values())
