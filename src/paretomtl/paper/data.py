"""The data sets of a study: a check before training that all are prepared."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from paretomtl.problems.data_set import PrepareOptions
from paretomtl.problems.registry import find_data_set, prepare_command


def check_data(cells: Sequence[Any], folder: Path | None) -> None:
    """Raise a FileNotFoundError, with the commands that help, if a data set of these cells is not prepared.

    Args:
        cells: cells of a study; those with a ``data_set`` need it.
        folder: the folder of the prepared files; None for the user's cache.
    """
    names = dict.fromkeys(cell.data_set for cell in cells if getattr(cell, "data_set", None) is not None)
    files = {name: find_data_set(name).file(PrepareOptions(cache=folder)) for name in names}
    missing = {name: path for name, path in files.items() if not path.exists()}
    if missing:
        commands = "; ".join(prepare_command(name, folder) for name in missing)
        paths = ", ".join(f"'{path}'" for path in missing.values())
        verb = "do" if len(missing) > 1 else "does"
        raise FileNotFoundError(f"{paths} {verb} not exist yet. First run: {commands}")
