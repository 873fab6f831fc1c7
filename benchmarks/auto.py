"""What `auto` chooses, and what it is worth: against interior weights and Pareto MTL, with the same steps for all.

    python benchmarks/auto.py                    # writes benchmarks/results/auto.json; half an hour on two cores
    python benchmarks/auto.py --only synthetic   # one part alone: synthetic, difficulty, digits or noise

- synthetic: the paper's concave problem with 2, 3 and 5 tasks, 1,000 steps with a cosine decay, 20 seeds, three
  optimizers. `in_region` is the share of models in their own region; for linear, in the regions that `auto` found with
  the same seed. `distance` is the largest distance to the true front, `hypervolume` is at (1, ..., 1). Pareto MTL has
  even vectors, as in the paper or with returns to its regions; SGD has m times the rate for it, because its weights sum
  to at most 1, and those of the others to m. It is left out for five tasks, where it takes most of an hour.
- difficulty: two tasks whose losses differ by a factor; `hypervolume` is divided by that factor.
- digits: multi-digits with its recipe, five models, five seeds. Regions are those of training losses.
- noise: multi-digits with batches of 16, a quarter of the epochs, five seeds: how strictly a ratio can be held.

One row per seed. Rows with `difference` compare `auto` with another method, paired by seed: the mean, with half the
width of its 95 % interval (Student's t).
"""

from __future__ import annotations

import argparse
import functools
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

import paretomtl as pm
from paretomtl._support.significance import half_width, mean
from paretomtl.compare import Row, environment, load_rows, save_rows
from paretomtl.core import in_region
from paretomtl.methods import Method, PNorm, Reachable
from paretomtl.training.fit_to_end import fit_seeds_to_end

OPTIMIZERS: dict[str, Callable[[Any, float], torch.optim.Optimizer]] = {
    "SGD 0.1": lambda parameters, factor: torch.optim.SGD(parameters, lr=0.1 * factor),
    "SGD 0.03, momentum 0.9": lambda parameters, factor: torch.optim.SGD(parameters, lr=0.03 * factor, momentum=0.9),
    "Adam 0.02": lambda parameters, factor: torch.optim.Adam(parameters, lr=0.02),
}
COUNTS = {2: 10, 3: 15, 5: 25}
DIFFICULTIES = (1.0, 2.0, 10.0, 50.0, 1000.0)
QUIET: dict[str, Any] = {"device": "cpu", "progress": "quiet", "strategy": "batched"}
RETURNS = pm.ParetoMTL(return_share=0.2)


def decay(optimizer: torch.optim.Optimizer, total: int) -> torch.optim.lr_scheduler.LRScheduler:
    return torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, total)


STEPS: dict[str, Any] = {"epochs": 1000, "scheduler": decay, "schedule": "step", **QUIET}


def main() -> None:
    parts: dict[str, Callable[[], list[Row]]] = {
        "synthetic": synthetic,
        "difficulty": difficulty,
        "digits": digits,
        "noise": noise,
    }
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--only", choices=parts, action="append")
    options = parser.parse_args()
    out = options.out / "auto.json"
    torch.set_num_threads(1)
    rows = load_rows(out) if out.exists() else []
    for part in options.only or parts:
        rows = [row for row in rows if row["part"] != part]
        rows += [{"part": part, **row, **environment()} for row in parts[part]()]
        save_rows(out, "auto", "python benchmarks/auto.py", rows)


def synthetic() -> list[Row]:
    """The concave problem: every method, number of tasks and optimizer."""
    rows = []
    for tasks, count in COUNTS.items():
        problem = pm.problems.synthetic(tasks=tasks)
        assert problem.truth is not None
        for name, make in OPTIMIZERS.items():
            regions: dict[int | None, Any] = {}
            methods: dict[str, Any] = {
                "auto": "auto",
                "linear": "linear",
                **({} if tasks > 3 else {"pareto-mtl": pm.ParetoMTL(), "pareto-mtl, returns": RETURNS}),
            }
            for method, configured in methods.items():
                factor = tasks if isinstance(configured, pm.ParetoMTL) else 1
                optimizer = functools.partial(make, factor=factor)
                fronts, seconds = train(problem, configured, count, range(20), optimizer=optimizer, **STEPS)
                for front in fronts:
                    losses = front.losses["train"].double()
                    if method == "auto":
                        regions[front.seed] = front
                    asked = regions[front.seed] if method == "linear" else front
                    inside = in_region(asked.preferences, losses * (1.0 if asked.scale is None else asked.scale))
                    rows.append(
                        {
                            "tasks": tasks,
                            "optimizer": name,
                            "method": method,
                            "seed": front.seed,
                            "models": count,
                            "in_region": float(inside.double().mean()),
                            "distance": round(float(problem.truth.distance(losses).max()), 6),
                            "hypervolume": round(front.hypervolume([1.0] * tasks), 5),
                            "seconds": seconds,
                        }
                    )
                report(rows[-20:], tasks, name, method)
    return rows


