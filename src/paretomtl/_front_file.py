"""A front in a folder: numbers and words as JSON, parameters and history as tensors, nothing pickled."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from paretomtl._files import (
    from_lists,
    make_folder,
    read_record,
    read_tensors,
    sweep,
    sync_folder,
    to_lists,
    write_record,
    write_tensors,
)
from paretomtl._front_fields import check_fields

if TYPE_CHECKING:
    from paretomtl.front import Front

FORMAT = 1
"""The version of what is written."""

_MODELS = re.compile(r"[\w-]{1,100}\.safetensors")
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


def write_front(front: Front, folder: Path) -> None:
    """Write a front. A crash leaves the old one, or this."""
    make_folder(folder)
    sweep(folder)
    unfinished = folder / "models.safetensors"
    checksum = write_tensors(unfinished, _tensors(front), {"kind": "front", "format": str(FORMAT)})
    final = folder / f"models-{checksum[:16]}.safetensors"
    unfinished.replace(final)
    sync_folder(folder)  # front.json must not outlive what it names
    write_record(folder / "front.json", {"models": final.name, **_words(front)}, format=FORMAT)
    sweep_front(folder)


def read_front(folder: Path, tasks: tuple[str, ...] | None) -> dict[str, Any]:
    """The fields of a front, and of its snapshot, from its folder or that of a run; of these tasks, where given.

    A FileNotFoundError where there is no front, a ValueError for one that is damaged or of other tasks; both name it.
    """
    path = folder
    if not (folder / "front.json").exists() and (folder / "front" / "front.json").exists():
        folder = folder / "front"
    if not (folder / "front.json").exists():
        hint = (
            "an unfinished run; --resume goes on, and watch shows it"
            if (folder / "config.json").exists()
            else "no front.json"
        )
        raise FileNotFoundError(f"'path' must be the folder of a front. Got '{path}', which has {hint}.")
    words = read_record(folder / "front.json", [FORMAT])
    if tasks is not None and list(tasks) != words.get("tasks"):
        raise ValueError(f"'problem' must have the tasks {words.get('tasks')}. Got {list(tasks)} instead.")
    models = str(words.get("models"))
    if not _MODELS.fullmatch(models):
        raise ValueError(f"'{folder / 'front.json'}' must name a file of models beside it. Got {models!r:.80} instead.")
    tensors, _ = read_tensors(folder / models)
    try:
        return _fields(words, tensors, "")
    except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
        raise ValueError(f"'{folder / 'front.json'}' must describe a front. It is damaged: {error!r}.") from None


def sweep_front(folder: Path) -> None:
    """Remove what writes left that were cut short, and models that a whole front does not name."""
    sweep(folder)
    for other in leftover_models(folder):
        other.unlink(missing_ok=True)


def leftover_models(folder: Path) -> list[Path]:
    """Files of models that a front does not name; an error where it cannot be read."""
    named = read_record(folder / "front.json", [FORMAT])["models"]
    return sorted(path for path in folder.glob("models*.safetensors") if path.name != named)


def is_stored(front: Front, folder: Path) -> bool:
    """Whether it is this front, and no other one, that a folder holds."""
    try:
        words = read_record(folder / "front.json", [FORMAT])
    except (OSError, ValueError):
        return False
    return {**json.loads(json.dumps(_words(front))), "models": words.get("models")} == words


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
    }


def _fields(words: Mapping[str, Any], tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Any]:
    def under(name: str) -> dict[str, Tensor]:
        start = f"{prefix}{name}/"
        return {key.removeprefix(start): tensor for key, tensor in tensors.items() if key.startswith(start)}

    dtype = getattr(torch, words["dtype"])
    inner = words["snapshot"]
    fields = {
        **{name: words[name] for name in _PLAIN},
        "tasks": tuple(words["tasks"]),
        "preferences": from_lists(words["preferences"], torch.float64),
        "subproblems": tuple(words["subproblems"]),
        "losses": {split: from_lists(losses, dtype) for split, losses in words["losses"].items()},
        "metrics": {
            split: {name: from_lists(values, torch.float64) for name, values in metrics.items()}
            for split, metrics in words["metrics"].items()
        },
        "scale": None if words["scale"] is None else from_lists(words["scale"], torch.float64),
        "ideal": None if words.get("ideal") is None else tuple(words["ideal"]),
        "reference": None if words["reference"] is None else tuple(words["reference"]),
        "parameters": under("parameters"),
        "history": under("history"),
        "measured": under("measured"),
        "made_by": words.get("made_by", {}),
    }
    check_fields(fields)
    return {**fields, "snapshot": None if inner is None else _fields(inner, tensors, f"{prefix}snapshot/")}
