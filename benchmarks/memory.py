"""The peak memory of a training step on a GPU, against the number of tasks and of models.

    python benchmarks/memory.py                 # writes benchmarks/results/memory-cuda.json; needs a GPU
    python benchmarks/memory.py --out FOLDER

A network whose parameters outweigh its activations: four layers of 1024 by 1024 and a head for each task, batch 16, SGD
with momentum, float32. Peak memory of a step is in units of one model's parameters: parameters, momentum, the copy from
one step ago, the m task gradients, their weighted sum, and temporaries. The Gramian is over all parameters, over the
shared ones, or over the representation.
"""

from __future__ import annotations

import argparse
import gc
import sys
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

import paretomtl as pm
from paretomtl.compare import Row, environment, save_rows
from paretomtl.engine.models.modules import make_modules
from paretomtl.engine.step import StepInput, train_step
from paretomtl.engine.strategy import Plan

WIDTH, LAYERS, BATCH, STEPS = 1024, 4, 16, 3


class Wide(nn.Module):
    """Wide layers and small heads."""

    def __init__(self, tasks: int) -> None:
        super().__init__()
        layers = [layer for _ in range(LAYERS) for layer in (nn.Linear(WIDTH, WIDTH), nn.ReLU())]
        self.trunk = nn.Sequential(*layers)
        self.heads = nn.ModuleList([nn.Linear(WIDTH, 1) for _ in range(tasks)])

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.trunk(x)
        return torch.cat([head(hidden) for head in self.heads], -1)


def squares(outputs: Tensor, targets: Tensor) -> Tensor:
    return torch.stack([(y - t).square().mean() for y, t in zip(outputs.unbind(-1), targets.unbind(-1), strict=True)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    out = parser.parse_args().out
    if not torch.cuda.is_available():
        sys.exit("this benchmark needs a GPU")
    scopes: dict[str, dict[str, Any]] = {
        "all": {},
        "shared": {"shared": ["trunk"]},
        "representation": {"representation": "trunk"},
    }
    measure(pm.ParetoMTL(), 2, 1, stacked=True, scope="all", options={})  # warm-up: one-time allocations do not count
    rows = [
        measure(method, tasks, models, stacked=stacked, scope=name, options=options)
        for name, options in scopes.items()
        for method in (pm.ParetoMTL(initial_steps=0), pm.Linear())
        for tasks, models in ((2, 1), (4, 1), (8, 1), (2, 5), (2, 25), (8, 5))
        for stacked in (False, True)
    ]
    common = environment()
    save_rows(out / "memory-cuda.json", "memory", "python benchmarks/memory.py", [{**row, **common} for row in rows])
    for row in rows:
        print(row)


def measure(
    method: pm.methods.Method, tasks: int, models: int, *, stacked: bool, scope: str, options: dict[str, Any]
) -> Row:
    gc.collect()
    torch.cuda.empty_cache()
    g = torch.Generator().manual_seed(0)
    batch = (torch.randn(BATCH, WIDTH, generator=g).cuda(), torch.randn(BATCH, tasks, generator=g).cuda())
    names = [f"t{i}" for i in range(tasks)]
    problem = pm.Problem(lambda: Wide(tasks), squares, names, train=batch, **options)
    before = torch.cuda.memory_allocated()
    modules = make_modules(problem, range(models), torch.device("cuda"), torch.float32)
    size = sum(p.numel() * p.element_size() for p in modules[0].parameters())
    state = {name: tensor.cuda() for name, tensor in method.init(method.spread(models, tasks)).items()}
    plan = Plan(problem, method, lambda p: torch.optim.SGD(p, lr=1e-3, momentum=0.9), None, None, None, None)
    made = plan.batched(modules, state) if stacked else plan.sequential(modules, state)
    del modules
    for number in range(STEPS):
        if number == STEPS - 1:
            torch.cuda.synchronize()
            torch.cuda.reset_peak_memory_stats()
        for group in made:
            train_step([group], StepInput(batch, number, STEPS))
    torch.cuda.synchronize()
    peak = torch.cuda.max_memory_allocated() - before
    return {
        "what": "peak memory",
        "gramian": scope if method.needs_gramian else "none",
        "scope": scope,
        "method": method.name,
        "tasks": tasks,
        "models": models,
        "strategy": "batched" if stacked else "sequential",
        "megabytes_of_a_model": round(size / 1e6, 2),
        "peak_megabytes": round(peak / 1e6, 1),
        "peak_over_a_model": round(peak / size, 2),
        "peak_over_all_models": round(peak / size / models, 2),
    }


if __name__ == "__main__":
    main()
