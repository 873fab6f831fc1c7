"""Cheaper fronts: a shared start that branches, and averages of weights, each compared with neither.

    python benchmarks/cheaper.py      # writes benchmarks/results/cheaper.json; a quarter of an hour on two cores

Multi-digits, five models with interior weights, ten seeds, the epochs and batches of its recipe. Each variant has the
same seeds. `rate` is "constant", that of the recipe (AdamW 3e-3), or "cosine", which decays from there to 0, step by
step. Variants whose rows are stored are not trained again: delete the file to do so.

- `cost`: passes of networks, as a share of those without a branch; it follows from the option.
- `hypervolume` at (2, 2), on validation and test.
- Rows with `difference`: the hypervolume of a variant less that of the plain run of the same seed and rate, the mean
  over `seeds`, with half the width of its 95 % interval (Student's t). `larger` counts the seeds with a gain.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch.optim.lr_scheduler import CosineAnnealingLR

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

import paretomtl as pm
from paired import paired
from paretomtl._support.significance import mean
from paretomtl.compare import Row, environment, load_rows, save_rows
from paretomtl.training.fit_to_end import fit_seeds_to_end

SEEDS, COUNT, REFERENCE = range(10), 5, (2.0, 2.0)
RATES: dict[str, dict[str, Any]] = {
    "constant": {},
    "cosine": {"scheduler": lambda optimizer, total: CosineAnnealingLR(optimizer, total), "schedule": "step"},
}
PLAIN: dict[str, float | None] = {"branch": None, "average": None}
VARIANTS: Sequence[dict[str, float | None]] = (
    PLAIN,
    {"branch": 0.25, "average": None},
    {"branch": 0.5, "average": None},
    {"branch": None, "average": 0.02},
    {"branch": None, "average": 0.05},
    {"branch": None, "average": 0.1},
    {"branch": 0.25, "average": 0.05},
)


FEWER = [each for each in VARIANTS if each["branch"] != 0.5 and each["average"] in (None, 0.05)]
"""The variants with a rate that decays."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    out = parser.parse_args().out / "cheaper.json"
    torch.set_num_threads(1)
    rows = [row for row in load_rows(out) if "seed" in row] if out.exists() else []
    problem = pm.problems.multi_digits()
    gains: list[Row] = []
    for rate, variants in {"constant": VARIANTS, "cosine": FEWER}.items():
        for variant in variants:
            if not any({"rate": rate, **variant}.items() <= row.items() for row in rows):
                rows += measure(problem, rate, variant)
                save(out, rows)
            gains += differences(rows, rate, variant) if variant is not PLAIN else []
    save(out, [*rows, *gains])


def save(path: Path, rows: list[Row]) -> None:
    save_rows(path, "cheaper", "python benchmarks/cheaper.py", rows)


def measure(problem: pm.Problem, rate: str, variant: dict[str, float | None]) -> list[Row]:
    """One row per seed and split."""
    began = time.perf_counter()
    options = {"device": "cpu", "progress": "quiet", "strategy": "batched", **RATES[rate], **variant}
    fronts = fit_seeds_to_end(problem, "linear", COUNT, seeds=SEEDS, **options)
    seconds = round((time.perf_counter() - began) / len(SEEDS), 2)
    shared = variant["branch"] or 0.0
    about = {
        "problem": problem.name,
        "method": "linear",
        "preferences": COUNT,
        "rate": rate,
        **variant,
        "cost": round((shared + (1.0 - shared) * COUNT) / COUNT, 4),
        "seconds": seconds,
        "reference": list(REFERENCE),
        **environment(),
    }
    rows = [
        {**about, "seed": front.seed, "split": split, "hypervolume": round(front.hypervolume(REFERENCE, split), 5)}
        for front in fronts
        for split in ("val", "test")
    ]
    volumes = {split: mean([row["hypervolume"] for row in rows if row["split"] == split]) for split in ("val", "test")}
    print(rate, variant, {name: round(value, 4) for name, value in volumes.items()}, seconds, flush=True)
    return rows


def differences(rows: Sequence[Row], rate: str, variant: dict[str, float | None]) -> list[Row]:
    """One row per split: a variant less the plain run, paired by seed."""
    found = []
    for split in ("val", "test"):
        ours, plain = (
            [row["hypervolume"] for row in rows if {"rate": rate, "split": split, **each}.items() <= row.items()]
            for each in (variant, PLAIN)
        )
        gains = [one - other for one, other in zip(ours, plain, strict=True)]
        row = {
            "problem": rows[0]["problem"],
            "rate": rate,
            **variant,
            "against": "neither",
            "split": split,
            **paired(gains),
        }
        print(row, flush=True)
        found.append({**row, **environment()})
    return found


if __name__ == "__main__":
    main()
