"""Tables of text with a header: errors name the file, the line and the column."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Row:
    """A row of a table, with where it stands.

    Attributes:
        place: the file and the line, for messages.
        fields: the text by column.
    """

    place: str
    fields: dict[str, str]

    def whole(self, column: str, low: int, high: int) -> int:
        """A whole number from ``low`` to ``high``."""
        text = self.fields[column].strip()
        if not re.fullmatch(r"-?[0-9]{1,9}", text) or not low <= int(text) <= high:
            raise ValueError(
                f"{self.place}: '{column}' must be a whole number from {low} to {high}. Got {text!r} instead."
            )
        return int(text)

    def number(self, column: str) -> float:
        """A finite number."""
        return finite(self.fields[column], f"{self.place}: '{column}'")


def finite(text: str, what: str) -> float:
    """A finite number from text."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"{what} must be a finite number. Got {text.strip()!r} instead.")
    return value


def read_lines(path: Path) -> list[str]:
    """The lines of a file of text."""
    try:
        return path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise ValueError(f"'{path}' must be text in UTF-8. It is damaged: {error}.") from None


def read_table(path: Path, columns: Sequence[str]) -> list[Row]:
    """The rows of a table with commas, whose header must be these columns."""
    rows = csv.reader(read_lines(path))
    try:
        header = next(rows, [])
        if header != list(columns):
            missing = [column for column in columns if column not in header]
            unknown = [column for column in header if column not in columns]
            found = f"missing {missing}, unknown {unknown}" if missing or unknown else f"{header}"
            raise ValueError(f"'{path}' must begin with the columns {','.join(columns)}. Got {found} instead.")
        table = []
        for fields in rows:
            place = f"'{path}', line {rows.line_num}"
            if fields and len(fields) != len(columns):
                raise ValueError(f"{place} must have {len(columns)} fields. Got {len(fields)} instead.")
            if fields:
                table.append(Row(place, dict(zip(columns, fields, strict=True))))
    except csv.Error as error:
        raise ValueError(f"'{path}', line {rows.line_num} must be fields with commas between them: {error}.") from None
    if not table:
        raise ValueError(f"'{path}' must have rows under its header. Got none.")
    return table