def difficulty() -> list[Row]:
    """Losses that differ by a factor, by auto without being told."""
    rows = []
    adam = functools.partial(OPTIMIZERS["Adam 0.02"], factor=1)
    for factor in DIFFICULTIES:
        problem = pm.problems.synthetic(difficulties=[factor, 1.0])
        fronts, seconds = train(problem, "auto", 10, range(20), optimizer=adam, **STEPS)
        rows += [
            {
                "factor": factor,
                "method": "auto",
                "seed": front.seed,
                "in_region": front.region_hits() / 10,
                "hypervolume": round(front.hypervolume([factor, 1.0]) / factor, 5),
                "seconds": seconds,
            }
            for front in fronts
        ]
        report(rows[-20:], factor)
    return rows


def digits() -> list[Row]:
    """Real handwritten digits, the recipe of the problem."""
    problem = pm.problems.multi_digits()
    methods: dict[str, tuple[Any, Any]] = {
        "auto": ("auto", 5),
        "linear, interior": ("linear", 5),
        "pareto-mtl, even": ("pareto-mtl", 5),
        "pareto-mtl, reachable": ("pareto-mtl", "reachable:5"),
        "p-norm medium, reachable": (PNorm(p="medium"), "reachable:5"),
    }
    rows: list[Row] = []
    for name, (method, preferences) in methods.items():
        fronts, seconds = train(problem, method, preferences, range(5), **QUIET)
        for front in fronts:
            directed = front.reading == "direction"
            rows.append(
                {
                    "method": name,
                    "seed": front.seed,
                    "in_region": front.region_hits("train") / 5 if directed else None,
                    "hypervolume": round(front.hypervolume([2.0, 2.0], split="val"), 5),
                    "test": round(front.hypervolume([2.0, 2.0], split="test"), 5),
                    "seconds": seconds,
                }
            )
        report(rows[-5:], name)
    return [*rows, *differences(rows, "auto")]


def noise() -> list[Row]:
    """Small batches: the share in region by how strictly the ratio is held."""
    problem = pm.problems.multi_digits()
    methods: dict[str, Method] = {
        "p-norm medium": Reachable(PNorm(p="medium")),
        "p-norm strict": Reachable(PNorm(p="strict")),
        "p-norm strict, least 0.1": Reachable(PNorm(p="strict", least=0.1)),
    }
    rows: list[Row] = []
    for name, method in methods.items():
        fronts, seconds = train(problem, method, 5, range(5), epochs=8, batch_size=16, **QUIET)
        rows += [
            {
                "method": name,
                "seed": front.seed,
                "in_region": front.region_hits("train") / 5,
                "hypervolume": round(front.hypervolume([2.0, 2.0], split="val"), 5),
                "seconds": seconds,
            }
            for front in fronts
        ]
        report(rows[-5:], name)
    return rows


def train(
    problem: pm.Problem, method: Any, preferences: Any, seeds: Sequence[int], **options: Any
) -> tuple[list[pm.Front], float]:
    """The fronts of all seeds, and the seconds of one."""
    began = time.perf_counter()
    fronts = fit_seeds_to_end(problem, method, preferences, seeds=seeds, **options)  # a stopped run is no result
    return fronts, round((time.perf_counter() - began) / len(seeds), 3)


def differences(rows: Sequence[Row], method: str) -> list[Row]:
    """One row per other method and split: the hypervolume of ``method`` less that of the other, paired by seed."""
    found = []
    for other in dict.fromkeys(row["method"] for row in rows):
        for column in ("hypervolume", "test") if other != method else ():
            one, two = ([row[column] for row in rows if row["method"] == each] for each in (method, other))
            gains = [a - b for a, b in zip(one, two, strict=True)]
            split = "val" if column == "hypervolume" else column
            row = {"method": method, "against": other, "split": split, "seeds": len(gains)}
            row |= {"difference": round(mean(gains), 5), "half_width": round(half_width(gains), 5)}
            print(row, flush=True)
            found.append(row)
    return found


def report(rows: Sequence[Row], *what: Any) -> None:
    shares = [row["in_region"] for row in rows if row["in_region"] is not None]
    inside = f"in region {mean(shares):.3f}" if shares else ""
    distance = f"distance {max(row['distance'] for row in rows):.4f}" if "distance" in rows[0] else ""
    volume = [row["hypervolume"] for row in rows]
    print(*what, inside, distance, f"hypervolume {mean(volume):.4f} {min(volume):.4f}", rows[0]["seconds"], flush=True)


if __name__ == "__main__":
    main()
