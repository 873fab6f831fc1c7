"""Facts on cells and on ways to scale the losses."""

from __future__ import annotations

from collections.abc import Sequence

from paretomtl.compare import Row
from paretomtl.paper.real_data.tables import AS_THEY_ARE, CellLine, cell_lines, scale_lines


def cell_facts(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """Every cell: hypervolume, spread, regions, time."""
    return [
        (f"{line.part}, {line.label}, {line.seeds} seed{'s' if line.seeds > 1 else ''}", _describe_cell(line))
        for line in cell_lines(rows)
    ]


def _describe_cell(line: CellLine) -> str:
    parts = [f"hypervolume {line.hypervolume}"]
    parts += [f"spread {line.spread}", f"not dominated {line.nondominated}"] if line.spread else ["of one ideal point"]
    parts += ["in their own region {} on training and {} on test".format(*line.regions)] if any(line.regions) else []
    return ", ".join([*parts, f"{line.seconds} s a front"])


def scale_facts(rows: Sequence[Row], base: str) -> list[tuple[str, str]]:
    """Every way to scale the losses, compared with unscaled losses."""
    results = []
    for part in dict.fromkeys(row["part"] for row in rows):
        for line in scale_lines([row for row in rows if row["part"] == part], base)[1:]:
            regions = "by losses as they are, in their own region {} on training and {} on test".format(*line.plain)
            results.append((f"{part}, scaled {line.losses}, beside losses {AS_THEY_ARE}", f"{line.verdict}; {regions}"))
    return results
