"""``asked.json`` in a run's folder: the options that the run was started with on the command line."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from paretomtl._support.files.atomic_files import pointing_to_doctor, read_record, write_record
from paretomtl._support.files.safe_open import SMALL_RECORD, exists

OPTIONS = "asked.json"
"""The name of the file in the run's folder."""

FORMAT = 1
"""The version of the file; None stands for files without a version."""

_LENGTHS = ("epochs", "patience")
_ADDED = (
    "patience",
    "branch",
    "average",
    "minutes",
)  # left out where they are None, so that earlier versions can read the file
_LARGEST = 2**63


def read_options(run: Path, kinds: Mapping[str, Any], needed: Collection[str]) -> dict[str, Any]:
    """Read the options of a run.

    Raises FileNotFoundError for a run that was not started on the command line, and ValueError for a damaged file.

    Args:
        run: its folder.
        kinds: the type of each option.
        needed: the options that every file has; others were added later.
    """
    path = run / OPTIONS
    if not exists(path):
        raise FileNotFoundError(
            f"'RUN' must be a run of the command line. '{run}' has no {OPTIONS}; in Python, use pm.fit(problem, "
            "method, front.around(k)) with a method that reads preferences as the front does."
        )
    with pointing_to_doctor(run):
        stored = read_record(path, [None, FORMAT], limit=SMALL_RECORD)
    rule = f"'{path}' must hold the options of a run."
    missing = [name for name in needed if name not in stored]
    if missing:
        raise ValueError(f"{rule} It is damaged: {missing[0]!r} is missing.")
    for name, value in stored.items():
        if name not in kinds:
            raise ValueError(f"{rule} It is damaged: no option is called {name!r:.80}.")
        if not _fits(value, kinds[name]):
            raise ValueError(f"{rule} Got {value!r:.80} for '{name}'.")
    return stored


def write_options(folder: Path, options: Mapping[str, Any]) -> None:
    """Store the options. A run that is resumed keeps those it was started with, except for its length."""
    own = {name: value for name, value in options.items() if value is not None or name not in _ADDED}
    lengths = {name: own.pop(name) for name in _LENGTHS if name in own}
    with suppress(OSError, ValueError):  # training goes on without the file, and reports a full disk by itself
        if exists(folder / OPTIONS):
            stored = read_record(folder / OPTIONS, [None, FORMAT], limit=SMALL_RECORD)
            own = {name: value for name, value in stored.items() if name != "patience"}
            if {**own, **lengths} == stored:
                return
        write_record(folder / OPTIONS, {**own, **lengths}, format=FORMAT)


def _fits(value: Any, kind: Any) -> bool:
    """Whether a value from JSON has the type of an option."""
    if kind == Sequence[str]:
        return isinstance(value, list) and all(isinstance(part, str) for part in value)
    if isinstance(value, bool):
        return kind is bool
    if isinstance(value, int) and abs(value) >= _LARGEST:  # numbers in a file may have thousands of digits
        return False
    return isinstance(value, kind) or (isinstance(value, int) and isinstance(0.0, kind))
