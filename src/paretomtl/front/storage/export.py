"""Export of one model of a front: its weights with a card, or the whole model as TorchScript or ONNX."""

from __future__ import annotations

import inspect
import json
import logging
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map

from paretomtl._support.files.atomic_files import check_file, read_json, write_text
from paretomtl._support.files.safe_open import names_in
from paretomtl._support.files.tensor_files import write_tensors
from paretomtl._support.imports.optional_packages import require, version_of
from paretomtl._support.tensor_json import to_lists
from paretomtl._support.text import join_names
from paretomtl.front._front import Front
from paretomtl.front.storage.export_inputs import WEIGHTS_ADVICE

FORMAT = 1
"""The version of the card."""

_STEM = "model"  # of the files in a folder
_IDENTITY = "problem", "method", "seed", "k", "losses"  # fields of a card that tell models apart
_EXPORTED = ".safetensors", ".pt", ".onnx"
_REASON = 300  # letters of an exporter's error that are shown
_READINGS = {
    "direction": "the losses were to lie along this direction: a large entry allows a large loss",
    "importance": "the losses were weighted by this: a large entry asks for a small loss",
    "start": "no preference: the model only had a start of its own",
    "none": "no preference: the model was trained elsewhere",
}


def export_weights(front: Front, k: int, path: Path, *, make: str | None, facts: Mapping[str, Any]) -> list[Path]:
    """Write a model's weights as safetensors, and a card in JSON.

    Args:
        front: with its problem, tensors have the names of the model's ``state_dict``; without it, those of parameters
            and buffers. They differ only for tied weights and for buffers that are not persistent.
        k: the model.
        path: a file that ends in ``.safetensors``, or a folder, which gets ``model.safetensors`` and ``model.json``.
        make: lines of Python that make ``model`` before its weights are loaded; None if unknown.
        facts: further fields of the card.

    Returns:
        Both files.
    """
    tensors = front.state_dict(k) if front.model_factory is None else front.model(k).state_dict()
    weights = weights_file(path)
    weights.parent.mkdir(parents=True, exist_ok=True)
    card = weights.with_suffix(".json")
    meta = {"problem": front.problem, "k": str(k), "card": card.name}
    checksum = write_tensors(weights, tensors, meta)
    described = {
        **_card(front, k),
        **facts,
        "weights": {
            "file": weights.name,
            "sha256 of tensors": checksum,
            "numbers": sum(map(Tensor.numel, tensors.values())),
        },
        "load": snippet(weights.name if weights.is_absolute() else weights.as_posix(), make, _dtype(tensors)),
    }
    write_text(card, json.dumps(described, indent=2, ensure_ascii=False) + "\n")
    return [weights, card]


def weights_file(path: Path) -> Path:
    """The file of the weights: the path itself, or a file in the folder that it names."""
    return path if path.suffix == ".safetensors" else path / f"{_STEM}.safetensors"


def find_other_exports(front: Front, k: int, folders: Iterable[Path]) -> list[Path]:
    """Files of earlier exports in these folders, if their card is that of another model."""
    found: list[Path] = []
    new = _card(front, k)
    for folder in dict.fromkeys(folders):
        try:
            old = read_json(folder / f"{_STEM}.json")
        except (OSError, ValueError):
            continue
        if isinstance(old, dict) and "k" in old and any(old.get(name) != new[name] for name in _IDENTITY):
            found += [folder / name for name in names_in(folder) if Path(name).suffix in _EXPORTED]
    return found


def snippet(weights: str, make: str | None, dtype: torch.dtype) -> str:
    """Python that loads the weights, to be run where the path and the model's code are found."""
    lines = ["import torch", "from safetensors.torch import load_file", ""]
    lines += [make or "model = ...  # the module as it was made for training"]
    lines += [] if dtype == torch.float32 else [f"model.to({dtype})"]
    lines += [f"model.load_state_dict(load_file({json.dumps(weights)}))", "model.eval()"]
    return "\n".join(lines)


