"""Limits of a front: how many models it may have."""

from __future__ import annotations

from typing import Any

MAX_SOLUTIONS = 10_000
"""The largest number of models in a front: work and memory grow with its square."""


def check_solution_count(rows: Any) -> None:
    """Refuse a front with more rows of preferences than :data:`MAX_SOLUTIONS`.

    Args:
        rows: the rows as read from a file, or their number.
    """
    count = rows if isinstance(rows, int) else len(rows) if isinstance(rows, list) else 0
    if count > MAX_SOLUTIONS:
        raise ValueError(f"a front must have at most {MAX_SOLUTIONS:,} models. Got {count:,} preferences instead")
