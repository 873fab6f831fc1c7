"""The cost of a training step compared with the bare autograd calls, a weighted sum, and the paper's pattern.

    python benchmarks/step.py                 # writes benchmarks/results/step-cpu.json, or -cuda on a GPU
    python benchmarks/step.py --out FOLDER

The paper's LeNet, batch 256, SGD with momentum, float32. All calls of a part take turns in one run; medians over the
rounds after a warm-up, ratios as medians over the rounds of the ratio within each.

- one model: a Pareto MTL step of `fit`, the same through `backward`, a plain weighted-sum step, the bare autograd calls
  (one forward pass, one `autograd.grad` per task), and the paper's pattern (two forward passes for each task and one
  backward pass more than tasks, without its solver, which would only add to it).
- tasks: 2 to 8 of them, one model.
- models: 1 to 25 of them, one after another and as a stack.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

import paretomtl as pm
from paretomtl.compare import Row, environment, save_rows
from paretomtl.engine.model_group import Group
from paretomtl.engine.models.modules import make_modules
from paretomtl.engine.step import StepInput, train_step
from paretomtl.engine.strategy import Plan
from paretomtl.problems import LeNet, cross_entropies
from timing import ROUNDS, take_turns

BATCH = 256
FEW = 15  # rounds for many models, whose steps are long


def sgd(parameters: Any) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr=1e-3, momentum=0.9)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    out = parser.parse_args().out
    device = "cuda" if torch.cuda.is_available() else "cpu"
    common = {"device": device, "threads": torch.get_num_threads(), "batch": BATCH, **environment()}
    rows = [*one_model(device), *many_tasks(device), *many_models(device)]
    rows = [{**row, **common} for row in rows]
    save_rows(out / f"step-{device}.json", "step", "python benchmarks/step.py", rows)
    for row in rows:
        print({name: value for name, value in row.items() if name not in common})


def batch_of(tasks: int, device: str) -> tuple[Tensor, Tensor]:
    g = torch.Generator().manual_seed(0)
    images = torch.rand(BATCH, 1, 36, 36, generator=g).to(device)
    return images, torch.randint(10, (BATCH, tasks), generator=g).to(device)


def groups(method: pm.methods.Method, tasks: int, models: int, device: str, *, stacked: bool) -> list[Group]:
    problem = pm.Problem(
        lambda: LeNet(tasks), cross_entropies, [f"t{i}" for i in range(tasks)], train=batch_of(tasks, "cpu")
    )
    modules = make_modules(problem, range(models), torch.device(device), torch.float32)
    state = {name: tensor.to(device) for name, tensor in method.init(method.spread(models, tasks)).items()}
    plan = Plan(problem, method, sgd, None, None, None, None)
    return plan.batched(modules, state) if stacked else plan.sequential(modules, state)


def fit_step(made: list[Group], batch: Any) -> Callable[[], Any]:
    given = StepInput(batch, 100, 1000)
    return lambda: train_step(made, given)


def calls_of(tasks: int, device: str) -> dict[str, Callable[[], Any]]:
    """The ways to make one step of one model."""
    batch = images, targets = batch_of(tasks, device)
    made = groups(pm.ParetoMTL(initial_steps=0), tasks, 5, device, stacked=False)[2:3]
    weigher = pm.ParetoMTL(initial_steps=0).bind(pm.preferences.lattice_or_energy(5, tasks), index=2)
    model = LeNet(tasks).to(device)
    parameters, optimizer = list(model.parameters()), sgd(model.named_parameters())

    def with_backward() -> None:
        optimizer.zero_grad()
        pm.backward(cross_entropies(model(images), targets), weigher, parameters)
        optimizer.step()

    def weighted_sum() -> None:
        optimizer.zero_grad()
        cross_entropies(model(images), targets).mean().backward()
        optimizer.step()

    def bare() -> None:
        losses = cross_entropies(model(images), targets)
        for i in range(tasks):
            torch.autograd.grad(losses[i], parameters, retain_graph=i + 1 < tasks, allow_unused=True)

    def papers_pattern() -> None:
        for i in range(tasks):
            optimizer.zero_grad()
            cross_entropies(model(images), targets)[i].backward()
            torch.cat([p.grad.flatten() for p in parameters if p.grad is not None])
        optimizer.zero_grad()
        total = torch.zeros((), device=device)
        for i in range(tasks):
            total = total + 0.5 * cross_entropies(model(images), targets)[i]
        total.backward()
        optimizer.step()

    return {
        "Pareto MTL, fit": fit_step(made, batch),
        "Pareto MTL, backward": with_backward,
        "weighted sum": weighted_sum,
        "bare autograd calls": bare,
        "the paper's pattern": papers_pattern,
    }


def rows_of(part: str, times: dict[str, list[float]], **fields: Any) -> list[Row]:
    medians = {name: statistics.median(values) for name, values in times.items()}
    return [
        {
            "what": part,
            "step": name,
            **fields,
            "milliseconds": round(medians[name], 3),
            "quartiles": [round(q, 3) for q in statistics.quantiles(times[name], n=4)[::2]],
            "rounds": len(times[name]),
            "first_over_this": round(_ratio(times[next(iter(times))], times[name]), 3),
        }
        for name in times
    ]


def _ratio(first: list[float], other: list[float]) -> float:
    """The median over the rounds of the ratio of two times: other work on the machine slows both."""
    return statistics.median(a / b for a, b in zip(first, other, strict=True))


def one_model(device: str) -> list[Row]:
    return rows_of("one model", take_turns(calls_of(2, device), device, 2 * ROUNDS), tasks=2, models=1)


def many_tasks(device: str) -> list[Row]:
    found = []
    for tasks in range(2, 9):
        calls = calls_of(tasks, device)
        wanted = {name: calls[name] for name in ("Pareto MTL, fit", "weighted sum", "bare autograd calls")}
        found += rows_of("tasks", take_turns(wanted, device), tasks=tasks, models=1)
    return found


def many_models(device: str) -> list[Row]:
    found = []
    batch = batch_of(2, device)
    for models in (1, 2, 5, 10, 25):
        calls = {
            f"{name}, {'as a stack' if stacked else 'one after another'}": fit_step(
                groups(method, 2, models, device, stacked=stacked), batch
            )
            for name, method in (("Pareto MTL", pm.ParetoMTL(initial_steps=0)), ("linear", pm.Linear()))
            for stacked in (False, True)
        }
        found += rows_of("models", take_turns(calls, device, FEW, 3), tasks=2, models=models)
    return found


if __name__ == "__main__":
    main()
