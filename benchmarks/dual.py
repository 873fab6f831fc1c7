"""The cost of the dual compared with the step that it serves, by the number of tasks and of preference vectors.

    python benchmarks/dual.py                 # writes benchmarks/results/dual-cpu.json, or -cuda on a GPU
    python benchmarks/dual.py --out FOLDER

LeNet with a head for each task, a batch of 256, one model of K. `step` is a whole training step of Pareto MTL: one
forward and m backward passes, Gramian, weights, update. `weigh` is the part between Gramian and update: regions, active
constraints, the dual. Both take turns in one run; times are medians over rounds. On a GPU steps are launched, not
captured.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

import paretomtl as pm
from models import cases
from paretomtl.compare import Row, environment, save_rows
from paretomtl.engine.models.modules import make_modules
from paretomtl.engine.step import StepInput, train_step
from paretomtl.engine.strategy import Plan
from paretomtl.methods import Step, slice_state
from timing import take_turns

TASKS, COUNTS = (2, 3, 4, 6, 10), (5, 25, 100)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    out = parser.parse_args().out
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    rows: list[Row] = []
    for tasks in TASKS:
        for count in COUNTS:
            rows.append({**measure(tasks, count, device), **environment()})
            print({k: v for k, v in rows[-1].items() if k not in ("versions", "hardware")}, flush=True)
            save_rows(out / f"dual-{device.type}.json", "dual", "python benchmarks/dual.py", rows)


def measure(tasks: int, count: int, device: torch.device) -> Row:
    (case,) = [case for case in cases() if case.name == "LeNet"]
    problem = case.problem(tasks)
    method = pm.ParetoMTL(initial_steps=0)
    modules = make_modules(problem, [0], device, torch.float32)
    whole = method.init(method.spread(count, tasks))
    state = {name: tensor.to(device) for name, tensor in slice_state(whole, slice(count // 2, count // 2 + 1)).items()}
    plan = Plan(problem, method, lambda parameters: torch.optim.SGD(parameters, lr=1e-4))
    (group,) = plan.sequential(modules, state)
    batch = tuple(part[:256].to(device) for part in problem.train)
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(1, tasks, 50, generator=generator)
    seen = Step(torch.rand(1, tasks, generator=generator).to(device), (rows @ rows.mT).to(device), number=1, total=100)
    calls = {
        "step": lambda: train_step([group], StepInput(batch, 1, 100)),
        "weigh": lambda: method.weigh(seen, state),
    }
    times = take_turns(calls, device.type, 15, 3)
    step, weigh = (statistics.median(times[name]) for name in ("step", "weigh"))
    return {
        "model": "LeNet",
        "tasks": tasks,
        "preferences": count,
        "step_milliseconds": round(step, 3),
        "weigh_milliseconds": round(weigh, 4),
        "share": round(weigh / step, 4),
        "threads": torch.get_num_threads(),
        "device": device.type,
    }


if __name__ == "__main__":
    main()
