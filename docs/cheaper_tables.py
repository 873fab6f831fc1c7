"""Tables of the benchmark of cheaper fronts, from its stored rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tables import provenance, table

from paretomtl._support.significance import mean
from paretomtl.compare import load_rows

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results" / "cheaper.json"


def rows_of(split: str, rate: str) -> list[dict[str, Any]]:
    """The rows of the seeds, and of the differences, on one split with one rate."""
    return [row for row in load_rows(RESULTS) if row["split"] == split and row["rate"] == rate]


def variant(row: dict[str, Any]) -> str:
    """The options of a row, as they are written."""
    options = [f"{name}={row[name]:g}" for name in ("branch", "average") if row[name] is not None]
    return ", ".join(options) or "neither"


def cheaper_table() -> str:
    """Hypervolume and cost of each variant, and its difference to a run without options."""
    lines = []
    for rate in ("constant", "cosine"):
        rows = rows_of("test", rate)
        gains = {variant(row): row for row in rows if "difference" in row}
        for name in dict.fromkeys(variant(row) for row in rows if "seed" in row):
            own = [row for row in rows if variant(row) == name and "seed" in row]
            gain = gains.get(name)
            lines.append(
                [
                    rate,
                    f"`{name}`" if name != "neither" else name,
                    f"{own[0]['cost']:.2f}",
                    f"{mean([row['hypervolume'] for row in own]):.3f}",
                    "" if gain is None else f"{gain['difference']:+.3f} ± {gain['half_width']:.3f}",
                    "" if gain is None else f"{gain['larger']} of {gain['seeds']}",
                ]
            )
    header = ["learning rate", "options", "cost", "hypervolume on test", "difference", "seeds with a gain"]
    row = next(row for row in load_rows(RESULTS) if "seed" in row)
    return "\n".join([table(header, lines), "", provenance(RESULTS, row)])
