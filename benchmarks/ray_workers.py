"""Eight subproblems on two cores: one Ray worker, two Ray workers, and one process with all threads.

    python benchmarks/ray_workers.py                 # writes benchmarks/results/ray-workers.json
    python benchmarks/ray_workers.py --rounds 5 --epochs 6 --out FOLDER

Eight LeNets (Pareto MTL, two tasks, batches of 256 canvases of 36 by 36) train for a few epochs. The ways take turns;
the first round, in which workers start and import torch, is not counted. Times are those of the whole call of `fit`,
including transfers to workers, evaluation and the merge of the front. Both ways on Ray have the same four shards. The
best setting of one process is the fastest of those that `auto` chooses from, with all threads.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

import paretomtl as pm
from paretomtl.compare import Row, environment, save_rows
from paretomtl.problems import LeNet, cross_entropies

MODELS, SAMPLES, CORES = 8, 2048, os.cpu_count() or 1


def problem() -> pm.Problem:
    g = torch.Generator().manual_seed(0)
    data = torch.rand(SAMPLES, 1, 36, 36, generator=g), torch.randint(10, (SAMPLES, 2), generator=g)
    return pm.Problem(LeNet, cross_entropies, ["a", "b"], train=data)


def seconds_of(train: Callable[[], pm.Front]) -> float:
    began = time.perf_counter()
    assert train().complete
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    asked = parser.parse_args()
    torch.set_num_threads(CORES)
    made = problem()

    def train(**options: object) -> pm.Front:
        return pm.fit(
            made, pm.ParetoMTL(initial_steps=0), MODELS, epochs=asked.epochs, batch_size=256, device="cpu",
            progress="quiet", **options,  # type: ignore[arg-type]
        )  # fmt: skip

    one = pm.RayExecutor(workers=1, shard_size=2)
    two = pm.RayExecutor(workers=2, shard_size=2)
    ways: dict[str, Callable[[], pm.Front]] = {
        "one worker": lambda: train(strategy="sequential", executor=one),
        "two workers": lambda: train(strategy="sequential", executor=two),
        "one process, one after another": lambda: train(strategy="sequential", workers=1),
        "one process, side by side": lambda: train(strategy="sequential", workers=CORES),
        "one process, a stack": lambda: train(strategy="batched"),
    }
    times: dict[str, list[float]] = {name: [] for name in ways}
    loads = []
    with one, two:
        for turn in range(asked.rounds + 1):
            for name, way in ways.items():
                took = seconds_of(way)
                if turn:
                    times[name].append(took)
            loads.append(os.getloadavg()[0])
            print({name: round(values[-1], 2) for name, values in times.items() if values}, flush=True)
    first = times["one worker"]
    rows: list[Row] = [
        {
            "what": "ray",
            "way": name,
            "models": MODELS,
            "epochs": asked.epochs,
            "batch": 256,
            "seconds": round(statistics.median(values), 3),
            "least": round(min(values), 3),
            "all_seconds": [round(value, 3) for value in values],
            "speedup_over_one_worker": round(statistics.median(a / b for a, b in zip(first, values, strict=True)), 3),
            "rounds": asked.rounds,
            "threads": 1 if "worker" in name else CORES,
            "load": round(statistics.fmean(loads), 2),
            **environment(),
        }
        for name, values in times.items()
    ]
    command = f"python benchmarks/ray_workers.py --rounds {asked.rounds} --epochs {asked.epochs}"
    save_rows(asked.out / "ray-workers.json", "ray-workers", command, rows)


if __name__ == "__main__":
    main()
