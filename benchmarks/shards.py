"""K models on a CPU: all cores on one model at a time, or a share of the models on each core.

    python benchmarks/shards.py                 # writes benchmarks/results/shards.json
    python benchmarks/shards.py --out FOLDER

Steps of five and ten LeNets (Pareto MTL, two tasks) with batches of 256, 64 and 16: one after another with all
threads; by as many Python threads as there are cores, each with a share of the models and one thread for its
operations; and by as many processes, each with a share. The three take turns; a round of the processes ends when the
last one is done.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import statistics
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

import paretomtl as pm
from paretomtl.compare import Row, environment, save_rows
from paretomtl.engine.model_group import Group
from paretomtl.engine.models.modules import make_modules
from paretomtl.engine.step import StepInput, train_step
from paretomtl.engine.strategy import Plan
from paretomtl.problems import LeNet, cross_entropies
from timing import take_turns

ROUNDS, CORES = 15, os.cpu_count() or 1


def groups_of(models: int, batch: Any) -> list[Group]:
    method = pm.ParetoMTL(initial_steps=0)
    problem = pm.Problem(LeNet, cross_entropies, ["a", "b"], train=batch)
    modules = make_modules(problem, range(models), torch.device("cpu"), torch.float32)
    plan = Plan(problem, method, lambda p: torch.optim.SGD(p, lr=1e-3, momentum=0.9))
    return plan.sequential(modules, method.init(method.spread(models, 2)))


def batch_of(size: int) -> tuple[torch.Tensor, torch.Tensor]:
    g = torch.Generator().manual_seed(0)
    return torch.rand(size, 1, 36, 36, generator=g), torch.randint(10, (size, 2), generator=g)


def step(groups: list[Group], batch: Any) -> None:
    for group in groups:
        train_step([group], StepInput(batch, 100, 1000))


def serve(pipe: Any, models: list[int], total: int, size: int) -> None:
    """A process with a share of the models: a step for each message."""
    torch.set_num_threads(1)
    batch = batch_of(size)
    all_groups = groups_of(total, batch)
    mine = [all_groups[k] for k in models]
    while pipe.recv():
        step(mine, batch)
        pipe.send(True)


def measure(models: int, size: int) -> list[Row]:
    batch = batch_of(size)
    groups = groups_of(models, batch)
    shares = [list(range(models))[core::CORES] for core in range(CORES)]
    context = multiprocessing.get_context("spawn")
    pipes = []
    for share in shares:
        mine, theirs = context.Pipe()
        context.Process(target=serve, args=(theirs, share, models, size), daemon=True).start()
        pipes.append(mine)

    def together() -> None:
        step(groups, batch)

    def by_processes() -> None:
        for pipe in pipes:
            pipe.send(True)
        for pipe in pipes:
            pipe.recv()

    def share_of(numbers: list[int]) -> None:
        torch.set_num_threads(1)
        step([groups[k] for k in numbers], batch)

    with ThreadPoolExecutor(CORES) as pool:

        def by_threads() -> None:
            list(pool.map(share_of, shares))
            torch.set_num_threads(CORES)

        calls: dict[str, Callable[[], Any]] = {
            "one after another": together,
            "threads": by_threads,
            "processes": by_processes,
        }
        times = take_turns(calls, "cpu", ROUNDS, 3)
    for pipe in pipes:
        pipe.send(False)
    first = times["one after another"]
    return [
        {
            "what": "shards",
            "way": name,
            "models": models,
            "batch": size,
            "milliseconds": round(statistics.median(values), 2),
            "least": round(min(values), 2),
            "over_one_after_another": round(statistics.median(b / a for a, b in zip(first, values, strict=True)), 3),
            "rounds": ROUNDS,
        }
        for name, values in times.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    out = parser.parse_args().out
    torch.set_num_threads(CORES)
    rows: list[Row] = []
    for models in (5, 10):
        for size in (256, 64, 16):
            rows += measure(models, size)
            time.sleep(1)
            print(rows[-3:], flush=True)
    common = {"threads": CORES, **environment()}
    save_rows(out / "shards.json", "shards", "python benchmarks/shards.py", [{**row, **common} for row in rows])


if __name__ == "__main__":
    main()
