"""Custom loops in two processes, compared with one process with the same batches; run by two_processes.py."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

import paretomtl as pm
from _helpers.networks import MLP, classes

FIRST = "error: backward of processes that are not connected"
CHECKS: dict[str, Callable[[], Any]] = {}
METHODS: dict[str, Any] = {
    "pareto-mtl": pm.ParetoMTL(initial_steps=8),
    "mgda": pm.MGDA(),
    "gradnorm": pm.GradNorm(),
    "linear": pm.Linear(),
    "uncertainty": pm.Uncertainty(),
}
BOTH = ("sequential", "batched")
SAMPLES, BATCH = 45, 10  # five steps an epoch, the last of five samples: three and two


def check(name: str) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    def keep(function: Callable[[], Any]) -> Callable[[], Any]:
        CHECKS[name] = function
        return function

    return keep


def rank() -> int:
    return int(os.environ["RANK"])


def said(run: Callable[[], Any]) -> str:
    try:
        run()
    except (ValueError, TypeError, RuntimeError) as error:
        return f"{type(error).__name__}: {error}"
    return "nothing"


class Loop:
    """Twenty steps by ``backward``: each step sees ten samples, the last of an epoch five."""

    def __init__(self, method: Any, *, given: bool = True, without: bool = False) -> None:
        torch.manual_seed(0)
        self.model = MLP().double()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)
        self.weigher = method.bind(method.spread(3, 2), 1, total=20)
        self.given, self.without = given, without
        x, y = classes(SAMPLES)
        self.x, self.y = x.double(), y
        self.seen: list[Tensor] = []

    def losses(self, numbers: Tensor) -> Tensor:
        outputs = self.model(self.x[numbers])
        y = self.y[numbers]
        found = [nn.functional.cross_entropy(out, y[:, i]) for i, out in enumerate(outputs)]
        if self.without and not bool((numbers % 10 < 5).all()):  # the second half of each batch lacks the first task
            known = numbers % 10 < 5
            found[0] = nn.functional.cross_entropy(outputs[0][known], y[known, 0])  # NaN where none is known
        return torch.stack(found)

    def step(self, numbers: Tensor, **options: Any) -> None:
        self.optimizer.zero_grad()
        weights = pm.backward(self.losses(numbers), self.weigher, self.model.parameters(), **options)
        self.optimizer.step()
        self.seen.append(weights)

    def run(self, *, shared: bool, calls: int = 1) -> Tensor:
        for number in range(20):
            batch = torch.arange(SAMPLES)[number % 5 * BATCH : number % 5 * BATCH + BATCH]
            parts = batch.tensor_split(2) if shared else [batch]
            mine = parts[rank()] if shared else batch
            for i, part in enumerate(mine.tensor_split(calls)):
                options: dict[str, Any] = {"samples": self._samples(part)} if self.given else {}
                options["distributed"] = shared
                if i + 1 < calls:
                    pm.backward(self.losses(part), self.weigher, self.model.parameters(), last=False, **options)
                else:
                    self.step(part, **options)
        return torch.cat([*(p.detach().flatten() for p in self.model.parameters()), *self.seen])

    def _samples(self, part: Tensor) -> Any:
        return torch.stack([(part % 10 < 5).sum(), torch.tensor(len(part))]) if self.without else len(part)


for _name, _method in METHODS.items():

    def _own(m: Any = _method) -> float:
        alone = Loop(m).run(shared=False)
        found = [Loop(m).run(shared=True), Loop(m).run(shared=True, calls=2), Loop(m).run(shared=False, calls=2)]
        return max(float((f - alone).abs().max()) for f in found)

    def _without(m: Any = _method) -> float:
        alone = Loop(m, without=True).run(shared=False)
        return float((Loop(m, without=True).run(shared=True) - alone).abs().max())

    CHECKS[f"backward {_name}"] = _own
    CHECKS[f"backward {_name}, a task without labels in one process"] = _without


@check("backward counts processes alike without samples")
def _() -> float:
    x, y = classes(20)
    results = []
    for shared in (True, False):
        torch.manual_seed(0)
        model = MLP().double()
        mine = slice(10 * rank(), 10 * rank() + 10) if shared else slice(0, 20)
        outputs = model(x[mine].double())
        losses = torch.stack([nn.functional.cross_entropy(out, y[mine, i]) for i, out in enumerate(outputs)])
        pm.backward(losses, pm.MGDA().bind(torch.ones(1, 2), 0), model.parameters(), distributed=shared)
        results.append(torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None]))
    return float((results[0] - results[1]).abs().max())


@check("backward with a broken loss in one process")
def _() -> list[bool]:
    found = []
    for method in METHODS.values():
        loop = Loop(method)
        numbers = torch.arange(10).tensor_split(2)[rank()]
        losses = loop.losses(numbers) * (torch.nan if rank() == 1 else 1.0)
        pm.backward(losses, loop.weigher, loop.model.parameters(), distributed=True)
        found.append(all(bool(p.grad.isnan().all()) for p in loop.model.parameters() if p.grad is not None))
        found.append(int(loop.weigher.number) == 0)
    return found


@check("backward with an empty share")
def _() -> float:
    alone, loop = Loop(pm.ParetoMTL()), Loop(pm.ParetoMTL())
    alone.step(torch.arange(7), distributed=False)
    loop.step(torch.arange(7), distributed=True, samples=7 if rank() == 0 else 0)
    pairs = zip(loop.model.parameters(), alone.model.parameters(), strict=True)
    return max(float((a - b).abs().max().detach()) for a, b in pairs)


@check(FIRST)
def _() -> str:
    loop = Loop(pm.MGDA())
    return said(lambda: loop.step(torch.arange(4), distributed=True))


@check("error: backward that was not told")
def _() -> str:
    loop = Loop(pm.MGDA())
    return said(lambda: loop.step(torch.arange(4)))


@check("error: backward of sharded parameters")
def _() -> str:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    torch.manual_seed(0)
    model = nn.Linear(4, 2)
    fully_shard(model, mesh=init_device_mesh("cpu", (2,)))
    weigher = pm.MGDA().bind(torch.ones(1, 2), 0)
    losses = torch.zeros(2, requires_grad=True) * 1.0
    return said(lambda: pm.backward(losses, weigher, model.parameters(), distributed=True))
