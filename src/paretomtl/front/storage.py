"""A front in a folder: numbers and words as JSON, parameters and history as tensors, nothing pickled."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from paretomtl._support.files import (
    make_folder,
    pointing_to_doctor,
    read_record,
    read_tensors,
    sweep,
    sync_folder,
    to_lists,
    write_record,
    write_tensors,
)
from paretomtl._support.safe_open import check_folder_kind, exists, names_in, remove_files
from paretomtl.front.fields import check_count, check_fields, to_dtype, to_mapping, to_numbers, to_tuple

if TYPE_CHECKING:
    from paretomtl.front import Front

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


def write_front(front: Front, folder: Path, *, follow: bool = True) -> None:
    """Write a front. A crash leaves the old one, or this.

    Args:
        front: what to write.
        folder: where.
        follow: whether the folder itself may be a link; inside of a run's folder it may not.
    """
    check_count(len(front.preferences))
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
    write_record(folder / "front.json", {**named, **_words(front)}, format=FORMAT)
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
        words = read_record(folder / "front.json", [FORMAT])
    if tasks is not None and list(tasks) != words.get("tasks"):
        raise ValueError(f"'problem' must have the tasks {words.get('tasks')}. Got {list(tasks)} instead.")
    with pointing_to_doctor(path):
        return _read_fields(words, folder)


def _read_fields(words: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    tensors: Mapping[str, Tensor] = {}
    if words.get("models", "") is not None:  # a front of losses alone names none
        tensors, _ = read_tensors(folder / str(words.get("models")), _checksum_in(words, folder))
    try:
        return _fields(words, tensors, "")
    except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
        said = f"it has no {error}" if isinstance(error, KeyError) else error
        said = said if isinstance(error, (KeyError, ValueError)) else repr(error)
        raise ValueError(f"'{folder / 'front.json'}' must describe a front. It is damaged: {said}.") from None


def _checksum_in(words: Mapping[str, Any], folder: Path) -> str:
    """What the checksum of the file of models begins with: all of it, or the 16 digits in the name of older fronts."""
    models, whole = str(words.get("models")), words.get(_CHECKSUM)
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


def is_stored(front: Front, folder: Path) -> bool:
    """Whether it is this front, and no other one, that a folder holds."""
    try:
        words = read_record(folder / "front.json", [FORMAT])
    except (OSError, ValueError):
        return False
    named = {name: words[name] for name in ("models", _CHECKSUM) if name in words}
    return {**json.loads(json.dumps(_words(front))), **named} == words


def _tensors(front: Front, prefix: str = "") -> dict[str, Tensor]:
    found = {f"{prefix}parameters/{name}": tensor for name, tensor in front.parameters.items()}
    found |= {f"{prefix}history/{name}": tensor for name, tensor in front.history.items()}
    found |= {f"{prefix}measured/{name}": tensor for name, tensor in front.measured.items()}
    return found if front.snapshot is None else found | _tensors(front.snapshot, f"{prefix}snapshot/")


def _words(front: Front) -> dict[str, Any]:
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
        "snapshot": None if front.snapshot is None else _words(front.snapshot),
        **({"made_by": dict(front.made_by)} if front.made_by else {}),  # fronts from before stay as they were
        **({"remarks": list(front.remarks)} if front.remarks else {}),
        **({"names": list(front.names)} if front.names else {}),
        **({"ended": front.ended} if front.ended else {}),
    }


def _fields(words: Mapping[str, Any], tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Any]:
    def under(name: str) -> dict[str, Tensor]:
        start = f"{prefix}{name}/"
        return {key.removeprefix(start): tensor for key, tensor in tensors.items() if key.startswith(start)}

    check_count(words["preferences"])
    dtype = to_dtype(words["dtype"])
    inner = None if words["snapshot"] is None else to_mapping("snapshot", words["snapshot"])
    fields = {
        **{name: words[name] for name in _PLAIN},
        "tasks": to_tuple("tasks", words["tasks"]),
        "preferences": to_numbers("preferences", words["preferences"], torch.float64),
        "subproblems": to_tuple("subproblems", words["subproblems"]),
        "losses": {
            split: to_numbers(f"losses on {split}", losses, dtype)
            for split, losses in to_mapping("losses", words["losses"]).items()
        },
        "metrics": {
            split: {
                name: to_numbers(f"{name} on {split}", values, torch.float64)
                for name, values in to_mapping("metrics", metrics).items()
            }
            for split, metrics in to_mapping("metrics", words["metrics"]).items()
        },
        "better": to_mapping("better", words["better"]),
        "scale": None if words["scale"] is None else to_numbers("scale", words["scale"], torch.float64),
        "ideal": None if words.get("ideal") is None else to_tuple("ideal", words["ideal"]),
        "reference": None if words["reference"] is None else to_tuple("reference", words["reference"]),
        "parameters": under("parameters"),
        "history": under("history"),
        "measured": under("measured"),
        "made_by": words.get("made_by", {}),
        "remarks": to_tuple("remarks", words.get("remarks", [])),
        "names": to_tuple("names", words.get("names", [])),
        "ended": words.get("ended", ""),
    }
    check_fields(fields)
    return {**fields, "snapshot": None if inner is None else _fields(inner, tensors, f"{prefix}snapshot/")}
