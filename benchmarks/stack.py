"""Time and memory of a step of 25 models with three tasks and more: as a stack, or one after another.

    python benchmarks/stack.py                 # writes benchmarks/results/stack-cuda.json; needs a GPU
    python benchmarks/stack.py --out FOLDER

The networks of the experiments with three tasks, on made-up data of the same shapes, batches of 256, Pareto MTL and SGD
with momentum, float32: the census network, the mixture of experts, ResNet-18 on pictures of 48 by 48. `graphed`,
`batched` and `sequential` are the strategies of `fit`; all of them hold 25 models. They take turns in one run; times
are medians over rounds. Peak memory is that of one strategy from its set-up through its first steps, without the memory
of the others.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from functools import partial
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

import paretomtl as pm
from front import ready, runner
from paretomtl.compare import Row, environment, save_rows
from paretomtl.problems import MLP, MixtureOfExperts, ResNet18, face_losses
from paretomtl.problems._losses import binary_cross_entropies
from paretomtl.training.torch_modes import library_modes
from timing import take_turns

MODELS, SAMPLES, STEPS, ROUNDS = 25, 2048, 4, 5


def problems() -> dict[str, pm.Problem]:
    g = torch.Generator().manual_seed(0)
    records = torch.randn(SAMPLES, 482, generator=g), torch.randint(2, (SAMPLES, 3), generator=g).float()
    pictures = torch.randint(256, (SAMPLES, 3, 48, 48), generator=g, dtype=torch.uint8)
    labels = torch.stack([torch.randint(high, (SAMPLES,), generator=g) for high in (2, 5, 80)], -1)
    tasks = ["a", "b", "c"]
    return {
        "census MLP": pm.Problem(lambda: MLP(482, 3), binary_cross_entropies, tasks, train=records),
        "mixture of experts": pm.Problem(
            lambda: MixtureOfExperts(482, 3), binary_cross_entropies, tasks, train=records
        ),
        "ResNet-18": pm.Problem(
            lambda: ResNet18((2, 5, 1), channels=3, scale=1 / 255), face_losses, tasks, train=(pictures, labels)
        ),
    }


def measure(name: str, problem: pm.Problem, device: torch.device) -> list[Row]:
    parameters = sum(p.numel() for p in problem.model().parameters())
    strategies = ("graphed", "batched", "sequential")
    calls, peaks = {}, {}
    for strategy in strategies:
        make = partial(runner, problem, MODELS, device, strategy, "float32", STEPS)
        calls[strategy], peaks[strategy] = ready(make, device)
    times = take_turns(calls, device.type, ROUNDS, 1)
    rows: list[Row] = []
    for strategy in strategies:
        each = [value / (STEPS if strategy == "graphed" else 1) for value in times[strategy]]
        rows.append(
            {
                "what": "step of 25 models",
                "model": name,
                "parameters": parameters,
                "models": MODELS,
                "tasks": len(problem.tasks),
                "strategy": strategy,
                "milliseconds": round(statistics.median(each), 3),
                "rounds": len(each),
                "peak_megabytes": round(peaks[strategy], 1),
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    out = parser.parse_args().out
    if not torch.cuda.is_available():
        sys.exit("this benchmark needs a GPU")
    rows = []
    with library_modes("float32"):
        for name, problem in problems().items():
            rows += [{**row, **environment()} for row in measure(name, problem, torch.device("cuda"))]
            save_rows(out / "stack-cuda.json", "stack", "python benchmarks/stack.py", rows)
            for row in rows[-3:]:
                print({key: row[key] for key in ("model", "strategy", "milliseconds", "peak_megabytes")}, flush=True)


if __name__ == "__main__":
    main()
