"""CSV tables of losses: fronts of models that were trained elsewhere."""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path
from typing import Any

from paretomtl._support.files.safe_open import SMALL_RECORD, read_file

_NAME = ("name", "")  # pandas writes its index in a column without a name
_METRICS = ("higher", "lower")


def is_table(path: Path) -> bool:
    """Whether a path is a table of losses rather than the folder of a front."""
    return path.suffix.lower() == ".csv" and not path.is_dir()


def read_table(path: Path) -> dict[str, Any]:
    """Read the arguments of :meth:`paretomtl.Front.from_losses` from a CSV file with a line for each model.

    Its first line names the columns: ``name`` holds the names of the models, ``higher:NAME`` and ``lower:NAME`` hold
    metrics, and every other column holds the loss of a task. A ValueError names the file, line and column.
    """
    rule = f"'{path}' must be a table of losses"
    try:
        text = read_file(path, limit=SMALL_RECORD, follow=True).decode("utf-8-sig")
        lines = csv.reader(io.StringIO(text, newline=""), strict=True)
        rows = [(lines.line_num, row) for row in lines if row]
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{rule}, which is CSV in UTF-8. It is not: {error}.") from None
    if len(rows) < 2:
        raise ValueError(f"{rule}: a line of names, and one for each model. Got {len(rows)} lines.")
    columns = [column.strip() for column in rows[0][1]]
    twice = next((column for column in columns if columns.count(column) > 1), None)
    if twice is not None:
        raise ValueError(f"{rule} with distinct columns. Got {twice!r} twice.")
    if len(columns) == 1 and any(mark in columns[0] for mark in ";\t"):
        raise ValueError(f"{rule} with commas between the columns. Got {columns[0]!r:.80} instead.")
    for number, row in rows[1:]:
        if len(row) != len(columns):
            raise ValueError(f"{rule} with {len(columns)} columns. Got {len(row)} in line {number} instead.")
    tasks, metrics, better, names = [], {}, {}, None
    for place, column in enumerate(columns):
        cells = [(number, row[place].strip()) for number, row in rows[1:]]
        direction, colon, metric = column.partition(":")
        if column in _NAME:
            names = [cell for _, cell in cells]
        elif colon and direction in _METRICS:
            metrics[metric.strip()] = [_number(rule, column, *cell, blank=math.nan) for cell in cells]
            better[metric.strip()] = direction
        else:
            tasks.append((column, [_number(rule, column, *cell) for cell in cells]))
    losses = [list(row) for row in zip(*(values for _, values in tasks), strict=True)]
    return {
        "losses": losses,
        "tasks": [task for task, _ in tasks],
        "metrics": metrics or None,
        "better": better or None,
        "names": names,
        "problem": path.stem,
    }


def _number(rule: str, column: str, line: int, cell: str, *, blank: float | None = None) -> float:
    if not cell and blank is not None:
        return blank
    try:
        return float(cell)
    except ValueError:
        raise ValueError(f"{rule}. Got {cell!r:.80} in line {line}, column {column!r:.80}, not a number.") from None