def _card(front: Front, k: int) -> dict[str, Any]:
    row, preference = front.subproblems.index(k), front.preferences[k].tolist()
    by_task = {split: to_lists(losses[row]) for split, losses in front.losses.items()}
    return {
        "format": FORMAT,
        "problem": front.problem,
        "method": front.method,
        "seed": front.seed,
        "k": k,
        **({"name": front.names[row]} if front.names else {}),
        "preference": None if front.reading == "none" else dict(zip(front.tasks, preference, strict=True)),
        "reading": front.reading,
        "reading_in_words": _READINGS.get(front.reading, front.reading),
        "losses": {split: dict(zip(front.tasks, values, strict=True)) for split, values in by_task.items()},
        "metrics": {
            split: {name: to_lists(values[row]) for name, values in metrics.items()}
            for split, metrics in front.metrics.items()
        },
        "better": dict(front.better),
        "status": front.status[row],
        "epoch": front.epochs[row] if front.epochs else None,
        "complete": front.complete,
        "made_by": dict(front.made_by),
        "versions": {name: version_of(name) for name in ("paretomtl", "torch")},
    }


def _dtype(tensors: Mapping[str, Tensor]) -> torch.dtype:
    return next((tensor.dtype for tensor in tensors.values() if tensor.is_floating_point()), torch.float32)


@dataclass(frozen=True)
class ExportedModel:
    """An exported model file: its inputs, and what the exporter warned of.

    Attributes:
        inputs: their names, in order.
        fixed: what inputs have fixed sizes besides the number of samples, such as a length; for ONNX.
        notes: warnings of the exporter.
    """

    inputs: list[str]
    fixed: list[str]
    notes: list[str]


def export_torchscript(model: nn.Module, path: Path, inputs: tuple[Any, ...], others: tuple[Any, ...]) -> ExportedModel:
    """Trace a model into a file that ``torch.jit.load`` reads without the model's code.

    Args:
        model: in eval mode.
        path: the file.
        inputs: the inputs to trace with.
        others: inputs with another number of samples. The traced model must match the model bit by bit on both.

    Returns:
        Its inputs, and the warnings of the tracer.
    """
    names: list[str] = []

    def write(unfinished: Path) -> None:
        traced: Any = _trace(model, inputs, strict=False, check_trace=False)
        for some in (inputs, others):
            if not _same(model(*some), traced(*some)):
                raise RuntimeError("the outputs of the traced model differ from those of the model")
        torch.jit.save(traced, str(unfinished))
        names.extend(argument.name for argument in traced.forward.schema.arguments[1:])  # without self

    with _reasons("TorchScript") as notes:
        _replace(path, write)
    return ExportedModel(names, [], notes)


def export_onnx(model: nn.Module, path: Path, inputs: tuple[Any, ...], others: tuple[Any, ...]) -> ExportedModel:
    """Write a model as ONNX (extra ``onnx``), in one file.

    Sizes that differ between ``inputs`` and ``others`` are dynamic. A model that fixes one of them is refused.

    Returns:
        Its inputs, those with fixed sizes, and the warnings of the exporter.
    """
    shapes: dict[str, list[int | None]] = {}
    for module in ("onnx", "onnxscript"):
        require(module, "onnx")

    def write(unfinished: Path) -> None:
        # The exporter takes a last dictionary for keywords, unless another one follows.
        given = (*inputs, {}) if isinstance(inputs[-1], dict) else inputs
        program: Any = torch.onnx.export(
            model, given, dynamo=True, dynamic_shapes=_sizes(model, inputs, others), verbose=False
        )
        program.save(str(unfinished), external_data=False)
        for value in program.model.graph.inputs:
            shapes[value.name] = [size if isinstance(size, int) else None for size in value.shape]

    with _without_torchvision(), _reasons("ONNX") as notes:
        _replace(path, write)
    return ExportedModel(list(shapes), _describe_fixed(shapes), notes)


