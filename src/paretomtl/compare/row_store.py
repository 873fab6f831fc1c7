"""Stored results: flat rows, one per run, as JSON with hardware, versions, commit and seeds.

Tables and figures are made only from stored rows.
"""

from __future__ import annotations

import datetime
import json
import os
import platform
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import torch
from torch import Tensor

from paretomtl._support.files.atomic_files import make_folder, read_json, write_text
from paretomtl._support.files.locks import locked
from paretomtl._support.imports.optional_packages import version_of
from paretomtl._support.tensor_json import to_numbers
from paretomtl._support.version import made_by

Row: TypeAlias = dict[str, Any]
"""One run: its settings, its results, where and when it ran."""


def environment() -> Row:
    """Date, hardware, versions and commit, which every row carries."""
    cpu = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [
            line.split(":", 1)[1].strip() for line in cpuinfo.read_text().splitlines() if line.startswith("model name")
        ]
        cpu = names[0] if names else cpu
    hardware = f"{cpu}, {os.cpu_count()} cores"
    if torch.cuda.is_available():
        hardware = f"{torch.cuda.get_device_name()}; {hardware}"
    versions = {name: version_of(name) for name in ("paretomtl", "torch", "numpy", "moocore")}
    versions["python"] = platform.python_version()
    versions |= {name: made_by()[name] for name in ("commit", "code")}
    return {"date": datetime.date.today().isoformat(), "hardware": hardware, "versions": versions}


def save_rows(path: Path, name: str, command: str, rows: Sequence[Row]) -> None:
    """Write results atomically."""
    make_folder(path.parent)
    lines = ",\n".join(json.dumps(row, ensure_ascii=False, allow_nan=False) for row in rows)
    text = f'{{"name": {json.dumps(name)}, "command": {json.dumps(command)}, "rows": [\n{lines}\n]}}\n'
    write_text(path, text)


def update_rows(path: Path, name: str, command: str, change: Callable[[list[Row]], list[Row]]) -> list[Row]:
    """Read, change and write the stored rows under a lock, so that no process loses the rows of another."""
    make_folder(path.parent)
    with locked(path.with_name(f".{path.name}.lock")):
        rows = change(load_rows(path) if path.exists() else [])
        save_rows(path, name, command, rows)
    return rows


def load_rows(path: Path) -> list[Row]:
    """Load the rows of a stored result; a ValueError names a file that is not one."""
    stored = read_json(path)
    rows = stored.get("rows") if isinstance(stored, dict) else None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ValueError(f"'{path}' must hold an object with a list of rows. Got something else: delete it.")
    return rows


def seconds_here(rows: Sequence[Row], kind_of: Callable[[Row], str]) -> dict[str, float]:
    """The mean seconds of a run of each kind, over stored rows from hardware like this machine's."""
    here = environment()["hardware"] if rows else ""
    by_kind: dict[str, list[float]] = {}
    for row in rows:
        if row.get("hardware") == here and row.get("seconds"):
            by_kind.setdefault(kind_of(row), []).append(float(row["seconds"]))
    return {kind: statistics.fmean(each) for kind, each in by_kind.items()}


def numbers(tensor: Tensor, digits: int = 5) -> Any:
    """A tensor in the form of rows: nested lists of rounded numbers, with None for values that are not finite."""
    return to_numbers(tensor, digits)
