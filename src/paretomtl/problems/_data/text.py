"""Text files: their lines, and finite numbers in them."""

from __future__ import annotations

import math
from pathlib import Path


def finite(text: str, what: str) -> float:
    """A finite number from text; ``what`` names it in the error."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"{what} must be a finite number. Got {text.strip()!r} instead.")
    return value


def read_lines(path: Path) -> list[str]:
    """The lines of a text file."""
    try:
        return path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise ValueError(f"'{path}' must be text in UTF-8. It is damaged: {error}.") from None
