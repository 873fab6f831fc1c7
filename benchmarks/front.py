"""A training step of a whole front: this library, the paper's pattern, TorchJD and a plain weighted sum.

    python benchmarks/front.py                 # writes benchmarks/results/front-cuda.json, or -cpu without a GPU
    python benchmarks/front.py --quick         # few models, few rounds
    python benchmarks/front.py --out FOLDER

K models are advanced by one step on a batch of 256, by each contender, SGD with momentum:

- `graphed` (on a GPU), `batched` and `sequential`: Pareto MTL as `fit` trains it, by these strategies.
- `paper`: the paper's step for one model after another: two forward passes for each task and one backward pass more
  than tasks, gradients flattened and read by the host, a Frank-Wolfe search on the host.
- `torchjd`: `autojac.backward` and MGDA of TorchJD, one model after another; left out if it is not installed.
- `sum`: a plain weighted-sum step, one model after another.

Contenders that take one model after another are measured on one model, and multiplied by K (`multiplied` is true).
All contenders of a case take turns in one run. Times are medians over rounds; each round of `graphed` is many steps.
Peak memory is that of a step, without the memory of other contenders. The floor is the larger of two times: the
arithmetic at the rate of a large matrix product, and the activations at the rate of a large copy. Both rates are
measured at the start of the run (float32 without TF32).
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

import paretomtl as pm
from models import Case, cases
from paretomtl.compare import Row, environment, save_rows
from paretomtl.engine.batches.indexed import ResidentBatches
from paretomtl.engine.batches.make import make_batches
from paretomtl.engine.history import EpochHistory
from paretomtl.engine.models.modules import make_modules
from paretomtl.engine.runners.cuda_graph import GraphRunner
from paretomtl.engine.runners.eager import EagerRunner
from paretomtl.engine.strategy import Plan
from paretomtl.training.torch_modes import library_modes
from timing import take_turns

STEPS = 10  # of a graphed runner in a round
SECONDS = 2.5  # about how long all rounds of a case take; at least three rounds


def sgd(parameters: Any) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr=1e-4, momentum=0.9)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    with library_modes("float32"):
        rates = ceilings(device)
        rows = []
        for case, models, tasks, precision in grid(device, quick=arguments.quick):
            with library_modes(precision):
                found = measure(case, models, tasks, precision, device, rates, rounds=5 if arguments.quick else 15)
            common = {"device": device.type, "threads": torch.get_num_threads(), **rates, **environment()}
            rows += [{**row, **common} for row in found]
            for row in found:
                print({k: v for k, v in row.items() if k not in ("rounds", "quartiles")}, flush=True)
            path = arguments.out / f"front-{device.type}{'-quick' if arguments.quick else ''}.json"
            save_rows(path, "front", "python benchmarks/front.py", rows)  # after each case: a later one may fail


def grid(device: torch.device, *, quick: bool) -> list[tuple[Case, int, int, str]]:
    """1 to 125 models with the usual number of tasks; 2, 3 and 8 tasks, and other precisions, with 5 models."""
    counts = (1, 5) if quick or device.type == "cpu" else (1, 5, 25, 125)
    found = []
    for case in cases():
        large = case.name == "ResNet-18"
        if device.type == "cpu" and large:
            continue  # takes minutes per step
        found += [(case, models, case.tasks, "float32") for models in counts if models <= 25 or not large]
        found += [(case, 5, tasks, "float32") for tasks in (2, 3, 8) if tasks != case.tasks and not quick]
        if device.type == "cuda":
            found += [(case, 5, case.tasks, precision) for precision in ("tf32", "bfloat16")]
    return found


def ceilings(device: torch.device) -> dict[str, float]:
    """The rates of a large float32 matrix product and of a large copy, measured now."""
    size = 8192 if device.type == "cuda" else 2048
    a, b = torch.randn(2, size, size, device=device)
    big = torch.empty(1 << (30 if device.type == "cuda" else 26), dtype=torch.uint8, device=device)
    times = take_turns({"product": lambda: a @ b, "copy": lambda: big.clone()}, device.type, 5, 2)
    product, copy = (1e-3 * statistics.median(times[name]) for name in ("product", "copy"))
    return {"flops_a_second": 2 * size**3 / product, "bytes_a_second": 2 * big.numel() / copy}


def measure(
    case: Case, models: int, tasks: int, precision: str, device: torch.device, rates: dict[str, float], rounds: int
) -> list[Row]:
    problem = case.problem(tasks)
    floor = case.floor(models, tasks, **rates)
    steps = 4 if case.name == "ResNet-18" else STEPS
    common = {
        "what": "step",
        "model": case.name,
        "models": models,
        "tasks": tasks,
        "precision": precision,
        "floor_milliseconds": round(floor, 4),
    }

    def ours(strategy: str, count: int) -> Callable[[], Callable[[], Any]]:
        return lambda: runner(problem, count, device, strategy, precision, steps)

    contenders: dict[str, tuple[Callable[[], Callable[[], Any]], int, int]] = {}
    if device.type == "cuda":
        contenders["graphed"] = (ours("graphed", models), 1, steps)
    if models <= 25 and precision == "float32":
        contenders["batched"] = (ours("batched", models), 1, 1)
    contenders["sequential"] = (ours("sequential", 1), models, 1)
    if precision == "float32":
        others = one_at_a_time(problem, case.batch, device)
        contenders |= {name: (make, models, 1) for name, make in others.items()}
    calls, peaks, failed = {}, {}, {}
    for name, (make, _, _) in contenders.items():
        try:
            calls[name], peaks[name] = ready(make, device)
        except (RuntimeError, ModuleNotFoundError) as error:  # such as out of memory; stored as a result
            failed[name] = f"{type(error).__name__}: {str(error).splitlines()[0]}"
    spent = sum(_once(call, device) for call in calls.values())
    times = take_turns(calls, device.type, max(3, min(rounds, int(SECONDS / max(spent, 1e-3)))), 1)
    rows: list[Row] = [{**common, "contender": name, "milliseconds": None, "why": why} for name, why in failed.items()]
    for name, values in times.items():
        _, factor, many = contenders[name]
        each = [factor * value / many for value in values]
        rows.append(
            {
                **common,
                "contender": name,
                "milliseconds": round(statistics.median(each), 4),
                "quartiles": [round(q, 4) for q in statistics.quantiles(each, n=4)[::2]],
                "multiplied": factor > 1,
                "rounds": len(each),
                "peak_megabytes": None if peaks[name] is None else round(peaks[name], 1),
            }
        )
    calls.clear()
    _forget(device)
    return rows


def runner(
    problem: pm.Problem, models: int, device: torch.device, strategy: str, precision: str, many: int
) -> Callable[[], Any]:
    """Steps of `fit`."""
    method = pm.ParetoMTL(rescale=True, initial_steps=0)
    tasks = len(problem.tasks)
    modules = make_modules(problem, range(models), device, torch.float32)
    state = {name: tensor.to(device) for name, tensor in method.init(method.spread(models, tasks)).items()}
    train = make_batches("train", problem.train, batch_size=256, device=device, dtype=torch.float32)
    assert isinstance(train, ResidentBatches)
    autocast = torch.bfloat16 if precision == "bfloat16" else None
    groups = getattr(Plan(problem, method, sgd, autocast=autocast), strategy)(modules, state)
    kind: type[EagerRunner] = GraphRunner if strategy == "graphed" else EagerRunner
    made = kind(groups, train, EpochHistory(models, tasks, device), 10**6, 1)
    number = 0

    def steps() -> None:
        nonlocal number
        left = many if strategy == "graphed" else 1
        while left:
            for item in made.epoch(0, 0, 0, number):
                made.step(item, number)
                number, left = number + 1, left - 1
                if not left:
                    break

    return steps


def one_at_a_time(problem: pm.Problem, size: int, device: torch.device) -> dict[str, Callable[[], Callable[[], Any]]]:
    """Steps of one model by the other contenders."""
    inputs, labels = (part[:size].to(device) for part in problem.train)
    tasks = len(problem.tasks)

    def start() -> tuple[torch.nn.Module, list[Tensor], torch.optim.Optimizer]:
        (model,) = make_modules(problem, [0], device, torch.float32)
        return model, list(model.parameters()), sgd(model.named_parameters())

    def paper() -> Callable[[], Any]:
        model, parameters, optimizer = start()

        def step() -> None:
            rows = []
            for i in range(tasks):
                optimizer.zero_grad()
                problem.losses(model(inputs), labels)[i].backward()
                rows.append(torch.cat([p.grad.flatten() for p in parameters if p.grad is not None]))
            with torch.no_grad():
                length = min(len(row) for row in rows)
                weights = frank_wolfe([row[:length] for row in rows])
            optimizer.zero_grad()
            total: Any = 0.0
            for i in range(tasks):
                total = total + weights[i] * problem.losses(model(inputs), labels)[i]
            total.backward()
            optimizer.step()

        return step

    def torchjd() -> Callable[[], Any]:
        from torchjd.aggregation import MGDA
        from torchjd.autojac import backward, jac_to_grad

        model, parameters, optimizer = start()
        aggregator = MGDA()

        def step() -> None:
            optimizer.zero_grad()
            losses = problem.losses(model(inputs), labels)
            backward(losses)
            jac_to_grad(parameters, aggregator)
            optimizer.step()

        return step

    def weighted_sum() -> Callable[[], Any]:
        model, _, optimizer = start()

        def step() -> None:
            optimizer.zero_grad()
            problem.losses(model(inputs), labels).mean().backward()
            optimizer.step()

        return step

    return {"paper": paper, "torchjd": torchjd, "sum": weighted_sum}


def frank_wolfe(rows: list[Tensor], steps: int = 20) -> list[float]:
    """A search for the min-norm weights on the host, which reads the products, as in the paper's code."""
    products = [[float(a @ b) for b in rows] for a in rows]
    count = len(rows)
    weights = [1.0 / count] * count
    for _ in range(steps):
        slopes = [sum(p * w for p, w in zip(line, weights, strict=True)) for line in products]
        best = min(range(count), key=slopes.__getitem__)
        now, cross, there = sum(s * w for s, w in zip(slopes, weights, strict=True)), slopes[best], products[best][best]
        share = min(1.0, max(0.0, (now - cross) / max(now - 2 * cross + there, 1e-30)))
        weights = [(1 - share) * w + share * (i == best) for i, w in enumerate(weights)]
        if share < 1e-5:
            break
    return weights


def ready(make: Callable[[], Callable[[], Any]], device: torch.device) -> tuple[Callable[[], Any], float | None]:
    """A contender after some steps, and their peak memory in megabytes."""
    _forget(device)
    before = torch.cuda.memory_allocated() if device.type == "cuda" else 0
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
    call = make()
    call()
    call()
    if device.type != "cuda":
        return call, None
    torch.cuda.synchronize()
    return call, (torch.cuda.max_memory_allocated() - before) / 1e6


def _once(call: Callable[[], Any], device: torch.device) -> float:
    began = time.perf_counter()
    call()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - began


def _forget(device: torch.device) -> None:
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
