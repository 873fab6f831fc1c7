"""What is tried out before a run, and what happens around broken models, missing labels and other machines."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import paretomtl as pm
from paretomtl._support.files import read_record, write_record
from paretomtl.engine.autotune.capture import _changes_more_than_rates, _python_numbers, try_capture
from paretomtl.engine.batches.make import make_batches
from paretomtl.engine.group import Group
from paretomtl.engine.history import EpochHistory
from paretomtl.engine.plan import Plan, equal_parts
from paretomtl.engine.runners.eager import EagerRunner
from paretomtl.engine.step import train_step

CPU = torch.device("cpu")
X = torch.randn(64, 3, generator=torch.Generator().manual_seed(0))


def model() -> torch.nn.Module:
    return torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))


def with_missing_labels(outputs: Tensor, targets: Tensor) -> Tensor:
    there = ~targets.isnan()
    errors = (outputs - targets.nan_to_num()).square() * there
    return torch.stack([errors[:, i].sum() / there[:, i].sum() for i in range(2)])


def problem(missing: int = 0) -> pm.Problem:
    targets = torch.stack([X.sin().sum(1), X.cos().sum(1)], 1)
    targets[:missing, 1] = torch.nan
    return pm.Problem(model, with_missing_labels, ["a", "b"], train=(X, targets))


def fit(made: pm.Problem, method: str = "pareto-mtl", **options: Any) -> pm.Front:
    settings = {"preferences": 3, "epochs": 3, "batch_size": 4, "device": "cpu", "progress": "quiet", **options}
    return pm.fit(made, method, **settings)


@pytest.mark.parametrize("strategy", ["sequential", "batched"])
@pytest.mark.parametrize("method", ["pareto-mtl", "linear", "uncertainty"])
@pytest.mark.filterwarnings("ignore:first losses differ", "ignore:model 0 is better")
def test_old_weights_leave_out_tasks_without_labels(method: str, strategy: str) -> None:
    front = fit(problem(missing=48), method, weigh_every=2, strategy=strategy, epochs=5)
    assert "non-finite" not in front.status
    assert front.losses["train"].isfinite().all()


class Remembers(torch.nn.Module):
    """Makes a buffer in its first forward pass."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(3, 2)
        self.register_buffer("cache", None)

    def forward(self, x: Tensor) -> Tensor:
        if self.cache is None:
            self.cache = torch.ones(2)
        return self.layer(x) * self.cache


def test_a_run_with_a_buffer_made_in_a_forward_pass_can_be_taken_up_again(tmp_path: Path) -> None:
    def stop(report: Any) -> None:
        if report.epoch == 2:
            raise InterruptedError

    made = dataclasses.replace(problem(), model=Remembers)
    with pytest.raises(InterruptedError):
        fit(made, strategy="sequential", out=tmp_path, callbacks=[stop], checkpoint_seconds=0.0)
    resumed = fit(made, strategy="sequential", out=tmp_path, resume=True)
    for name, tensor in fit(made, strategy="sequential").parameters.items():
        assert torch.equal(tensor, resumed.parameters[name]), name


def test_a_run_of_a_gpu_is_not_taken_up_on_a_cpu(tmp_path: Path) -> None:
    def stop(report: Any) -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        fit(problem(), out=tmp_path, callbacks=[stop], checkpoint_seconds=0.0)
    path = tmp_path / "config.json"
    taken = {"strategy": "graphed", "reason": "asked for", "most": None}
    write_record(path, {**read_record(path, [3]), "device": "cuda", "taken": taken}, format=3)
    with pytest.raises(ValueError, match="must be that of the run"):
        fit(problem(), out=tmp_path, resume=True)


class Breaks(torch.nn.Module):
    """Its second loss is NaN once it is under three quarters."""

    def __init__(self) -> None:
        super().__init__()
        self.w = torch.nn.Parameter(torch.tensor([1.0]))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.w


def breaking(outputs: Tensor, targets: Tensor) -> Tensor:
    mean = outputs.mean()
    return torch.stack([mean * mean, torch.where(mean > 0.75, mean, torch.nan)])


def test_a_task_without_labels_keeps_the_weight_that_it_had() -> None:
    made = group()
    whole = (X, torch.zeros(64, 2))
    weights = train_step(made, whole, number=0, total=10).weights
    some = (X, torch.tensor([[0.0, torch.nan]]).expand(64, 2))
    assert (train_step(made, some, number=1, total=10).weights[:, 1] == 0).all()
    later = train_step(made, whole, number=2, total=10, weigh=False).weights
    torch.testing.assert_close(later[:, 1], weights[:, 1].clamp_min(0.0))
    assert (later[:, 1] > 0).any()


