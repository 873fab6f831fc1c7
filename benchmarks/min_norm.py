"""The dual's cost and accuracy compared with DAQP and TorchJD, measured side by side in one run.

    python benchmarks/min_norm.py                 # writes benchmarks/results/min_norm-cpu.json, or -cuda on a GPU
    python benchmarks/min_norm.py --out FOLDER

Speed: a batch of 25 subproblems with 3 tasks and 27 points (25 preferences: 3 tasks and 24 constraints), the solvers
called in turn in every round, medians over the rounds after a warm-up; then, in the same run, one training step of
LeNet (batch 256, one forward pass, two backward passes). Accuracy: the worst gap over random hulls with 2 to 16 tasks,
per kind. Lengths: by how much a task with a short gradient may rise, over 16 orders of magnitude.
Solvers that are not installed are left out.
"""

from __future__ import annotations

import argparse
import functools
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

sys.path[:0] = [str(Path(__file__).parents[1] / "src"), str(Path(__file__).parents[1] / "tests")]

from _helpers.hulls import KINDS, SCALES, gap, gradient_certificate, gradients, hulls  # noqa: E402
from paretomtl import core, preferences  # noqa: E402
from paretomtl.compare import Row, environment, save_rows  # noqa: E402
from paretomtl.core._min_norm import _factor  # noqa: E402
from paretomtl.problems import LeNet  # noqa: E402
from timing import ROUNDS, take_turns  # noqa: E402

try:
    import daqp
except ModuleNotFoundError:
    daqp = None
try:
    from torchjd.aggregation import MGDAWeighting
except ModuleNotFoundError:
    MGDAWeighting = None

SUBPROBLEMS, TASKS = 25, 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    out = parser.parse_args().out
    device = "cuda" if torch.cuda.is_available() else "cpu"
    common = {"device": device, "threads": torch.get_num_threads(), **environment()}
    rows = [{**row, **common} for row in [*speed(device), *([*accuracy(), *lengths()] if device == "cpu" else [])]]
    save_rows(out / f"min_norm-{device}.json", "min_norm", "python benchmarks/min_norm.py", rows)
    for row in rows:
        print({name: value for name, value in row.items() if name not in common})


def training_situation(device: str) -> tuple[Tensor, Tensor, Tensor]:
    """Inputs as in training: correlated gradients, losses outside their regions, the main phase's active rows."""
    g = torch.Generator().manual_seed(0)
    jacobian = torch.randn(SUBPROBLEMS, TASKS, 50, generator=g) + 0.7 * torch.randn(SUBPROBLEMS, 1, 50, generator=g)
    rows = core.region_rows(preferences.lattice_or_energy(SUBPROBLEMS, TASKS))
    values = core.constraint_values(rows, torch.rand(SUBPROBLEMS, TASKS, generator=g))
    eye = torch.eye(TASKS, dtype=torch.float64).expand(SUBPROBLEMS, TASKS, TASKS)
    allowed = torch.cat([torch.ones(SUBPROBLEMS, TASKS, dtype=torch.bool), core.active_main(values, rows, 0.1)], 1)
    return (jacobian @ jacobian.mT).double().to(device), torch.cat([eye, rows], 1).to(device), allowed.to(device)


