"""JSON on standard output, and lines above a progress bar."""

from __future__ import annotations

import sys
from typing import Any

from paretomtl._support.terminal import escaped, json_text


def print_json(content: Any) -> None:
    """Print JSON on standard output, and nothing else."""
    print(json_text(content))


def print_above(text: str) -> None:
    """Print a line on standard error, above a progress bar: another console would write into the bar."""
    print(escaped(text), file=sys.stderr, flush=True)
