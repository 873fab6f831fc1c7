"""The record of a front: its numbers and text as JSON, and the checks of what is read back.

A checksum detects damage, not forgery. Types, shapes and ranges are therefore checked too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from paretomtl._support.random_state import model_seed
from paretomtl._support.splits import SPLITS
from paretomtl._support.tensor_json import from_lists, to_lists
from paretomtl.front._data import FrontData
from paretomtl.front.limits import check_solution_count

_PLAIN = (
    "problem",
    "method",
    "reading",
    "status",
    "since",
    "seed",
    "seconds",
    "better",
    "epochs",
    "complete",
    "strategy",
)
_SHA256 = re.compile(r"[0-9a-f]{64}")
_LARGEST = 2**63  # integers in a file are smaller
_DTYPES = {
    "float64": torch.float64,
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}
_READINGS = ("direction", "importance", "start", "none")


def record_of(front: FrontData) -> dict[str, Any]:
    """The numbers and text of a front for JSON, without history, models and snapshot."""
    plain, seeds = {name: getattr(front, name) for name in _PLAIN}, list(front.model_seeds)
    return {
        **{name: list(value) if isinstance(value, tuple) else value for name, value in plain.items()},
        "better": dict(front.better),
        "tasks": list(front.tasks),
        "preferences": to_lists(front.preferences),
        "subproblems": list(front.subproblems),
        "dtype": str(next(iter(front.losses.values())).dtype).removeprefix("torch."),
        "losses": {split: to_lists(losses) for split, losses in front.losses.items()},
        "metrics": {
            split: {name: to_lists(values) for name, values in metrics.items()}
            for split, metrics in front.metrics.items()
        },
        "scale": None if front.scale is None else to_lists(front.scale),
        "ideal": None if front.ideal is None else list(front.ideal),
        "reference": front.reference,
        **({"made_by": dict(front.made_by)} if front.made_by else {}),  # earlier fronts keep their records
        **({"remarks": list(front.remarks)} if front.remarks else {}),
        **({"decisions": list(front.decisions)} if front.decisions else {}),
        **({"names": list(front.names)} if front.names else {}),
        **({"ended": front.ended} if front.ended else {}),
        **({"data": dict(front.data)} if front.data else {}),
        **({"probes": {split: to_lists(losses) for split, losses in front.probes.items()}} if front.probes else {}),
        **({} if seeds == [model_seed(front.seed or 0, k) for k in front.subproblems] else {"model_seeds": seeds}),
    }


def tensors_of(front: FrontData) -> dict[str, Tensor]:
    """The tensors of a front that are too large for JSON: its history, and what its method measured."""
    tensors = {f"history/{name}": tensor for name, tensor in front.history.items()}
    return tensors | {f"measured/{name}": tensor for name, tensor in front.measured.items()}


def fields_of(record: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    """The fields of a front from its record and its tensors; models and snapshot are not among them."""
    check_solution_count(record["preferences"])
    dtype = _to_dtype(record["dtype"])
    fields = {
        **{name: record[name] for name in _PLAIN},
        "tasks": _to_tuple("tasks", record["tasks"]),
        "preferences": _to_numbers("preferences", record["preferences"], torch.float64),
        "subproblems": _to_tuple("subproblems", record["subproblems"]),
        "losses": {
            split: _to_numbers(f"losses on {split}", losses, dtype)
            for split, losses in _to_mapping("losses", record["losses"]).items()
        },
        "metrics": {
            split: {
                name: _to_numbers(f"{name} on {split}", values, torch.float64)
                for name, values in _to_mapping("metrics", metrics).items()
            }
            for split, metrics in _to_mapping("metrics", record["metrics"]).items()
        },
        "better": _to_mapping("better", record["better"]),
        "scale": None if record["scale"] is None else _to_numbers("scale", record["scale"], torch.float64),
        "ideal": None if record.get("ideal") is None else _to_tuple("ideal", record["ideal"]),
        "reference": None if record["reference"] is None else _to_tuple("reference", record["reference"]),
        "history": below("history", tensors),
        "measured": below("measured", tensors),
        "made_by": record.get("made_by", {}),
        "remarks": _to_tuple("remarks", record.get("remarks", [])),
        "decisions": _to_tuple("decisions", record.get("decisions", [])),
        "names": _to_tuple("names", record.get("names", [])),
        "ended": record.get("ended", ""),
        "data": record.get("data", {}),
        "probes": {
            split: _to_numbers(f"probes on {split}", losses, torch.float64)
            for split, losses in _to_mapping("probes", record.get("probes", {})).items()
        },
        "model_seeds": _to_tuple("model_seeds", record.get("model_seeds", [])),
    }
    _check_fields(fields)
    return fields


def below(name: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors whose names begin with ``name/``, without that prefix."""
    start = f"{name}/"
    return {key.removeprefix(start): tensor for key, tensor in tensors.items() if key.startswith(start)}