def _sizes(model: nn.Module, inputs: tuple[Any, ...], others: tuple[Any, ...]) -> Any:
    """Which sizes of the inputs are dynamic, for ``torch.onnx.export``."""
    both: Any = _AdditionalInputs()
    both.add(inputs)
    both.add(others)

    def spelled_out(value: Any, sizes: Any) -> Any:
        """Torch itself writes None for a size that stays the same, and warns of such a None."""
        if not isinstance(value, Tensor):
            return sizes
        return tuple(torch.export.Dim.STATIC if size is None else size for size in sizes)

    arguments = dict(inspect.signature(model.forward).bind(*inputs).arguments)
    return tree_map(spelled_out, arguments, both.dynamic_shapes(model, inputs))


def _describe_fixed(shapes: Mapping[str, Sequence[int | None]]) -> list[str]:
    """Which inputs have fixed sizes, in words; None is a size that is free, and the first one that of a batch.

    Example:
        >>> _describe_fixed({"ids": [None, 30], "mask": [None, 30], "x": [None, 3, 8, 8], "free": [None, None]})
        ['ids and mask have a fixed length of 30', 'x has a fixed shape of 3x8x8']
    """
    names: dict[str, list[str]] = {}
    for name, shape in shapes.items():
        sizes = shape[1:] if shape and shape[0] is None else shape
        if any(size is not None for size in sizes):
            what = "x".join("?" if size is None else str(size) for size in sizes)
            names.setdefault(f"a fixed {'length' if len(sizes) == 1 else 'shape'} of {what}", []).append(name)
    return [f"{join_names(some)} {'has' if len(some) == 1 else 'have'} {what}" for what, some in names.items()]


@contextmanager
def _without_torchvision() -> Iterator[None]:
    """Silence the exporter's message that torchvision is missing: no model here needs it."""

    def needed(record: logging.LogRecord) -> bool:
        return "torchvision is not installed" not in record.getMessage()

    logger = logging.getLogger("torch.onnx._internal.exporter._registration")
    logger.addFilter(needed)
    try:
        yield
    finally:
        logger.removeFilter(needed)


_trace: Callable[..., Any] = torch.jit.trace
_AdditionalInputs: Callable[[], Any] = torch.export.AdditionalInputs


@contextmanager
def _reasons(kind: str) -> Iterator[list[str]]:
    """Turn any exception of an exporter into an error that names the reason; collect its warnings."""
    notes: list[str] = []
    try:
        with torch.no_grad(), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield notes
    except OSError:
        raise
    except Exception as error:
        reason = error.__cause__ or error  # exporters wrap the reason in advice on their own code
        first = " ".join(str(reason).split())[:_REASON].strip().rstrip(".") or "no reason given"
        what = f"the model cannot be exported as {kind}: {type(reason).__name__}"
        raise ValueError(f"{what}: {first}. {WEIGHTS_ADVICE}") from error
    notes += [str(each.message).splitlines()[0] for each in caught if each.category.__name__ == "TracerWarning"]


def _same(one: Any, other: Any) -> bool:
    """Whether two outputs are bitwise equal: tensors, or tuples, lists and dictionaries of them."""
    if isinstance(one, Tensor):
        return isinstance(other, Tensor) and torch.equal(one, other)
    if isinstance(one, Mapping):
        return set(one) == set(other) and all(_same(value, other[name]) for name, value in one.items())
    return len(one) == len(other) and all(map(_same, one, other))


def _replace(path: Path, write: Callable[[Path], None]) -> None:
    """Write a file atomically: it replaces ``path`` only when it is complete."""
    check_file(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{path.name}.unfinished-", dir=path.parent) as folder:
        unfinished = Path(folder) / path.name
        write(unfinished)
        unfinished.replace(path)