@pytest.mark.parametrize("most", [None, 1])
def test_a_model_that_broke_goes_back_also_in_a_stack_of_its_own(most: int | None) -> None:
    """Whether its losses are compared with others within the step, or after it."""
    made = pm.Problem(Breaks, breaking, ["a", "b"], train=(torch.ones(8, 1), torch.zeros(8, 1)))
    modules: list[torch.nn.Module] = [Breaks(), Breaks()]
    with torch.no_grad():
        modules[1].w.fill_(100.0)  # type: ignore[operator, union-attr]
    method = pm.Linear()
    state = method.init(torch.full((2, 2), 0.5, dtype=torch.float64))
    groups = Plan(made, method, lambda p: torch.optim.SGD(p, lr=0.03)).batched(modules, state, most)
    batches = make_batches("train", made.train, batch_size=8, device=CPU, dtype=torch.float32)
    runner = EagerRunner(groups, batches, EpochHistory(2, 2, CPU), 10, 1)
    path = []
    for number in range(8):
        for item in runner.epoch(0, number, 0, number):
            path.append(float(groups[0].models.tensors()["w"][0, 0]))
            runner.step(item, number)
    for each in groups:
        each.restore_frozen()
    assert torch.cat([each.active for each in groups]).tolist() == [False, True]
    finite = [w for w in path if w > 0.75]
    assert len(set(finite)) > 2
    assert float(groups[0].models.tensors()["w"][0, 0]) == min(finite), "where it last was finite"


def group(scheduler: Any = None, factory: Any = model) -> Group:
    made = dataclasses.replace(problem(), model=factory)
    method = pm.ParetoMTL()
    plan = Plan(made, method, lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9), scheduler)
    return plan.batched([factory(), factory()], method.init(method.spread(2, 2)))[0]


def test_schedulers_that_change_momentum_are_found() -> None:
    rates = torch.optim.lr_scheduler
    assert not _changes_more_than_rates(group(lambda o: rates.CosineAnnealingLR(o, 10)))
    assert _changes_more_than_rates(group(lambda o: rates.OneCycleLR(o, 0.1, total_steps=10)))


def test_numbers_that_a_model_keeps_in_python_are_found() -> None:
    class Anneals(Remembers):
        beta = 0.0

        def forward(self, x: Tensor) -> Tensor:
            self.beta += 1e-4
            return super().forward(x)

    class Counts(Remembers):
        calls = 0

        def forward(self, x: Tensor) -> Tensor:
            Counts.calls += 1
            return super().forward(x)

    for kind in (Anneals, Counts):
        made = group(factory=kind)
        before = _python_numbers([made])
        assert _python_numbers([made]) == before
        made.models.losses((X, torch.zeros(64, 2)))
        assert _python_numbers([made]) != before


def test_reasons_against_a_capture() -> None:
    def never() -> list[Group]:
        raise AssertionError("nothing is made to find that out")

    def why(data: Any) -> str | None:
        batches = make_batches("train", data, batch_size=4, device=CPU, dtype=torch.float32)
        return try_capture(never, batches, 10, schedule="epoch").why_not

    assert why(None) == "the problem has no data"
    assert why((X, X)) == "there is no CUDA device"
    assert "not tensors that lie on the device" in str(why(torch.utils.data.TensorDataset(X, X)))


@pytest.mark.parametrize(("count", "most"), [(5, None), (5, 5), (5, 2), (7, 3), (125, 62), (1, 1)])
def test_shards_are_as_equal_as_can_be(count: int, most: int | None) -> None:
    parts = equal_parts(count, most)
    numbers = [k for part in parts for k in range(count)[part]]
    sizes = [len(range(count)[part]) for part in parts]
    assert numbers == list(range(count))
    assert max(sizes) <= (most or count)
    assert max(sizes) - min(sizes) <= 1


def test_shards_train_as_one_stack() -> None:
    made, method = problem(), pm.ParetoMTL()
    ends = []
    for most in (None, 2):
        torch.manual_seed(0)
        modules = [model() for _ in range(5)]
        groups = Plan(made, method, lambda p: torch.optim.SGD(p, lr=0.05)).batched(
            modules, method.init(method.spread(5, 2)), most
        )
        batches = make_batches("train", made.train, batch_size=8, device=CPU, dtype=torch.float32)
        runner = EagerRunner(groups, batches, EpochHistory(5, 2, CPU), 20, 1)
        for number, item in enumerate(runner.epoch(0, 0, 0, 0)):
            runner.step(item, number)
        ends.append(torch.cat([each.models.tensors()["0.weight"] for each in groups]))
    torch.testing.assert_close(*ends)
