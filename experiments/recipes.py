"""Search the recipe with which LeNet learns MultiMNIST best. The test split is not used.

    python experiments/recipes.py --data FOLDER                 # on a GPU, about five minutes
    python experiments/recipes.py --data FOLDER --out FOLDER    # instead of experiments/results

Every candidate trains five models by linear scalarization for 30 epochs on the first 100,000 canvases; some also by
Pareto MTL. All have inputs from 0 to 1 and AdamW. It stores the losses on the last 20,000 training canvases, which
share no image with the others, and their hypervolume at (2, 2), if moocore is installed.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

from torch.optim.lr_scheduler import CosineAnnealingLR, LambdaLR, LRScheduler

import paretomtl as pm
from paretomtl.compare import Row, environment, load_rows, numbers, save_rows
from paretomtl.compare.row_indicators import fill_indicators
from paretomtl.paper.cell_settings import study_method
from paretomtl.problems.recipes import warm_cosine

EPOCHS = 30


@dataclass(frozen=True)
class Candidate:
    """A learning rate, a decay and a schedule, for a method."""

    rate: float
    weight_decay: float
    schedule: str = "warm, by step"  # "cosine, by epoch", "warm, by epoch"
    batch_size: int = 256
    beta: float = 0.999
    method: str = "linear"
    seeds: tuple[int, ...] = (0,)


BOTH = (0, 1)
CANDIDATES = (
    Candidate(0.002, 0.05, "cosine, by epoch", seeds=BOTH),
    Candidate(0.002, 0.2, "cosine, by epoch", seeds=BOTH),
    Candidate(0.004, 0.05, "cosine, by epoch", seeds=BOTH),
    Candidate(0.004, 0.2, "cosine, by epoch", seeds=BOTH),
    Candidate(0.008, 0.2, "cosine, by epoch"),
    Candidate(0.016, 0.2, "warm, by epoch"),
    Candidate(0.024, 0.3, "warm, by epoch"),
    Candidate(0.004, 0.2, seeds=BOTH),
    Candidate(0.008, 0.1),
    Candidate(0.008, 0.2, seeds=BOTH),
    Candidate(0.016, 0.1),
    Candidate(0.016, 0.2),
    Candidate(0.016, 0.4),
    Candidate(0.032, 0.2),
    Candidate(0.016, 0.3, beta=0.99),
    Candidate(0.016, 0.2, batch_size=128),
    Candidate(0.008, 0.2, "cosine, by epoch", method="pareto-mtl"),
    Candidate(0.008, 0.2, method="pareto-mtl"),
    Candidate(0.016, 0.2, method="pareto-mtl"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="where the canvases are")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    arguments = parser.parse_args()
    path = arguments.out / "recipes.json"
    rows = load_rows(path) if path.exists() else []
    problem = pm.problems.multi_mnist(validation=True, folder=arguments.data)
    problem = replace(problem, val=None, test=problem.val)  # measured once, at the end
    for candidate in CANDIDATES:
        if not any(described(candidate).items() <= row.items() for row in rows):
            rows += run(problem, candidate)
            save_rows(path, "recipes", "python experiments/recipes.py", rows)
    save_rows(path, "recipes", "python experiments/recipes.py", fill_indicators(rows))


def described(candidate: Candidate) -> Row:
    return {name: value for name, value in asdict(candidate).items() if name != "seeds"}


def run(problem: pm.Problem, candidate: Candidate) -> list[Row]:
    def optimizer(parameters: object) -> torch.optim.Optimizer:
        options = {"lr": candidate.rate, "weight_decay": candidate.weight_decay, "betas": (0.9, candidate.beta)}
        return torch.optim.AdamW(parameters, **options)

    steps = EPOCHS * -(-len(problem.train[1]) // candidate.batch_size)

    def scheduler(optimizer: torch.optim.Optimizer) -> LRScheduler:
        if candidate.schedule == "warm, by step":
            return warm_cosine(optimizer, steps)
        if candidate.schedule == "cosine, by epoch":
            return CosineAnnealingLR(optimizer, EPOCHS)
        return LambdaLR(optimizer, lambda t: min(1, (t + 1) / 3) * 0.5 * (1 + math.cos(math.pi * t / EPOCHS)))

    began = time.perf_counter()
    fronts = pm.fit_seeds(
        problem,
        study_method(candidate.method, problem.recipe.methods),
        5,
        seeds=candidate.seeds,
        epochs=EPOCHS,
        batch_size=candidate.batch_size,
        optimizer=optimizer,
        scheduler=scheduler,
        schedule="step" if candidate.schedule == "warm, by step" else "epoch",
    )
    seconds = round(time.perf_counter() - began, 1)
    print(candidate, f"{seconds} s", flush=True)
    return [
        {
            **described(candidate),
            "problem": "multi-mnist",
            "preferences": 5,
            "epochs": EPOCHS,
            "seed": front.seed,
            "split": "validation",
            "tasks": list(front.tasks),
            "hypervolume": None,
            "reference": [2.0, 2.0],
            "losses": numbers(front.losses["test"]),
            "seconds": seconds,
            **environment(),
        }
        for front in fronts
    ]


if __name__ == "__main__":
    main()
