"""Where the time of a captured step goes: LeNet, Pareto MTL, batch 256, two tasks, on a GPU.

    python benchmarks/step_profile.py                 # writes benchmarks/results/profile-cuda.json; needs a GPU
    python benchmarks/step_profile.py --out FOLDER

For 1, 5 and 25 models, by the kernels of this library and by torch operations alone (`PARETOMTL_KERNELS=0`): kernels
per step, milliseconds per step without a profiler (`milliseconds`), milliseconds in which some kernel runs (`busy`),
and the groups of kernels that take most. `idle` is the share of time between kernels, 1 - busy / milliseconds;
`idle_profiled` is the same on the time line of the profiler, which stretches it.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import torch
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

from front import runner
from models import cases
from paretomtl.compare import Row, environment, save_rows
from paretomtl.training.torch_modes import library_modes

STEPS, ROUNDS = 50, 9
GROUPS = {
    "convolutions": ("correlate", "weight_gradient", "conv", "wgrad", "dgrad", "fprop", "cudnn", "winograd"),
    "poolings": ("pool",),
    "matrix products": ("gemm", "cutlass", "cublas", "splitk"),
    "the dual and its weights": ("pareto_mtl", "min_norm"),
    "copies": ("copy", "memcpy", "cat"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    out = parser.parse_args().out
    if not torch.cuda.is_available():
        sys.exit("this benchmark needs a GPU")
    with library_modes("float32"):
        rows = [measure(models, kernels=kernels) for kernels in (True, False) for models in (1, 5, 25)]
    common = environment()
    save_rows(
        out / "profile-cuda.json", "profile", "python benchmarks/step_profile.py", [{**row, **common} for row in rows]
    )
    for row in rows:
        print(row)


def measure(models: int, *, kernels: bool) -> Row:
    os.environ["PARETOMTL_KERNELS"] = "1" if kernels else "0"
    problem = cases()[0].problem(2)
    steps = runner(problem, models, torch.device("cuda"), "graphed", "float32", STEPS)
    steps()
    times = []
    for _ in range(ROUNDS):
        torch.cuda.synchronize()
        began = time.perf_counter()
        steps()
        torch.cuda.synchronize()
        times.append(1e3 * (time.perf_counter() - began) / STEPS)
    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        steps()
        torch.cuda.synchronize()
    os.environ["PARETOMTL_KERNELS"] = "1"
    ran = [event for event in seen.events() if event.device_type == DeviceType.CUDA]
    busy = _union([(event.time_range.start, event.time_range.end) for event in ran])
    span = max(event.time_range.end for event in ran) - min(event.time_range.start for event in ran)
    wall = statistics.median(times)
    groups: dict[str, float] = {}
    for event in ran:
        name = next((g for g, words in GROUPS.items() if any(w in event.name.lower() for w in words)), "all else")
        groups[name] = groups.get(name, 0.0) + event.time_range.elapsed_us() / 1e3 / STEPS
    return {
        "what": "profile",
        "models": models,
        "by": "own kernels" if kernels else "torch operations",
        "kernels": round(len(ran) / STEPS, 1),
        "milliseconds": round(wall, 4),
        "busy": round(busy / 1e3 / STEPS, 4),
        "idle": round(1 - busy / 1e3 / STEPS / wall, 3),
        "idle_profiled": round(1 - busy / span, 3),
        "groups": {name: round(value, 4) for name, value in sorted(groups.items(), key=lambda item: -item[1])},
        "rounds": ROUNDS,
    }


def _union(spans: list[tuple[Any, Any]]) -> float:
    """Microseconds that at least one of the spans covers."""
    total, end = 0.0, float("-inf")
    for begin, finish in sorted(spans):
        total += max(0.0, finish - max(begin, end))
        end = max(end, finish)
    return total


if __name__ == "__main__":
    main()
