"""One process compared with two that share each batch: bytes that each sends in a step, and time.

    torchrun --standalone --nproc-per-node 2 benchmarks/distributed.py      # benchmarks/results/distributed.json
    torchrun --standalone --nproc-per-node 2 benchmarks/distributed.py --out FOLDER

Steps of one network (three layers, 1.06 million parameters, batches of 256) with two and five tasks, over gloo on one
machine: with weights from the Gramian of all gradients, from that of the representation, and with fixed weights; and a
step of DistributedDataParallel on the mean of the losses. The first process alone, with one thread and with as many as
there are processes, takes turns with all processes of one thread each. Bytes are those of the tensors that a process
passes to collective operations.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

import paretomtl as pm
from paretomtl.compare import Row, environment, save_rows
from paretomtl.engine.batches.partition import BatchPartition, MicroBatches
from paretomtl.engine.model_group import Group
from paretomtl.engine.models.modules import make_modules
from paretomtl.engine.processes import ProcessGroup
from paretomtl.engine.step import StepInput, train_step
from paretomtl.engine.strategy import Plan
from timing import take_turns

ROUNDS, BATCH, WIDTH = 15, 256, 1024


class Network(nn.Module):
    """A trunk of two layers, and a head for each task."""

    def __init__(self, tasks: int) -> None:
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(8, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU())
        self.heads = nn.Linear(WIDTH, tasks)

    def forward(self, x: Tensor) -> Tensor:
        return self.heads(self.trunk(x))


def losses(outputs: Tensor, targets: Tensor) -> Tensor:
    return (outputs - targets).square().mean(0)


def data(tasks: int) -> tuple[Tensor, Tensor]:
    g = torch.Generator().manual_seed(0)
    x = torch.randn(BATCH, 8, generator=g)
    return x, (x @ torch.randn(8, tasks, generator=g)).tanh()


def group_of(tasks: int, method: Any, representation: str | None, ranks: ProcessGroup) -> Group:
    problem = pm.Problem(
        lambda: Network(tasks),
        losses,
        [f"t{i}" for i in range(tasks)],
        train=data(tasks),
        representation=representation,
    )
    modules = make_modules(problem, [0], torch.device("cpu"), torch.float32)
    plan = Plan(problem, method, lambda p: torch.optim.SGD(p, lr=1e-3), partition=BatchPartition(ranks))
    return plan.sequential(modules, method.init(method.spread(1, tasks)))[0]


class Counted:
    """Counts the bytes of all tensors that are passed to collective operations."""

    def __init__(self) -> None:
        self.bytes = 0
        for name in ("all_reduce", "broadcast"):
            setattr(dist, name, self._counting(getattr(dist, name)))

    def _counting(self, function: Any) -> Any:
        def counting(tensor: Tensor, *args: Any, **kwargs: Any) -> Any:
            self.bytes += tensor.numel() * tensor.element_size()
            return function(tensor, *args, **kwargs)

        return counting


def by_ddp(tasks: int, part: tuple[Tensor, Tensor]) -> Any:
    model = nn.parallel.DistributedDataParallel(Network(tasks))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

    def step() -> None:
        optimizer.zero_grad()
        losses(model(part[0]), part[1]).mean().backward()
        optimizer.step()

    return step


def measure(tasks: int, name: str, counted: Counted) -> Row:
    ranks = ProcessGroup(dist.group.WORLD)
    whole = data(tasks)
    part = tuple(tensor.tensor_split(ranks.size)[ranks.rank] for tensor in whole)
    size = sum(p.numel() * p.element_size() for p in Network(tasks).parameters())
    method = pm.Linear() if name in ("linear", "ddp") else pm.MGDA()
    representation = "trunk" if name == "representation" else None
    alone, shared = (group_of(tasks, method, representation, r) for r in (ProcessGroup(), ranks))
    ddp = by_ddp(tasks, part) if name == "ddp" else None

    def by_one(threads: int) -> None:
        if ranks.is_main:
            torch.set_num_threads(threads)
            train_step([alone], StepInput(whole, 100, 1000))
        dist.barrier()

    def by_all() -> None:
        torch.set_num_threads(1)
        if ddp is not None:
            ddp()
        else:
            train_step([shared], StepInput(MicroBatches((part,), (len(part[0]),)), 100, 1000))

    before = counted.bytes
    by_all()
    sent = size if ddp is not None else counted.bytes - before  # the functions that count do not see what DDP sends
    calls = {"one": lambda: by_one(1), "all threads": lambda: by_one(ranks.size), "shared": by_all}
    times = take_turns(calls, "cpu", ROUNDS, 3)
    middle = {way: round(statistics.median(values), 2) for way, values in times.items()}
    return {
        "what": "distributed",
        "step": name,
        "tasks": tasks,
        "processes": ranks.size,
        "parameters_bytes": size,
        "bytes": sent,
        "over_parameters": round(sent / size, 3),
        "milliseconds_one": middle["one"],
        "milliseconds_one_all_threads": middle["all threads"],
        "milliseconds_shared": middle["shared"],
        "least_one": round(min(times["one"]), 2),
        "least_shared": round(min(times["shared"]), 2),
        "rounds": ROUNDS,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    out = parser.parse_args().out
    dist.init_process_group("gloo")
    counted = Counted()
    rows: list[Row] = []
    for tasks in (2, 5):
        for name in ("gramian", "representation", "linear", "ddp"):
            rows.append(measure(tasks, name, counted))
            if dist.get_rank() == 0:
                print(rows[-1], flush=True)
    if dist.get_rank() == 0:
        common = {"cores": os.cpu_count(), "load": round(os.getloadavg()[1], 1), **environment()}
        command = "torchrun --standalone --nproc-per-node 2 benchmarks/distributed.py"
        save_rows(out / "distributed.json", "distributed", command, [{**row, **common} for row in rows])
    dist.barrier()  # no process exits while the first one still writes
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
