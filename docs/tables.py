"""Stored results as Markdown tables."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from paretomtl.experiments import STUDIES, load_rows

ROOT = Path(__file__).parents[1]


def synthetic_tables() -> str:
    """The claims of the paper with their verdicts, and what was measured besides."""
    path = ROOT / "experiments" / "results" / "synthetic.json"
    rows = load_rows(path)
    study = STUDIES["synthetic"]
    claims = [[c.claim, c.where, c.measured, f"**{c.verdict}**"] for c in study.claims(rows)]
    return "\n".join(
        [
            _table(["the paper's claim", "where", "measured", "verdict"], claims),
            "",
            "## Measured besides",
            "",
            _table(["what", "figure"], study.facts(rows)),
            "",
            _provenance(path, rows[0]),
        ]
    )


def benchmark_tables() -> str:
    """The cost and the accuracy of the dual beside peers."""
    parts = []
    for device in ("cpu", "cuda"):
        path = ROOT / "benchmarks" / "results" / f"min_norm-{device}.json"
        rows = load_rows(path)
        speed = [row for row in rows if row["what"] == "speed"]
        parts += [
            f"### Speed on {'a CPU' if device == 'cpu' else 'a GPU'}",
            "",
            _table(
                ["what", "milliseconds, median", "quartiles", "paretomtl over this"],
                [[r["solver"], r["milliseconds"], r["quartiles"], r["paretomtl_over_this"]] for r in speed],
            ),
            "",
            f"One solve makes {_operations(speed[0])}. {_provenance(path, speed[0])}",
            "",
        ]
    stored = load_rows(ROOT / "benchmarks" / "results" / "min_norm-cpu.json")
    rows = [row for row in stored if row["what"] == "accuracy"]
    solvers = list(dict.fromkeys(row["solver"] for row in rows))
    lines = []
    for tasks in sorted({row["tasks"] for row in rows}):
        by = {row["solver"]: row for row in rows if row["tasks"] == tasks}
        lines.append([tasks, *[f"{by[s]['worst_gap_easy']:.0e} / {by[s]['worst_gap_hard']:.0e}" for s in solvers]])
    parts += ["### Accuracy: worst gap, easy / hard", "", _table(["tasks", *solvers], lines)]
    return "\n".join(parts)


def _operations(row: dict[str, Any]) -> str:
    return " and ".join(f"{count} {name}" for name, count in row["operations"].items())


def _table(header: Sequence[str], lines: Sequence[Sequence[object]]) -> str:
    shown = [header, ["---"] * len(header), *lines]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in shown)


def _provenance(path: Path, row: dict[str, Any]) -> str:
    command = json.loads(path.read_text(encoding="utf-8"))["command"]
    versions = ", ".join(f"{name} {version}" for name, version in row["versions"].items() if version != "absent")
    return f"`{command}`, {row['date']}, {row['hardware']}; {versions}. All rows: `{path.relative_to(ROOT)}`."
