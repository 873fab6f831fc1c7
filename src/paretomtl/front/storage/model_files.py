"""Model stores on disk: a tensor file next to ``front.json``, which records the kind of store and its checksums.

Each model has its own checksum, so that reading one does not read the others. To add a kind of store, give it a
``kind``, its ``tensors()`` and ``entry()``, and a line in ``KINDS`` that opens such a file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from torch import Tensor

from paretomtl._support.files.atomic_files import pointing_to_doctor
from paretomtl._support.files.safe_open import exists
from paretomtl._support.files.tensor_files import read_row, read_shapes, read_tensors, write_named_tensors
from paretomtl.front.models import LOSSES_ALONE, ModelStore, StackedModels
from paretomtl.front.storage.record import file_of


class StoredModels(ModelStore):
    """Models of one architecture in a file, each loaded lazily.

    Args:
        path: the file, with tensors ``[K, ...]`` by name.
        checksum: the checksum of the whole file.
        rows: the checksum of each model.
    """

    kind = StackedModels.kind

    def __init__(self, path: Path, checksum: str, rows: Sequence[str]) -> None:
        self.path = path.absolute()  # the working directory may change before a model is read
        self.checksum = checksum
        self._rows = tuple(rows)

    @classmethod
    def open(cls, path: Path, entry: Mapping[str, Any], count: int) -> StoredModels:
        """Open the store of a front with ``count`` rows; reads only the header of the file."""
        rows = entry.get("rows")
        if not isinstance(rows, list) or len(rows) != count or not all(isinstance(row, str) for row in rows):
            record = path.with_name("front.json")
            raise ValueError(f"'{record}' must have a checksum for each of {count} models. Got {rows!r:.80} instead.")
        shapes = read_shapes(path, str(entry["sha256"]))
        if not shapes or any(shape[:1] != (count,) for shape in shapes.values()):
            raise ValueError(f"'{path}' must hold tensors of {count} rows, one for each model. Got other sizes.")
        return cls(path, str(entry["sha256"]), rows)

    def __len__(self) -> int:
        return len(self._rows)

    def weights(self, row: int) -> dict[str, Tensor]:
        with self._reading():
            return read_row(self.path, row, self._rows[row])

    def stacked(self) -> dict[str, Tensor]:
        with self._reading():
            return read_tensors(self.path, self.checksum)[0]

    def entry(self) -> dict[str, Any]:
        return {"rows": list(self._rows)}

    def verify(self) -> None:
        store = StackedModels(self.stacked())
        if store.entry() != self.entry():
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
        return {"kind": store.kind, "file": store.path.name, "sha256": store.checksum, **store.entry()}
    path, checksum = write_named_tensors(folder, "models", store.tensors(), {"kind": "front"})
    return {"kind": store.kind, "file": path.name, "sha256": checksum, **store.entry()}


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
