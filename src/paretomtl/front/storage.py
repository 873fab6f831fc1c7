"""Storage of a front in a folder: numbers and words as JSON, parameters and history as tensors, nothing pickled.

A checksum tells damage, not forgery, so that the fields behind it are checked, too: kinds, shapes and ranges.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from paretomtl._support.atomic_files import (
    make_folder,
    pointing_to_doctor,
    read_record,
    read_tensors,
    sweep,
    sync_folder,
    write_record,
    write_tensors,
)
from paretomtl._support.safe_open import check_folder_kind, exists, names_in, remove_files
from paretomtl._support.splits import SPLITS
from paretomtl._support.tensor_json import from_lists, to_lists
from paretomtl.front._data import FrontData
from paretomtl.front.limits import check_solution_count

FORMAT = 1
"""The version of what is written."""

_MODELS = re.compile(r"models-([0-9a-f]{16})\.safetensors")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_CHECKSUM = "models_sha256"  # of the tensors in that file; fronts of earlier versions have its first digits in the name
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
_LARGEST = 2**63  # whole numbers in a file are smaller
_DTYPES = {
    "float64": torch.float64,
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}
_READINGS = ("direction", "importance", "start", "none")


def write_front(front: FrontData, folder: Path, *, follow: bool = True) -> None:
    """Write a front. A crash leaves the old one, or this.

    Args:
        front: what to write.
        folder: where.
        follow: whether the folder itself may be a link; inside of a run's folder it may not.
    """
    check_solution_count(len(front.preferences))
    if not follow:
        check_folder_kind(folder)
    if exists(folder / "config.json") and exists(folder / "manifest.json"):  # Front.load would read this one ever after
        raise ValueError(
            f"'path' must not be the folder of a run, which stores its front itself. Got '{folder}': take another."
        )
    make_folder(folder)
    sweep(folder, follow=follow)
    named: dict[str, str | None] = {"models": None}
    tensors = _tensors(front)
    if tensors:
        unfinished = folder / "models.safetensors"
        checksum = write_tensors(unfinished, tensors, {"kind": "front", "format": str(FORMAT)})
        final = folder / f"models-{checksum[:16]}.safetensors"
        unfinished.replace(final)
        sync_folder(folder)  # front.json must not outlive what it names
        named = {"models": final.name, _CHECKSUM: checksum}
    write_record(folder / "front.json", {**named, **_to_record(front)}, format=FORMAT)
    sweep_front(folder, follow=follow)


def read_front(folder: Path, tasks: tuple[str, ...] | None) -> dict[str, Any]:
    """The fields of a front, and of its snapshot, from its folder or that of a run; of these tasks, where given.

    A FileNotFoundError where there is no front, a ValueError for one that is damaged or of other tasks; both name it.
    """
    path = folder
    if not exists(folder / "front.json") and exists(folder / "front"):
        check_folder_kind(folder / "front")
        if exists(folder / "front" / "front.json"):
            folder = folder / "front"
    if not exists(folder / "front.json"):
        hint = (
            "an unfinished run; resume=True (--resume) goes on, and watch shows it"
            if exists(folder / "config.json")
            else "no front.json"
        )
        hint = f"has {hint}" if exists(folder) else "is not there"
        raise FileNotFoundError(f"'path' must be the folder of a front. Got '{path}', which {hint}.")
    with pointing_to_doctor(path):
        record = read_record(folder / "front.json", [FORMAT])
    if tasks is not None and list(tasks) != record.get("tasks"):
        raise ValueError(f"'problem' must have the tasks {record.get('tasks')}. Got {list(tasks)} instead.")
    with pointing_to_doctor(path):
        return _read_fields(record, folder)


def _read_fields(record: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    tensors: Mapping[str, Tensor] = {}
    if record.get("models", "") is not None:  # a front of losses alone names none
        tensors, _ = read_tensors(folder / str(record.get("models")), _checksum_in(record, folder))
    try:
        return _fields(record, tensors, "")
    except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
        reason = f"it has no {error}" if isinstance(error, KeyError) else error
        reason = reason if isinstance(error, (KeyError, ValueError)) else repr(error)
        raise ValueError(f"'{folder / 'front.json'}' must describe a front. It is damaged: {reason}.") from None


def _checksum_in(record: Mapping[str, Any], folder: Path) -> str:
    """The checksum of the file of models, or its first 16 digits, which are in the name of older fronts."""
    models, whole = str(record.get("models")), record.get(_CHECKSUM)
    match = _MODELS.fullmatch(models)
    if match is None:
        raise ValueError(f"'{folder / 'front.json'}' must name a file of models beside it. Got {models!r:.80} instead.")
    if whole is None:
        return match[1]
    if not isinstance(whole, str) or not _SHA256.fullmatch(whole) or not whole.startswith(match[1]):
        rule = f"must have a checksum in '{_CHECKSUM}' that the name of its models begins"
        raise ValueError(f"'{folder / 'front.json'}' {rule}. Got {whole!r:.80} and {models!r} instead.")
    return whole


def sweep_front(folder: Path, *, follow: bool = True) -> None:
    """Remove what writes left that were cut short, and models that a whole front does not name."""
    sweep(folder, follow=follow)
    named = _named(folder)
    remove_files(folder, lambda name, _: _is_other(name, named), follow=follow)


def leftover_models(folder: Path) -> list[Path]:
    """Files of models that a front does not name; an error where it cannot be read."""
    named = _named(folder)
    return [folder / name for name in names_in(folder, follow=False) if _is_other(name, named)]


def _named(folder: Path) -> Any:
    return read_record(folder / "front.json", [FORMAT])["models"]


def _is_other(name: str, named: Any) -> bool:
    return fnmatchcase(name, "models*.safetensors") and name != named


def is_stored(front: FrontData, folder: Path) -> bool:
    """Whether it is this front, and no other one, that a folder holds."""
    try:
        record = read_record(folder / "front.json", [FORMAT])
    except (OSError, ValueError):
        return False
    named = {name: record[name] for name in ("models", _CHECKSUM) if name in record}
    return {**json.loads(json.dumps(_to_record(front))), **named} == record


def _tensors(front: FrontData, prefix: str = "") -> dict[str, Tensor]:
    tensors = {f"{prefix}parameters/{name}": tensor for name, tensor in front.parameters.items()}
    tensors |= {f"{prefix}history/{name}": tensor for name, tensor in front.history.items()}
    tensors |= {f"{prefix}measured/{name}": tensor for name, tensor in front.measured.items()}
    return tensors if front.snapshot is None else tensors | _tensors(front.snapshot, f"{prefix}snapshot/")


def _to_record(front: FrontData) -> dict[str, Any]:
    plain = {name: getattr(front, name) for name in _PLAIN}
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
        "snapshot": None if front.snapshot is None else _to_record(front.snapshot),
        **({"made_by": dict(front.made_by)} if front.made_by else {}),  # fronts from before stay as they were
        **({"remarks": list(front.remarks)} if front.remarks else {}),
        **({"names": list(front.names)} if front.names else {}),
        **({"ended": front.ended} if front.ended else {}),
    }


def _fields(record: Mapping[str, Any], tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Any]:
    def under(name: str) -> dict[str, Tensor]:
        start = f"{prefix}{name}/"
        return {key.removeprefix(start): tensor for key, tensor in tensors.items() if key.startswith(start)}

    check_solution_count(record["preferences"])
    dtype = _to_dtype(record["dtype"])
    inner = None if record["snapshot"] is None else _to_mapping("snapshot", record["snapshot"])
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
        "parameters": under("parameters"),
        "history": under("history"),
        "measured": under("measured"),
        "made_by": record.get("made_by", {}),
        "remarks": _to_tuple("remarks", record.get("remarks", [])),
        "names": _to_tuple("names", record.get("names", [])),
        "ended": record.get("ended", ""),
    }
    _check_fields(fields)
    return {**fields, "snapshot": None if inner is None else _fields(inner, tensors, f"{prefix}snapshot/")}


def _to_dtype(name: Any) -> torch.dtype:
    """The kind of numbers that losses are, by its name."""
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
    """A list of a file as it is kept in a front."""
    if not isinstance(values, list):
        raise ValueError(f"'{field}' must be a list. Got {type(values).__name__} instead")
    return tuple(values)


def _to_mapping(field: str, values: Any) -> Mapping[str, Any]:
    """An object of a file as it is kept in a front."""
    if not isinstance(values, dict):
        raise ValueError(f"'{field}' must be an object. Got {type(values).__name__} instead")
    return values


def _check_fields(fields: Mapping[str, Any]) -> None:
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
    """Whether these are ``count`` values of a kind; whole numbers are numbers, truth values are not."""
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
