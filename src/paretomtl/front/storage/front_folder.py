"""Storage of a front in a folder: numbers and text in ``front.json``, history and models in tensor files.

``front.json`` names the other files by their checksums. Reading a front reads its numbers; models are loaded lazily.
Nothing is pickled.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from torch import Tensor

from paretomtl._support.files.atomic_files import make_folder, pointing_to_doctor, read_record, sweep, write_record
from paretomtl._support.files.locks import locked
from paretomtl._support.files.safe_open import check_folder_kind, exists, names_in, remove_files
from paretomtl._support.files.tensor_files import read_tensors, write_named_tensors
from paretomtl.front._data import FrontData
from paretomtl.front.limits import check_solution_count
from paretomtl.front.storage.model_files import open_models, write_models
from paretomtl.front.storage.record import fields_of, file_of, record_of, tensors_of

FORMAT = 2
"""The format version of new fronts."""

_FILES = ("models", "numbers")
_NAME = re.compile(rf"(?:{'|'.join(_FILES)})-([0-9a-f]{{16}})\.safetensors")  # other files in the folder are the user's


def write_front(front: FrontData, folder: Path, *, follow: bool = True) -> None:
    """Write a front atomically: a crash leaves either the old front or the new one. One process at a time writes it.

    Args:
        front: the front to write.
        folder: the folder to write to.
        follow: whether the folder itself may be a link; inside a run's folder it may not.
    """
    check_solution_count(len(front.preferences))
    if not follow:
        check_folder_kind(folder)
    if exists(folder / "config.json") and exists(folder / "manifest.json"):  # it would hide the run's own
        raise ValueError(
            f"'path' must not be the folder of a run, which stores its front itself. Got '{folder}': choose another."
        )
    make_folder(folder)
    with locked(folder / ".front.json.lock"):  # the sweeps would remove what another process is writing
        sweep(folder, follow=follow)
        write_record(folder / "front.json", _write_files(front, folder), format=FORMAT)
        sweep_front(folder, follow=follow)


def _write_files(front: FrontData, folder: Path) -> dict[str, Any]:
    """Write the files that a front and its snapshot need; return the record that names them."""
    models = write_models(front.models, folder)  # first: models of a loaded front may be gone
    numbers, tensors = None, tensors_of(front)
    if tensors:
        path, checksum = write_named_tensors(folder, "numbers", tensors, {"kind": "front"})
        numbers = {"file": path.name, "sha256": checksum}
    return {
        **record_of(front),
        "numbers": numbers,
        "models": models,
        "snapshot": None if front.snapshot is None else _write_files(front.snapshot, folder),
    }


def read_front(folder: Path, tasks: tuple[str, ...] | None) -> dict[str, Any]:
    """Read the fields of a front and its snapshot from its folder or a run's; check its tasks if they are given.

    Raises FileNotFoundError if there is no front, and ValueError if it is damaged or has other tasks.
    """
    path = folder
    if not exists(folder / "front.json") and exists(folder / "front"):
        check_folder_kind(folder / "front")
        if exists(folder / "front" / "front.json"):
            folder = folder / "front"
    if not exists(folder / "front.json"):
        hint = (
            "an unfinished run; resume=True (--resume) continues it, and watch shows it"
            if exists(folder / "config.json")
            else "no front.json"
        )
        hint = f"has {hint}" if exists(folder) else "is not there"
        raise FileNotFoundError(f"'path' must be the folder of a front. Got '{path}', which {hint}.")
    with pointing_to_doctor(path):
        record = read_record(folder / "front.json", (FORMAT,))
    if tasks is not None and list(tasks) != record.get("tasks"):
        raise ValueError(f"'problem' must have the tasks {record.get('tasks')}. Got {list(tasks)} instead.")
    with pointing_to_doctor(path):
        return _read_fields(record, folder)


def _read_fields(record: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    tensors: Mapping[str, Tensor] = {}
    if record.get("numbers") is not None:
        tensors, _ = read_tensors(*file_of(record["numbers"], "numbers", folder))
    with _damage_named(folder):
        fields = fields_of(record, tensors)
        entry, inner = record["models"], _snapshot_in(record)
    fields["models"] = open_models(entry, folder, len(fields["subproblems"]))
    return {**fields, "snapshot": None if inner is None else _read_fields(inner, folder)}


def _snapshot_in(record: Mapping[str, Any]) -> Mapping[str, Any] | None:
    inner = record["snapshot"]
    if inner is not None and not isinstance(inner, dict):
        raise ValueError(f"'snapshot' must be an object. Got {type(inner).__name__} instead")
    return inner


@contextmanager
def _damage_named(folder: Path) -> Iterator[None]:
    """Turn any exception that a damaged record causes into an error that names the file."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
        reason = f"it has no {error}" if isinstance(error, KeyError) else error
        reason = reason if isinstance(error, (KeyError, ValueError)) else repr(error)
        raise ValueError(f"'{folder / 'front.json'}' must describe a front. It is damaged: {reason}.") from None


def verify_models(front: FrontData) -> None:
    """Read all models of a front and of its snapshots; raise a ValueError for one that is damaged."""
    inner: FrontData | None = front
    while inner is not None:
        inner.models.verify()
        inner = inner.snapshot


def sweep_front(folder: Path, *, follow: bool = True) -> None:
    """Remove leftovers of interrupted writes, and tensor files that the front does not name."""
    sweep(folder, follow=follow)
    named = _named(folder)
    remove_files(folder, lambda name, _: _is_other(name, named), follow=follow)


def leftover_files(folder: Path) -> list[Path]:
    """Tensor files that a front does not name; raises an error if the front cannot be read."""
    named = _named(folder)
    return [folder / name for name in names_in(folder, follow=False) if _is_other(name, named)]


def _named(folder: Path) -> set[Any]:
    record: Any = read_record(folder / "front.json", (FORMAT,))
    named: set[Any] = set()
    while isinstance(record, dict):
        entries = [record.get(name) for name in _FILES]
        entries += [entry.get("common") for entry in entries if isinstance(entry, dict)]
        named |= {str(entry.get("file")) for entry in entries if isinstance(entry, dict)}
        record = record.get("snapshot")
    return named


def _is_other(name: str, named: set[Any]) -> bool:
    return _NAME.fullmatch(name) is not None and name not in named


def is_stored(front: FrontData, folder: Path) -> bool:
    """Whether a folder holds exactly this front."""
    try:
        record: Any = read_record(folder / "front.json", (FORMAT,))
    except (OSError, ValueError):
        return False
    inner: FrontData | None = front
    while inner is not None:
        own = json.loads(json.dumps(record_of(inner)))
        if not isinstance(record, dict) or any(record.get(name) != value for name, value in own.items()):
            return False
        inner, record = inner.snapshot, record.get("snapshot")
    return record is None