def speed(device: str) -> list[Row]:
    gramian, rows, allowed = training_situation(device)
    calls: dict[str, Callable[[], Any]] = {"paretomtl": lambda: core.min_norm(gramian, rows, allowed)}
    if device == "cuda":
        calls["paretomtl, captured in a CUDA graph"] = captured(calls["paretomtl"])
    points = [(rows[k] @ _factor(gramian)[k])[allowed[k]].cpu() for k in range(SUBPROBLEMS)]
    hessians = [np.ascontiguousarray((p @ p.T).numpy()) for p in points]
    if daqp is not None:
        calls["daqp, simplex form, 25 calls"] = lambda: [daqp_simplex(h) for h in hessians]
        lifted = [daqp_lifted_arguments(p) for p in points]
        calls["daqp, lifted form, 25 calls"] = lambda: [daqp.solve(*arguments) for arguments in lifted]
    if MGDAWeighting is not None:
        weighting = MGDAWeighting()
        calls["torchjd MGDA, 25 calls"] = lambda: [weighting(torch.from_numpy(h)) for h in hessians]
    step = {"LeNet step, one model": lenet_step(device)}
    times = {**take_turns(calls, device), **take_turns(step, device)}
    calls |= step
    medians = {name: statistics.median(values) for name, values in times.items()}
    mine = medians["paretomtl"]
    return [
        {
            "what": "speed",
            "solver": name,
            "problems": SUBPROBLEMS,
            "tasks": TASKS,
            "points": int(rows.shape[1]),
            "allowed": round(float(allowed.sum(-1).double().mean()), 1),
            "milliseconds": round(medians[name], 4),
            "quartiles": [round(q, 4) for q in np.quantile(times[name], [0.25, 0.75]).tolist()],
            "rounds": ROUNDS,
            "paretomtl_over_this": round(mine / medians[name], 3),
            **({"operations": operations(call, device)} if name == "paretomtl" else {}),
            **({"paretomtl_over_25_steps": round(mine / (25 * medians[name]), 5)} if "LeNet" in name else {}),
        }
        for name, call in calls.items()
    ]


def operations(call: Callable[[], Any], device: str) -> dict[str, int]:
    """Kernels launched by a solve on a GPU; operators dispatched, views included, on a CPU."""
    activity = torch.profiler.ProfilerActivity
    with torch.profiler.profile(activities=[activity.CUDA if device == "cuda" else activity.CPU]) as profile:
        call()
        if device == "cuda":
            torch.cuda.synchronize()
    if device == "cuda":
        return {"kernels": sum(e.device_type == torch.autograd.DeviceType.CUDA for e in profile.events())}
    return {"operators": sum(e.cpu_parent is None for e in profile.events())}


def captured(call: Callable[[], Any]) -> Callable[[], None]:
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    return graph.replay


def lenet_step(device: str) -> Callable[[], Any]:
    """One forward pass and two backward passes: the cost of a Pareto MTL step of one model without the dual."""
    torch.manual_seed(0)
    model = LeNet().to(device)
    images = torch.rand(256, 1, 36, 36, device=device)
    labels = torch.randint(0, 10, (2, 256), device=device)
    parameters = list(model.parameters())

    def step() -> None:
        outputs = model(images)
        losses = [nn.functional.cross_entropy(o, y) for o, y in zip(outputs, labels, strict=True)]
        for i, loss in enumerate(losses):
            torch.autograd.grad(loss, parameters, retain_graph=i == 0, allow_unused=True)

    return step


def daqp_simplex(hessian: np.ndarray) -> np.ndarray:
    n = len(hessian)
    upper, lower = np.append(np.full(n, 1e30), 1.0), np.append(np.zeros(n), 1.0)
    sense = np.append(np.zeros(n), 5).astype(np.int32)
    return daqp.solve(hessian, np.zeros(n), np.ones((1, n)), upper, lower, sense)[0]


def daqp_lifted_arguments(points: Tensor) -> tuple[np.ndarray, ...]:
    """The projection on a cone that finds the same point, in m + 1 variables, with default tolerances."""
    p = points.numpy()
    lengths = (p * p).sum(1)
    rho = np.sqrt(np.clip(lengths.min(), 1e-10 * lengths.max(), lengths.max()))
    e = np.ascontiguousarray(np.c_[p, np.full(len(p), rho)] / np.sqrt(lengths + rho**2)[:, None])
    n = p.shape[1] + 1
    linear = np.append(np.zeros(n - 1), -1.0)
    return np.eye(n), linear, e, np.zeros(len(p)), np.full(len(p), -1e30), np.zeros(len(p), dtype=np.int32)


