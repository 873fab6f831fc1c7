"""Model stores on disk: a tensor file next to ``front.json``, which records the kind of store and its checksums.

Each model has its own checksum, so that reading one does not read the others. Weights that all models have are in a
file of their own, once. To add a kind of store, give it a ``kind``, its ``tensors()``, and a line in ``KINDS`` that
opens its files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from torch import Tensor

from paretomtl._support.files.atomic_files import pointing_to_doctor
from paretomtl._support.files.safe_open import exists
from paretomtl._support.files.tensor_files import (
    checksum_of,
    read_row,
    read_shapes,
    read_tensors,
    write_named_tensors,
)
from paretomtl.front.models import LOSSES_ALONE, ModelStore, StackedModels, is_common
from paretomtl.front.storage.record import file_of


class StoredModels(ModelStore):
    """Models of one architecture in a file, each loaded lazily.

    Args:
        path: the file, with tensors ``[K, ...]`` by name.
        entry: of these models in ``front.json``.
    """

    kind = StackedModels.kind

    def __init__(self, path: Path, entry: Mapping[str, Any]) -> None:
        self.path = path.absolute()  # the working directory may change before a model is read
        self.stored_entry = dict(entry)
        self._rows: tuple[str, ...] = tuple(entry["rows"])

    @classmethod
    def open(cls, path: Path, entry: Mapping[str, Any], count: int) -> StoredModels:
        """Open the store of a front with ``count`` rows; reads only the header of the file."""
        rows = entry.get("rows")
        if not isinstance(rows, list) or len(rows) != count or not all(isinstance(row, str) for row in rows):
            record = path.with_name("front.json")
            raise ValueError(f"'{record}' must have a checksum for each of {count} models. Got {rows!r:.80} instead.")
        shapes, common = read_shapes(path, str(entry["sha256"])), entry.get("common")
        if not (shapes or common) or any(shape[:1] != (count,) for shape in shapes.values()):
            raise ValueError(f"'{path}' must hold tensors of {count} rows, one for each model. Got other sizes.")
        if common is not None:
            read_shapes(*file_of(common, "models", path.parent))
        return cls(path, entry)

    def __len__(self) -> int:
        return len(self._rows)

    def weights(self, row: int) -> dict[str, Tensor]:
        with self._reading():
            return {**read_row(self.path, row, self._rows[row]), **self._common()}

    def stacked(self) -> dict[str, Tensor]:
        with self._reading():
            own = read_tensors(self.path, self.stored_entry["sha256"])[0]
            return {**own, **{name: tensor.expand(len(self), *tensor.shape) for name, tensor in self._common().items()}}

    def _common(self) -> dict[str, Tensor]:
        entry = self.stored_entry.get("common")
        return {} if entry is None else read_tensors(*file_of(entry, "models", self.path.parent))[0]

    def verify(self) -> None:
        own = {name: tensor for name, tensor in self.stacked().items() if not is_common(tensor)}
        if _checksums(own, len(self)) != list(self._rows):
            raise ValueError(f"'{self.path}' must hold the models that its front names. Their checksums differ.")

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Make errors say what to do: the file may be removed or damaged after the front was loaded."""
        folder = self.path.parent
        of_run = exists(folder.parent / "config.json")  # its checkpoint may restore the front
        try:
            with pointing_to_doctor(folder.parent if of_run else folder):
                yield
        except FileNotFoundError:
            raise FileNotFoundError(
                f"'{self.path}' must exist for its models to be read. It was removed or replaced since the front "
                "was loaded: load the front again."
            ) from None


KINDS: dict[str, Callable[[Path, Mapping[str, Any], int], ModelStore]] = {StoredModels.kind: StoredModels.open}
"""The function that opens a file of each kind, from its path, its entry in ``front.json`` and the number of rows."""


def write_models(store: ModelStore, folder: Path) -> dict[str, Any] | None:
    """Write the models into a folder; return their entry in ``front.json``, or None if there is nothing to write."""
    if not store or not store.kind:
        return None
    if isinstance(store, StoredModels) and store.path.exists() and store.path.parent.samefile(folder):
        return store.stored_entry
    stacked = store.tensors()
    common = {name: tensor[0] for name, tensor in stacked.items() if is_common(tensor)}
    own = {name: tensor for name, tensor in stacked.items() if name not in common}
    entry: dict[str, Any] = {"kind": store.kind, **_written(own, folder)}
    if store.kind == StackedModels.kind:
        entry["rows"] = _checksums(own, len(store))
    return {**entry, "common": _written(common, folder)} if common else entry


def _written(tensors: Mapping[str, Tensor], folder: Path) -> dict[str, str]:
    path, checksum = write_named_tensors(folder, "models", tensors, {"kind": "front"})
    return {"file": path.name, "sha256": checksum}


def _checksums(stacked: Mapping[str, Tensor], count: int) -> list[str]:
    """A checksum for each model, so that one can be read and verified without the others."""
    return [checksum_of({name: tensor[row] for name, tensor in stacked.items()}) for row in range(count)]


def open_models(entry: Any, folder: Path, count: int) -> ModelStore:
    """Open the store that an entry of ``front.json`` describes, for a front with ``count`` rows."""
    if entry is None:
        return LOSSES_ALONE
    path, _ = file_of(entry, "models", folder)
    kind = entry.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        rule = f"'{folder / 'front.json'}' must name a known kind of model store, {', '.join(KINDS)}"
        raise ValueError(f"{rule}. Got {kind!r:.80} instead.")
    return KINDS[kind](path, entry, count)
