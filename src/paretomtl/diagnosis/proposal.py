"""The proposal of a diagnosis, in memory and in a file: how to train the front that it recommends."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from paretomtl._support.files.atomic_files import read_record, write_record
from paretomtl._support.files.paths import as_path
from paretomtl._support.files.safe_open import SMALL_RECORD
from paretomtl.methods import resolve_method
from paretomtl.methods.lookup import set_options
from paretomtl.methods.registry import REGISTRY

FORMAT = 1
"""The version of the file."""

_MOST = 10_000  # models


@dataclass(frozen=True)
class Proposal:
    """How to train the front that a diagnosis recommends.

    Attributes:
        problem: the name of the problem.
        tasks: the names of the tasks.
        method: the name of the method.
        preferences: how many models, or a direction of the losses for each.
        scale: the argument ``scale`` of the method: a word, or one factor per task; None for losses as they are.

    Example:
        >>> proposal = Proposal("digits", ("left", "right"), "pareto-mtl", ((1.0, 0.0), (0.0, 1.0)), (1.0, 0.5))
        >>> proposal.fit_options()["preferences"]
        [[1.0, 0.0], [0.0, 1.0]]
    """

    problem: str
    tasks: tuple[str, ...]
    method: str
    preferences: int | tuple[tuple[float, ...], ...]
    scale: str | tuple[float, ...] | None

    def fit_options(self) -> dict[str, Any]:
        """The arguments of :func:`paretomtl.fit`: method and preferences."""
        method = resolve_method(self.method)
        if self.scale is not None:
            method = set_options(method, {"scale": self.scale})
        rows = self.preferences
        return {"method": method, "preferences": rows if isinstance(rows, int) else [list(row) for row in rows]}

    def save(self, path: str | Path) -> Path:
        """Write the proposal to a JSON file; return its path."""
        path = as_path("path", path)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_record(path, vars(self), format=FORMAT)
        return path

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a proposal; a ValueError says what is wrong with a file that holds none."""
        path = as_path("path", path)
        stored = read_record(path, [FORMAT], limit=SMALL_RECORD)
        rule = f"'{path}' must hold the proposal of a diagnosis."
        names = set(cls.__dataclass_fields__)
        if set(stored) != names:
            odd = sorted(set(stored) ^ names)[0]
            raise ValueError(f"{rule} It is damaged: {odd!r:.80} is {'missing' if odd in names else 'no part of it'}.")
        tasks, rows, scale = stored["tasks"], stored["preferences"], stored["scale"]
        checks = {
            "problem": isinstance(stored["problem"], str),
            "tasks": _is_list(tasks, str) and len(tasks) > 0,
            "method": isinstance(stored["method"], str) and stored["method"] in REGISTRY,  # a file names no code
            "preferences": _are_rows(rows, tasks) if isinstance(rows, list) else _is_count(rows),
            "scale": scale is None or isinstance(scale, str) or _are_numbers(scale, tasks),
        }
        for name, fits in checks.items():
            if not fits:
                raise ValueError(f"{rule} Got {stored[name]!r:.80} for '{name}'.")
        proposal = cls(
            stored["problem"],
            tuple(tasks),
            stored["method"],
            rows if isinstance(rows, int) else tuple(tuple(map(float, row)) for row in rows),
            tuple(map(float, scale)) if isinstance(scale, list) else scale,
        )
        try:
            proposal.fit_options()
        except (TypeError, ValueError) as error:
            raise ValueError(f"{rule} {error}") from None
        return proposal


def _is_list(value: Any, kind: type) -> bool:
    return isinstance(value, list) and all(isinstance(part, kind) for part in value)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value <= _MOST


def _are_rows(value: Any, tasks: Any) -> bool:
    return isinstance(value, list) and 0 < len(value) <= _MOST and all(_are_numbers(row, tasks) for row in value)


def _are_numbers(value: Any, tasks: Any) -> bool:
    """Whether there is one number for each task, none of them negative or huge."""
    return (
        isinstance(value, list)
        and isinstance(tasks, list)
        and len(value) == len(tasks)
        and all(isinstance(part, int | float) and not isinstance(part, bool) for part in value)
        and all(0 <= part < 1e300 and math.isfinite(part) for part in value)
    )
