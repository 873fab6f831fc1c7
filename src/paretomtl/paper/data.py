"""The data sets of a study, checked before anything is trained."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from paretomtl.problems._census.files import census_file
from paretomtl.problems._localization.problem import SIZE, localization_file
from paretomtl.problems._multi_mnist.canvases import MIXES
from paretomtl.problems._multi_mnist.files import canvases_file
from paretomtl.problems._utkface.problem import SIDE, utkface_file

_FILES: dict[str, Callable[[Path | None], Path]] = {
    "census": lambda folder: census_file(folder, True),
    "utkface": lambda folder: utkface_file(folder, SIDE),
    "localization": lambda folder: localization_file(folder, SIZE),
}
_NOT_DOWNLOADED = ("utkface", "localization")


def check_data(cells: Sequence[Any], folder: Path | None) -> None:
    """Raise a FileNotFoundError, with the commands that help, where data sets of these cells are not prepared.

    Args:
        cells: of a study; those with a ``data_set`` need it.
        folder: where data sets are kept; None for the user's cache.
    """
    names = dict.fromkeys(cell.data_set for cell in cells if getattr(cell, "data_set", None) is not None)
    missing = {name: path for name in names if not (path := _file(name, folder)).exists()}
    if missing:
        commands = "; ".join(prepare_command(name, folder) for name in missing)
        files = ", ".join(f"'{path}'" for path in missing.values())
        plural = "are" if len(missing) > 1 else "is"
        raise FileNotFoundError(f"{files} {plural} not there yet. First type: {commands}")


def prepare_command(name: str, folder: Path | None) -> str:
    """The command that prepares a data set where a study looks for it."""
    words = ["paretomtl", "data", "prepare", name]
    words += ["--from", "FOLDER"] if name in _NOT_DOWNLOADED else []
    return shlex.join(words if folder is None else [*words, "--cache", str(folder)])


def _file(name: str, folder: Path | None) -> Path:
    return canvases_file(name, folder, 0) if name in MIXES else _FILES[name](folder)
