"""Two processes that share runs, compared with one process with the same batches. Started by torchrun:

    torchrun --standalone --nproc-per-node 2 two_processes.py FOLDER

Every check runs in both processes; each writes its results to FOLDER/RANK.json, a number or a sentence by name.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
import warnings
from pathlib import Path
from typing import Any, ClassVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

import paretomtl as pm
from _helpers.coupled import Share, expected_weights
from _helpers.networks import MLP, Dropped, Normed, accuracy, classes, problem
from _helpers.shared_loops import BATCH, BOTH, CHECKS, FIRST, METHODS, SAMPLES, check, rank, said


def sgd(parameters: Any) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr=0.1, momentum=0.9)


def train(of: pm.Problem, method: Any = "pareto-mtl", **options: Any) -> pm.Front:
    usual: dict[str, Any] = {"epochs": 4, "batch_size": BATCH, "optimizer": sgd, "device": "cpu", "progress": "quiet"}
    usual |= {"precision": "float64", "strategy": "sequential", "preferences": 3}
    return pm.fit(of, method, **{**usual, **options})


def between(one: pm.Front, other: pm.Front) -> float:
    """The largest difference of parameters, losses over the epochs, weights, and losses on all splits."""
    pairs = [(tensor, other.models.stacked()[name]) for name, tensor in one.models.stacked().items()]
    pairs += [(tensor, other.history[name]) for name, tensor in one.history.items()]
    pairs += [(tensor, other.losses[split]) for split, tensor in one.losses.items()]
    for split, metrics in one.metrics.items():
        pairs += [(tensor, other.metrics[split][name]) for name, tensor in metrics.items()]
    assert one.status == other.status, (one.status, other.status)
    return max(float((a.nan_to_num(7.0).double() - b.nan_to_num(7.0).double()).abs().max()) for a, b in pairs)


def beside(of: pm.Problem, method: Any = "pareto-mtl", **options: Any) -> float:
    """The difference between both processes together and one alone."""
    shared = train(of, method, **options)
    return between(shared, train(of, method, distributed=False, **options))


def plain(model: Any = MLP, **options: Any) -> pm.Problem:
    return problem(model, train=classes(SAMPLES), **options)


def missing(labels: Tensor, *, given: bool, model: Any = MLP) -> pm.Problem:
    """Classes with NaN for missing labels; ``given`` says how many there are."""
    x, _ = classes(len(labels))

    def losses(outputs: Any, targets: Tensor) -> Tensor:
        found = []
        for i, output in enumerate(outputs):
            known = ~targets[:, i].isnan()
            wanted = nn.functional.one_hot(targets[:, i].nan_to_num(0.0).long(), 3).double()
            errors = -(wanted * output.log_softmax(-1)).sum(-1)
            found.append(torch.where(known, errors, 0.0).sum() / known.sum())
        return torch.stack(found)

    def counts(batch: Any) -> Tensor:
        return (~batch[1].isnan()).sum(0)

    return pm.Problem(model, losses, ["a", "b"], train=(x, labels), counts=counts if given else None)


for _name, _method in METHODS.items():
    for _strategy in BOTH:
        CHECKS[f"fit {_name} {_strategy}"] = lambda m=_method, s=_strategy: beside(plain(), m, strategy=s)
for _gramian in (False, True):
    for _strategy in BOTH:
        CHECKS[f"fit share {_gramian} {_strategy}"] = lambda g=_gramian, s=_strategy: beside(
            plain(), Share(g), strategy=s
        )


@check("fit share sees all rows")
def _() -> float:
    """An epoch has one batch, so that its means are those of the step."""
    found = 0.0
    for strategy in BOTH:
        front = train(plain(), Share(rows=3), strategy=strategy, batch_size=SAMPLES)
        for losses, weights in zip(front.history["losses"], front.history["weights"], strict=True):
            found = max(found, float((weights - expected_weights(losses)).abs().max()))
    return found


@check("fit validation, metrics, adam, clipping, best epoch")
def _() -> float:
    of = plain(val=classes(31, seed=1), test=classes(1, seed=2), metrics={"right": pm.Metric(accuracy)})
    return beside(of, clip_norm=0.5, keep="best", optimizer=torch.optim.Adam)


@check("fit metrics of a stack")
def _() -> float:
    return beside(plain(val=classes(31, seed=1), metrics={"right": pm.Metric(accuracy)}), strategy="batched")


@check("fit shared parameters")
def _() -> float:
    return max(beside(plain(shared=["trunk"]), m, epochs=2) for m in ("pareto-mtl", "uncertainty"))


@check("fit representation")
def _() -> float:
    return max(beside(plain(representation="trunk"), m, epochs=2) for m in ("pareto-mtl", "linear"))


@check("fit weights kept for some steps")
def _() -> float:
    return beside(plain(), weigh_every=3)


@check("fit micro-batches")
def _() -> float:
    alone = train(plain(), distributed=False, epochs=2)
    return max(between(train(plain(), accumulate=n, epochs=2), alone) for n in (2, 5))


@check("fit a last batch for one process")
def _() -> float:
    return beside(problem(MLP, train=classes(43)), epochs=3)  # three samples: one process has them all


@check("fit micro-batches of one process")
def _() -> float:
    alone = train(plain(), distributed=False)
    return max(between(train(plain(), distributed=False, accumulate=3, strategy=s), alone) for s in BOTH)


@check("fit labels missing in single samples")
def _() -> float:
    _, y = classes(SAMPLES)
    labels = y.double()
    labels[torch.rand(labels.shape, generator=torch.Generator().manual_seed(3)) < 0.4] = torch.nan
    of = missing(labels, given=True)
    return max(beside(of, m, strategy=s, epochs=2) for m in ("pareto-mtl", "linear") for s in BOTH)


@check("fit a task without labels in one process")
def _() -> float:
    """Batches of two: one sample each, of which the second task has a label in one, both or none."""
    _, y = classes(20)
    labels = y.double()
    labels[::3, 1] = torch.nan
    of = missing(labels, given=False)
    options: dict[str, Any] = {"batch_size": 2, "epochs": 2}  # twenty steps
    return max(beside(of, m, strategy=s, **options) for m in ("pareto-mtl", "uncertainty") for s in BOTH)


@check("all processes have the same bits")
def _() -> float:
    front = train(problem(Dropped, train=classes(SAMPLES)), strategy="batched", precision="float32")
    flat = torch.cat([tensor.flatten() for tensor in front.models.stacked().values()])
    flats = [torch.empty_like(flat) for _ in range(2)]
    dist.all_gather(flats, flat)
    return float((flats[0] - flats[1]).abs().max())


class Drawing(MLP):
    """Draws a random number in each forward pass, and keeps it."""

    drawn: ClassVar[list[float]] = []

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        if self.training:
            Drawing.drawn.append(float(torch.rand(())))
        return super().forward(x)


@check("dropout differs between processes, models do not")
def _() -> list[bool]:
    x, y = classes(40)
    data = TensorDataset(x.double(), y)
    loader = DataLoader(data, batch_size=5, sampler=DistributedSampler(data))
    found = []
    for train_on in ((x, y), loader):
        Drawing.drawn = []
        train(problem(Drawing, train=train_on), preferences=2)
        drawn = torch.tensor(Drawing.drawn[-8:], dtype=torch.float64)
        both = [torch.empty_like(drawn) for _ in range(2)]
        dist.all_gather(both, drawn)
        found.append(bool((both[0] != both[1]).all()))
    return found


@check("batch normalisation keeps the first process's buffers")
def _() -> float:
    found = 0.0
    for strategy in BOTH:
        front = train(problem(Normed, train=classes(SAMPLES)), strategy=strategy)
        flat = torch.cat([tensor.double().flatten() for tensor in front.models.stacked().values()])
        flats = [torch.empty_like(flat) for _ in range(2)]
        dist.all_gather(flats, flat)
        found = max(found, float((flats[0] - flats[1]).abs().max()))
    return found


class Breaking(MLP):
    """NaN in one process, from the seventh forward pass in training on, for the model that was made second."""

    made = 0

    def __init__(self) -> None:
        super().__init__()
        self.number = Breaking.made
        self.register_buffer("passes", torch.zeros(()))
        Breaking.made += 1

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        self.passes += self.training
        bad = self.number % 3 == 1 and self.passes > 7 and rank() == 1 and self.training
        return tuple(out * (torch.nan if bad else 1.0) for out in super().forward(x))


@check("NaN in one process freezes in all")
def _() -> list[str]:
    Breaking.made = 0
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        front = train(problem(Breaking, train=classes(SAMPLES)), "mgda")
    assert all(tensor.isfinite().all() for tensor in front.models.stacked().values())
    assert bool(said) == (rank() == 0), "the first process warns"
    return front.status


@check("runs are stored, taken up by two and by one")
def _() -> float:
    folder = Path(sys.argv[1])
    of = problem(Dropped, train=classes(SAMPLES), val=classes(20, seed=1))
    options: dict[str, Any] = {"keep": "best", "checkpoint_seconds": 0.0}
    whole = train(of, **options, out=folder / "whole")
    stops: list[int] = []

    def stop(report: Any) -> None:
        stops.append(report.epoch)
        if report.epoch == 2:
            os.kill(os.getpid(), 15)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        half = train(of, **options, out=folder / "half", callbacks=[stop])
    assert not half.complete
    assert bool(stops) == (rank() == 0), "callbacks are the first process's"
    taken_up = train(of, **options, out=folder / "half", resume=True)
    again = train(of, **options, out=folder / "half", resume=True)
    assert between(again, taken_up) == 0.0, "a run that is complete"
    dist.barrier()
    stored = pm.Front.load(folder / "half" / "front")
    assert between(stored, taken_up) == 0.0
    return between(taken_up, whole)


@check("a run goes on with another number of processes")
def _() -> float:
    folder = Path(sys.argv[1]) / "fewer"
    options: dict[str, Any] = {"checkpoint_seconds": 0.0, "out": folder}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        train(plain(), callbacks=[lambda report: os.kill(os.getpid(), 15) if report.epoch == 2 else None], **options)
    found = 0.0
    if rank() == 0:
        found = between(train(plain(), resume=True, distributed=False, **options), train(plain(), distributed=False))
    dist.barrier()
    return found


@check("a process group of one trains alone")
def _() -> float:
    groups = [dist.new_group([0]), dist.new_group([1])]
    return between(train(plain(), distributed=groups[rank()]), train(plain(), distributed=False))


@check("loaders with a share each")
def _() -> float:
    x, y = classes(40)
    data = TensorDataset(x.double(), y)
    part = DataLoader(data, batch_size=5, sampler=DistributedSampler(data, shuffle=False))
    whole = DataLoader(data, batch_size=10)
    shared = train(problem(MLP, train=part))
    return between(shared, train(problem(MLP, train=whole), distributed=False))


@check("loaders of different lengths end with the shortest")
def _() -> int:
    x, y = classes(40)
    mine = slice(0, 20) if rank() == 0 else slice(20, 35)
    front = train(problem(MLP, train=DataLoader(TensorDataset(x[mine].double(), y[mine]), batch_size=5)), epochs=2)
    return int(front.complete)


@check("error: loaders without a share")
def _() -> str:
    x, y = classes(40)
    return said(lambda: train(problem(MLP, train=DataLoader(TensorDataset(x.double(), y), batch_size=5))))


@check("error: other settings in the other process")
def _() -> str:
    return said(lambda: train(plain(), seed=rank()))


@check("error: more processes than samples in a batch")
def _() -> str:
    return said(lambda: train(plain(), batch_size=1))


@check("error: workers")
def _() -> str:
    return said(lambda: train(plain(), workers=2))


@check("error: captured steps")
def _() -> str:
    return said(lambda: train(plain(), strategy="graphed"))


@check("error: a wrapped model")
def _() -> str:
    return said(lambda: train(plain(lambda: nn.parallel.DistributedDataParallel(MLP()))))


@check("error: a folder that holds a run")
def _() -> str:
    folder = Path(sys.argv[1]) / "held"
    train(plain(), epochs=1, out=folder)
    return said(lambda: train(plain(), epochs=1, out=folder))


@check("runs end together, and are trained longer")
def _() -> float:
    folder = Path(sys.argv[1]) / "ends"
    of = problem(train=classes(SAMPLES), val=classes(20, seed=1))
    options: dict[str, Any] = {"patience": 1, "epochs": 12, "optimizer": lambda p: torch.optim.SGD(p, lr=3.0)}
    ended = train(of, **options, out=folder / "patience")
    assert ended.ended.startswith("patience"), ended.ended
    stopped = train(of, epochs=3, out=folder / "longer", callbacks=[lambda report: report.epoch == 2])
    assert stopped.ended == "callback, after 2 of 3 epochs", stopped.ended
    train(of, method="linear", epochs=2, out=folder / "linear")
    longer = train(of, method="linear", epochs=4, out=folder / "linear", resume=True)
    begun = train(of, start=ended, epochs=1)
    alone: dict[str, Any] = {"distributed": False}
    found = [between(ended, train(of, **options, **alone)), between(longer, train(of, method="linear", **alone))]
    return max(*found, between(begun, train(of, start=ended, epochs=1, **alone)))


@check("error: a callback that fails in the first process")
def _() -> str:
    def fail(report: Any) -> None:
        raise RuntimeError("no more")

    return said(lambda: train(plain(), callbacks=[fail]))


def main() -> None:
    torch.set_num_threads(1)
    wanted = sys.argv[2:]
    found: dict[str, Any] = {}
    order = sorted(CHECKS, key=lambda name: (name != FIRST, not name.startswith("fit")))  # a fit connects the processes
    for name in order:
        if wanted and len(found) > 1 and not any(word in name for word in wanted):
            continue
        try:
            found[name] = CHECKS[name]()
        except Exception:
            found[name] = traceback.format_exc()
            break  # the other process may be elsewhere by now
    Path(sys.argv[1], f"{rank()}.json").write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
