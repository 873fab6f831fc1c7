"""The time and the hypervolume of whole fronts, by every way of training them: is the faster way as good?

    python benchmarks/quality.py --data FOLDER      # writes benchmarks/results/quality-cuda.json
    python benchmarks/quality.py --fill             # adds the hypervolumes of stored points, with moocore

Regenerated MultiMNIST (`paretomtl data prepare multi-mnist --cache FOLDER`), LeNet, five preferences, batch 256, the
settings of the paper's code.

- `mode`: five seeds at once in one stack of 25 models, 6 epochs; every mode has the same seeds, initial weights and
  batches. The first mode is the baseline: torch operations launched one by one, float32. Differences are from it, seed
  by seed.
- `run`: one front of five models, 30 epochs, evaluation on training and test data included, as a user calls `fit`. The
  first run also starts CUDA, compiles kernels and tries the capture.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

import paretomtl as pm
from paretomtl.compare import Row, environment, save_rows

MODES: dict[str, dict[str, Any]] = {
    "torch operations, float32": {"strategy": "batched", "kernels": False},
    "graphed, float32": {},
    "graphed, tf32": {"precision": "tf32"},
    "graphed, bfloat16": {"precision": "bfloat16"},
    "graphed, Gramian of the trunk": {"scope": {"shared": ["trunk"]}},
    "graphed, Gramian of the representation": {"scope": {"representation": "trunk"}},
}
SEEDS, EPOCHS, RUN_EPOCHS, RUNS = 5, 6, 30, 3
RESULT = "quality-cuda.json"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--fill", action="store_true")
    arguments = parser.parse_args()
    if arguments.fill:
        fill(arguments.out / RESULT)
        return
    if not torch.cuda.is_available():
        sys.exit("this benchmark needs a GPU")
    problem = pm.problems.multi_mnist(folder=arguments.data, recipe="paper")
    rows: list[Row] = []
    common = {"problem": "multi-mnist", "method": "pareto-mtl", **environment()}
    jobs = [functools.partial(run, problem, seed) for seed in range(RUNS)]
    jobs += [functools.partial(mode, problem, name, **options) for name, options in MODES.items()]
    for job in jobs:
        rows += [{**row, **common} for row in job()]
        save_rows(arguments.out / RESULT, "quality", "python benchmarks/quality.py --data FOLDER", rows)


def run(problem: pm.Problem, seed: int) -> list[Row]:
    """One front, as a user trains it."""
    began = time.perf_counter()
    front = pm.fit(problem, preferences=5, epochs=RUN_EPOCHS, seed=seed, progress="quiet")
    seconds = time.perf_counter() - began
    print("run", seed, round(seconds, 2), front.strategy, flush=True)
    return [{"what": "run", "epochs": RUN_EPOCHS, "first": seed == 0, **described(front), "seconds": round(seconds, 2)}]


def mode(
    problem: pm.Problem, name: str, *, kernels: bool = True, scope: dict[str, Any] | None = None, **options: Any
) -> list[Row]:
    """Several fronts in one stack."""
    os.environ["PARETOMTL_KERNELS"] = "1" if kernels else "0"
    began = time.perf_counter()
    fronts = pm.fit_seeds(
        dataclasses.replace(problem, **(scope or {})), preferences=5, epochs=EPOCHS, seeds=range(SEEDS), **options
    )
    seconds = time.perf_counter() - began
    os.environ["PARETOMTL_KERNELS"] = "1"
    print("mode", name, round(seconds, 2), fronts[0].strategy, flush=True)
    return [
        {"what": "mode", "mode": name, "epochs": EPOCHS, **described(front), "seconds": round(seconds, 2)}
        for front in fronts
    ]


def described(front: pm.Front) -> Row:
    metrics = {name: [round(v, 5) for v in values.tolist()] for name, values in front.metrics["test"].items()}
    return {
        "preferences": len(front.preferences),
        "seed": front.seed,
        "strategy": front.strategy,
        "reference": [2.0, 2.0],
        "hypervolume": None,
        "losses": [[round(v, 6) for v in row] for row in front.losses["test"].tolist()],
        "metrics": metrics,
    }


def fill(path: Path) -> None:
    import moocore
    import numpy as np

    stored = json.loads(path.read_text())
    for row in stored["rows"]:
        row["hypervolume"] = round(float(moocore.hypervolume(np.array(row["losses"]), ref=row["reference"])), 5)
    save_rows(path, stored["name"], stored["command"], stored["rows"])


if __name__ == "__main__":
    main()