def accuracy(problems: int = 20) -> list[Row]:
    solvers: dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
        "paretomtl, float64": lambda c, a, ok: core.min_norm(c, a, ok).weights,
        "paretomtl, float32": lambda c, a, ok: core.min_norm(c.float(), a.float(), ok).weights.double(),
    }
    if daqp is not None:
        solvers["daqp, simplex form"] = functools.partial(
            one_by_one, lambda h: torch.from_numpy(daqp_simplex(h.numpy()))
        )
    if MGDAWeighting is not None:
        solvers["torchjd MGDA"] = functools.partial(one_by_one, MGDAWeighting())
    found = []
    for tasks in range(2, 17):
        for name, solve in solvers.items():
            worst = {"easy": 0.0, "hard": 0.0}
            broken = 0
            for kind in KINDS:
                for scale in SCALES:
                    precision = torch.float32 if "float32" in name else torch.float64
                    c, a, ok = hulls(kind, scale, problems, tasks, 3 * tasks + 8, seed=tasks, rounded=precision)
                    weights = solve(c, a, ok)
                    finite = weights.isfinite().all(-1)
                    broken += int((~finite).sum())
                    level = "hard" if kind == "parallel" or scale == "task" else "easy"
                    gaps = gap(c, a.to(precision).double(), ok, weights)[finite]
                    worst[level] = max(worst[level], float(gaps.max()) if len(gaps) else 0.0)
            found.append(
                {
                    "what": "accuracy",
                    "solver": name,
                    "tasks": tasks,
                    "points": 3 * tasks + 8,
                    "problems": problems * len(KINDS) * len(SCALES),
                    "worst_gap_easy": float(f"{worst['easy']:.2g}"),
                    "worst_gap_hard": float(f"{worst['hard']:.2g}"),
                    "not_finite": broken,
                }
            )
    return found


def lengths(problems: int = 5_000) -> list[Row]:
    """By how much ⟨g, d⟩ ≥ |d|² fails, relative to |g| |d|, for gradients that differ by orders of magnitude."""
    found = []
    for precision in (torch.float64, torch.float32):
        for digits in (0, 4, 8, 12, 16):
            rows = []
            for tasks in range(2, 9):
                jacobian = gradients(problems, tasks, digits, seed=tasks)
                solved = core.min_norm((jacobian @ jacobian.mT).to(precision))
                fails, norm, terms = gradient_certificate(jacobian, solved.weights.double())
                known = solved.status == core.Solve.SOLVED
                rows.append([(~known).sum(), fails[known].max(), (fails * norm / terms)[known].max()])
            unsolved, worst, cancelled = (
                torch.stack([torch.as_tensor(x) for x in part]) for part in zip(*rows, strict=True)
            )
            found.append(
                {
                    "what": "lengths",
                    "precision": str(precision).removeprefix("torch."),
                    "digits": digits,
                    "tasks": "2 to 8",
                    "problems": 7 * problems,
                    "zero": int(unsolved.sum()),
                    "fails_by": float(f"{float(worst.max()):.2g}"),
                    "fails_by_of_cancelled": float(f"{float(cancelled.max()):.2g}"),
                }
            )
    return found


def one_by_one(solve: Callable[[Tensor], Tensor], c: Tensor, a: Tensor, allowed: Tensor) -> Tensor:
    """A solver of single problems on H = A C Aᵀ over the allowed points, scaled to a largest diagonal entry of one."""
    weights = torch.zeros(allowed.shape, dtype=torch.float64)
    for b in range(len(c)):
        points = a[b][allowed[b]]
        h = points @ c[b] @ points.T
        largest = h.diagonal().max()
        found = solve(h / largest if largest > 0 else h)
        weights[b, allowed[b]] = found.clamp_min(0) / found.clamp_min(0).sum()
    return weights


if __name__ == "__main__":
    main()
