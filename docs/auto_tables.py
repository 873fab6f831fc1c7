"""Tables of the benchmark of `auto`, from its stored rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tables import table

from paretomtl._support.significance import mean
from paretomtl.compare import load_rows

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results"


def _rows(part: str) -> list[dict[str, Any]]:
    return [row for row in load_rows(RESULTS / "auto.json") if row["part"] == part]


def _groups(rows: Sequence[dict[str, Any]], *names: str) -> dict[tuple[Any, ...], list[dict[str, Any]]]:
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in names), []).append(row)
    return groups


def _inside(rows: Sequence[dict[str, Any]]) -> str:
    shares = [row["in_region"] for row in rows if row["in_region"] is not None]
    return f"{100 * mean(shares):.0f} %" if shares else ""


def _spread(values: Sequence[float], places: int = 3) -> str:
    middle = mean(values)
    deviation = (sum((value - middle) ** 2 for value in values) / max(1, len(values) - 1)) ** 0.5
    return f"{middle:.{places}f} ± {deviation:.{places}f}"


def synthetic_table() -> str:
    """Methods on the concave problem, by tasks and optimizer."""
    lines = [
        [
            tasks,
            optimizer,
            method,
            _inside(rows),
            f"{max(row['distance'] for row in rows):.4f}",
            f"{mean([row['hypervolume'] for row in rows]):.4f}",
        ]
        for (tasks, optimizer, method), rows in _groups(_rows("synthetic"), "tasks", "optimizer", "method").items()
    ]
    return table(["tasks", "optimizer", "method", "in region", "largest distance", "hypervolume"], lines)


def difficulty_table() -> str:
    """Losses that differ by a factor."""
    lines = [
        [f"{factor:g}", _inside(rows), _spread([row["hypervolume"] for row in rows], 4)]
        for (factor,), rows in _groups(_rows("difficulty"), "factor").items()
    ]
    return table(["factor", "in region", "hypervolume over the factor"], lines)


def digits_table() -> str:
    """Methods on real digits, and the difference to auto."""
    rows = [row for row in _rows("digits") if "difference" not in row]
    gains = {(row["against"], row["split"]): row for row in _rows("digits") if "difference" in row}
    lines = []
    for (method,), group in _groups(rows, "method").items():
        cells = [method, _inside(group), *(_spread([row[name] for row in group]) for name in ("hypervolume", "test"))]
        for split in ("val", "test"):
            gain = gains.get((method, split))
            cells.append("" if gain is None else f"{gain['difference']:+.3f} ± {gain['half_width']:.3f}")
        lines.append(cells)
    header = ["method", "in region", "val", "test", "auto gains on val", "auto gains on test"]
    return table(header, lines)


def noise_table() -> str:
    """Small batches."""
    lines = [
        [method, _inside(rows), _spread([row["hypervolume"] for row in rows])]
        for (method,), rows in _groups(_rows("noise"), "method").items()
    ]
    return table(["method", "in region", "hypervolume on val"], lines)
