"""One step: broken models, missing labels, and weights of earlier steps."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import paretomtl as pm
from _helpers.regression import CPU, Remembers, X, group, problem
from paretomtl._support.files.atomic_files import read_record, write_record
from paretomtl.engine.batches.make import make_batches
from paretomtl.engine.history import EpochHistory
from paretomtl.engine.runners.eager import EagerRunner
from paretomtl.engine.step import StepInput, train_step
from paretomtl.engine.strategy import Plan


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


def test_a_run_with_a_buffer_made_in_a_forward_pass_can_be_taken_up_again(tmp_path: Path) -> None:
    def stop(report: Any) -> None:
        if report.epoch == 2:
            raise InterruptedError

    made = dataclasses.replace(problem(), model=Remembers)
    with pytest.raises(InterruptedError):
        fit(made, strategy="sequential", out=tmp_path, callbacks=[stop], checkpoint_seconds=0.0)
    resumed = fit(made, strategy="sequential", out=tmp_path, resume=True)
    for name, tensor in fit(made, strategy="sequential").models.stacked().items():
        assert torch.equal(tensor, resumed.models.stacked()[name]), name


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
    weights = train_step([made], StepInput(whole, 0, 10))[0].weights
    some = (X, torch.tensor([[0.0, torch.nan]]).expand(64, 2))
    assert (train_step([made], StepInput(some, 1, 10))[0].weights[:, 1] == 0).all()
    later = train_step([made], StepInput(whole, 2, 10, weigh=False))[0].weights
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
