"""Weights that are updated every n steps: how much time that saves, and how it changes the front.

    python benchmarks/weigh_every.py                 # writes benchmarks/results/weigh_every.json; about five minutes
    python benchmarks/weigh_every.py --out FOLDER

The problem multi-digits with its recipe (30 epochs, five preferences), Pareto MTL, five seeds for each n, on a CPU, one
model after another. Hypervolumes are on the test split at (2, 2).
"""

from __future__ import annotations

import argparse
import random
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

import paretomtl as pm
from paretomtl.compare import environment, save_rows

EVERY, SEEDS = (1, 2, 5, 20), 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    out = parser.parse_args().out
    problem = pm.problems.multi_digits()
    cells = [(every, seed) for every in EVERY for seed in range(SEEDS)]
    random.Random(0).shuffle(cells)
    rows = []
    for every, seed in cells:
        front = pm.fit(problem, seed=seed, weigh_every=every, strategy="sequential", device="cpu", progress="quiet")
        rows.append(
            {
                "what": "weigh_every",
                "problem": front.problem,
                "method": front.method,
                "preferences": len(front.preferences),
                "weigh_every": every,
                "seed": seed,
                "hypervolume": round(front.hypervolume([2.0, 2.0], split="test"), 5),
                "reference": [2.0, 2.0],
                "seconds": round(front.seconds, 2),
                "threads": torch.get_num_threads(),
                **environment(),
            }
        )
        print({name: rows[-1][name] for name in ("weigh_every", "seed", "hypervolume", "seconds")}, flush=True)
    rows.sort(key=lambda row: (row["weigh_every"], row["seed"]))
    save_rows(out / "weigh_every.json", "weigh_every", "python benchmarks/weigh_every.py", rows)


if __name__ == "__main__":
    main()
