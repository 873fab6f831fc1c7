"""Linear scalarization: weights inside the simplex, compared with the paper's grid, which has its corners.

    python benchmarks/interior.py      # writes benchmarks/results/interior.json; a few minutes

The same number of models, seeds, starts and batches for every layout; only the weights differ. Seeds differ in their
initial weights; the order of the data is that of seed 0 for all. `layout` is "corners", or "interior" with the smallest
share `least` of a task. Layouts whose rows are stored are not trained again: delete the file to do so.

- multi-digits with its recipe, five models, ten seeds: `hypervolume` on validation and test at (2, 2), and `beyond`,
  the models with a loss beyond that point on test.
- synthetic, whose front is concave, ten models, ten seeds, 300 steps: weights of any layout lead to its ends.
  `inside` counts the models whose losses are both under 0.9, `hypervolume` is at (1, 1), and `possible` is that of
  the true front.
- Rows with `difference`: the hypervolume of an interior layout less that of the corners of the same seed, the mean over
  `seeds`, with half the width of its 95 % interval (Student's t).
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

import paretomtl as pm
from paired import paired
from paretomtl._support.significance import mean
from paretomtl.compare import Row, environment, load_rows, save_rows
from paretomtl.front.indicators import hypervolume

SEEDS, LEAST, POINTS = range(10), (0.02, 0.05, 0.1), 5_000
METHODS = [pm.Linear(layout="corners"), *(pm.Linear(least=least) for least in LEAST)]
DIGITS = {"preferences": 5, "reference": (2.0, 2.0), "splits": ("val", "test"), "options": {}}
SYNTHETIC = {
    "preferences": 10,
    "reference": (1.0, 1.0),
    "splits": ("train",),
    "options": {"epochs": 300, "optimizer": lambda parameters: torch.optim.SGD(parameters, lr=0.5)},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    out = parser.parse_args().out / "interior.json"
    torch.set_num_threads(1)
    stored = [row for row in load_rows(out) if "seed" in row] if out.exists() else []
    rows: list[Row] = []
    for problem, cell in ((pm.problems.synthetic(), SYNTHETIC), (pm.problems.multi_digits(), DIGITS)):
        measured: list[Row] = []
        for method in METHODS:
            about = {"problem": problem.name, "layout": method.layout, "least": method.least}
            measured += [row for row in stored if about.items() <= row.items()] or measure(problem, method, cell)
        rows += [*measured, *differences(measured)]
    save_rows(out, "interior", "python benchmarks/interior.py", rows)


def measure(problem: pm.Problem, method: pm.Linear, cell: dict[str, Any]) -> list[Row]:
    """One row per seed and split."""
    began = time.perf_counter()
    options = {"device": "cpu", "progress": "quiet", "strategy": "batched", **cell["options"]}
    fronts = pm.fit_seeds(problem, method, cell["preferences"], seeds=SEEDS, **options)
    if not all(front.complete for front in fronts):
        raise SystemExit("stopped: nothing is stored, as losses of unfinished models are no result")
    seconds = round((time.perf_counter() - began) / len(SEEDS), 2)
    truth = None if problem.truth is None else problem.truth.front(POINTS)
    known = {} if truth is None else {"possible": round(hypervolume(truth, cell["reference"]), 5)}
    found = []
    for front in fronts:
        for split in cell["splits"]:
            losses = front.losses[split]
            counted = (
                {"inside": int((losses < 0.9).all(-1).sum())}
                if split == "train"
                else {"beyond": int((losses >= torch.tensor(cell["reference"])).any(-1).sum())}
            )
            found.append(
                {
                    "problem": front.problem,
                    "layout": method.layout,
                    "least": method.least,
                    "preferences": len(front),
                    "seed": front.seed,
                    "split": split,
                    "hypervolume": round(front.hypervolume(cell["reference"], split=split), 5),
                    "reference": list(cell["reference"]),
                    **known,
                    **counted,
                    "seconds": seconds,
                    **environment(),
                }
            )
    volumes = {split: mean([row["hypervolume"] for row in found if row["split"] == split]) for split in cell["splits"]}
    print(problem.name, method, {name: round(value, 4) for name, value in volumes.items()}, seconds, flush=True)
    return found


def differences(rows: Sequence[Row]) -> list[Row]:
    """One row per interior layout and split: paired by seed."""
    found = []
    for least in LEAST:
        for split in dict.fromkeys(row["split"] for row in rows):
            inside, corners = (
                [row["hypervolume"] for row in rows if (row["least"], row["split"]) == (each, split)]
                for each in (least, None)
            )
            gains = [one - other for one, other in zip(inside, corners, strict=True)]
            row = {
                "problem": rows[0]["problem"],
                "layout": "interior",
                "least": least,
                "against": "corners",
                "split": split,
                **paired(gains),
            }
            print(row, flush=True)
            found.append({**row, **environment()})
    return found


if __name__ == "__main__":
    main()