def _to_dtype(name: Any) -> torch.dtype:
    """The dtype of losses, by its name."""
    if not isinstance(name, str) or name not in _DTYPES:
        raise ValueError(f"'dtype' must be one of {', '.join(_DTYPES)}. Got {name!r:.80} instead")
    return _DTYPES[name]


def _to_numbers(field: str, lists: Any, dtype: torch.dtype) -> Tensor:
    """A tensor from nested lists of numbers."""
    _to_tuple(field, lists)
    try:
        return from_lists(lists, dtype)
    except (ArithmeticError, RuntimeError, TypeError, ValueError) as error:
        reason = str(error).splitlines()[0]
        rule = f"'{field!s:.80}' must be numbers in rows of one length"
        raise ValueError(f"{rule}. Got something else: {reason}") from None


def _to_tuple(field: str, values: Any) -> tuple[Any, ...]:
    """A list from a file as a tuple."""
    if not isinstance(values, list):
        raise ValueError(f"'{field}' must be a list. Got {type(values).__name__} instead")
    return tuple(values)


def file_of(entry: Any, stem: str, folder: Path) -> tuple[Path, str]:
    """The file that an entry of ``front.json`` names, ``STEM-SHA256[:16].safetensors``, and its checksum."""
    name, checksum = (entry.get("file"), entry.get("sha256")) if isinstance(entry, dict) else (entry, None)
    rule = f"'{folder / 'front.json'}' must name a file of {stem} in the same folder, and its checksum"
    whole = isinstance(checksum, str) and _SHA256.fullmatch(checksum) is not None
    if not whole or name != f"{stem}-{str(checksum)[:16]}.safetensors":
        raise ValueError(f"{rule}. Got {name!r:.80} and {checksum!r:.80} instead.")
    return folder / name, str(checksum)


def _to_mapping(field: str, values: Any) -> Mapping[str, Any]:
    """An object from a file, checked to be one."""
    if not isinstance(values, dict):
        raise ValueError(f"'{field}' must be an object. Got {type(values).__name__} instead")
    return values


def _check_fields(fields: Mapping[str, Any]) -> None:
    """Refuse fields of wrong types or of inconsistent shapes."""
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
        "model_seeds": fields["model_seeds"] == () or _are(int, fields["model_seeds"], rows),
        "scale": fields["scale"] is None or fields["scale"].shape == (rows, tasks),
        "reading": fields["reading"] in _READINGS,
        "seed": fields["seed"] is None or _are(int, [fields["seed"]], 1),
        "seconds": _are(float, [fields["seconds"]], 1),
        "complete": isinstance(fields["complete"], bool),
        **{name: isinstance(fields[name], str) for name in ("problem", "method", "strategy", "ended")},
        **{name: fields[name] is None or _are(float, fields[name], tasks) for name in ("ideal", "reference")},
        "measured": _lead(fields["measured"], (rows,), 0),
        **{
            name: isinstance(fields[name], dict) and all(isinstance(v, str) for v in fields[name].values())
            for name in ("made_by", "data")
        },
        "probes": _shaped(fields["probes"], (rows, tasks)),
        **{name: all(isinstance(text, str) for text in fields[name]) for name in ("remarks", "decisions")},
        "history": _lead(fields["history"], (rows, tasks), 1),
    }
    wrong = [name for name, good in need.items() if not good]
    if wrong:
        raise ValueError(f"invalid fields: {', '.join(wrong)}")


def _are(kind: type, values: Any, count: int) -> bool:
    """Whether these are ``count`` values of a type. Integers count as floats; booleans are neither."""
    kinds = (int, float) if kind is float else kind
    if not isinstance(values, Sequence) or isinstance(values, str) or len(values) != count:
        return False
    return all(isinstance(value, kinds) and not isinstance(value, bool) and _is_small(value) for value in values)


def _is_small(value: Any) -> bool:
    """Whether an integer fits into 64 bits: integers in a file may have thousands of digits."""
    return not isinstance(value, int) or abs(value) < _LARGEST


def _shaped(tensors: Mapping[str, Tensor], shape: tuple[int, ...]) -> bool:
    return all(tensor.shape == shape and tensor.is_floating_point() for tensor in tensors.values())


def _lead(tensors: Mapping[str, Tensor], sizes: tuple[int, ...], start: int) -> bool:
    """Whether the dimensions of all tensors have these sizes, from dimension ``start`` on."""
    return all(tensor.shape[start : start + len(sizes)] == sizes for tensor in tensors.values())
