"""Stacks that fail in the middle of a run: their models go on one after another, and nothing is lost."""

from __future__ import annotations

import random
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import paretomtl as pm
from _helpers.networks import MLP, classes, fit, problem
from paretomtl._support.random_state import isolated_randomness, seed_everything
from paretomtl.engine.autotune import choose
from paretomtl.engine.autotune.trial import Trial
from paretomtl.engine.fallback import Fallback, unstack
from paretomtl.engine.model_group import Group
from paretomtl.engine.models.stack import Stack
from paretomtl.engine.step import StepInput, train_step
from paretomtl.engine.strategy import Plan
from paretomtl.runs import read_log

PHASE = {"asks": False, "evaluates": False, "breaks": False}


class Steady(MLP):
    """Normalises; from some epoch on it asks its activations for a value, which vmap cannot give."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(6, 12), nn.BatchNorm1d(12), nn.Tanh())

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        hidden = self.disturbed(self.trunk(x))
        if PHASE["evaluates" if not self.training else "asks"] and hidden.mean() > 5.0:
            hidden = 2 * hidden
        if PHASE["breaks"]:
            raise KeyError("mine")
        return tuple(head(hidden) for head in self.heads)

    def disturbed(self, hidden: Tensor) -> Tensor:
        return hidden


class Drawing(Steady):
    """Draws from the generators of torch, NumPy and Python before it asks."""

    def disturbed(self, hidden: Tensor) -> Tensor:
        hidden = nn.functional.dropout(hidden, 0.2, training=self.training)
        return hidden * (1.0 + 0.1 * random.random() + 0.1 * np.random.rand())  # noqa: NPY002


class Keeping(Steady):
    """Keeps its activations for a look, which are tensors of vmap in a stack."""

    def disturbed(self, hidden: Tensor) -> Tensor:
        self.map, self.maps = hidden, {"detached": [hidden.detach()]}
        return hidden


class Stop(Exception):
    pass


def set_phase(**phase: int) -> Any:
    """A callback that turns a phase on at the end of an epoch; -1 never."""

    def listen(report: pm.training.Report) -> None:
        PHASE.update({name: 0 <= epoch <= report.epoch for name, epoch in phase.items()})

    return listen


@pytest.fixture(autouse=True)
def _phases() -> Any:
    PHASE.update(dict.fromkeys(PHASE, False))
    yield
    PHASE.update(dict.fromkeys(PHASE, False))


def run(model: Any = Steady, strategy: str = "batched", *, method: Any = "pareto-mtl", **options: Any) -> pm.Front:
    PHASE.update(dict.fromkeys(PHASE, False))
    phase = {name: options.pop(name, -1) for name in PHASE}
    of = problem(model, val=classes(40, seed=1))
    decay = lambda optimizer: torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.8)  # noqa: E731
    adam = lambda parameters: torch.optim.AdamW(parameters, lr=0.02)  # noqa: E731
    callbacks = [set_phase(**phase), *options.pop("callbacks", [])]
    usual = {"precision": "float64", "optimizer": adam, "scheduler": decay, "keep": "best", "epochs": 3}
    return fit(of, method, strategy=strategy, callbacks=callbacks, **{**usual, **options})


def fallen(*arguments: Any, **options: Any) -> tuple[pm.Front, list[str]]:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        front = run(*arguments, **options)
    return front, [str(warning.message) for warning in said if "one after another" in str(warning.message)]


def assert_close(one: pm.Front, other: pm.Front, tolerance: float = 1e-6) -> None:
    assert (one.epochs, one.status, one.complete) == (other.epochs, other.status, other.complete)
    weights = (one.models.stacked(), other.models.stacked())
    for own, others in (weights, (one.history, other.history), (one.losses, other.losses)):
        for name, tensor in own.items():
            torch.testing.assert_close(tensor, others[name], rtol=0, atol=tolerance, equal_nan=True)


@pytest.mark.parametrize(
    ("strategy", "method", "model", "average"),
    [("batched", "pareto-mtl", Steady, None), ("auto", "gradnorm", Keeping, None), ("batched", "linear", Steady, 0.3)],
)
def test_a_stack_that_fails_goes_on_as_the_models_alone(
    strategy: str, method: str, model: Any, average: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the middle of a run; in float64 the front is that of one after another."""
    faster = Trial(seconds=1.0, baseline=2.0)
    monkeypatch.setattr(choose, "time_stack", lambda *_: faster)
    front, said = fallen(model, strategy=strategy, method=method, average=average, asks=2)
    assert_close(front, run(model, strategy="sequential", method=method, average=average, asks=2))
    assert front.strategy.startswith("batched until step 6, then sequential: the model or the losses ask ")
    (text,) = said
    assert text.startswith("step 7 failed with the models as a stack")
    assert front.strategy.split("sequential: ")[1] in text


def test_an_evaluation_that_fails_goes_on_as_the_models_alone() -> None:
    front, said = fallen(evaluates=1)
    assert_close(front, run(strategy="sequential", evaluates=1))
    assert front.strategy.startswith("batched until step 6, then sequential: ")
    assert [text.split(" failed")[0] for text in said] == ["the evaluation on 'val' after step 6"]


def test_the_failed_pass_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that fails after buffers were written and random numbers drawn, and one that fails before: the same bits."""
    late, _ = fallen(Drawing, asks=2)
    forward = Stack.forward

    def fail_at_once(self: Stack, batch: Any) -> Any:
        if PHASE["asks"] and self.module.training:
            raise RuntimeError("at once")
        return forward(self, batch)

    monkeypatch.setattr(Stack, "forward", fail_at_once)
    early, _ = fallen(Drawing, asks=2)
    assert early.strategy.endswith("RuntimeError: at once")
    assert_close(late, early, tolerance=0.0)


def test_a_run_that_fell_back_is_resumed(tmp_path: Path) -> None:
    """From a checkpoint of single models, with the bits of a run that was never interrupted."""

    def stop(report: pm.training.Report) -> None:
        if report.epoch == 2:
            raise Stop

    options: dict[str, Any] = {"asks": 1, "epochs": 3}
    whole, _ = fallen(Drawing, **options)
    options |= {"out": tmp_path, "checkpoint_seconds": 0.0}
    with pytest.raises(Stop):
        fallen(Drawing, callbacks=[stop], **options)
    front, said = fallen(Drawing, resume=True, **options)
    assert_close(whole, front, tolerance=0.0)
    assert (front.strategy, said) == (whole.strategy, [])
    events = [event for event in read_log(tmp_path) if event["event"] == "fallback"]
    assert [(event["what"], event["step"]) for event in events] == [("step 4", 3)]
    assert pm.Front.load(tmp_path).strategy == whole.strategy


def test_an_error_of_the_users_code_is_raised_as_it_is(tmp_path: Path) -> None:
    """And the run is resumed from before it."""
    with pytest.raises(KeyError, match="mine") as caught:
        run(out=tmp_path, breaks=2, checkpoint_seconds=0.0)
    assert caught.value.__context__ is None
    front, said = fallen(out=tmp_path, resume=True, checkpoint_seconds=0.0)
    assert_close(front, run(), tolerance=0.0)
    assert front.strategy == "batched: asked for"
    assert not said


def stacks(most: int | None, scope: dict[str, Any]) -> tuple[Plan, list[Group]]:
    method = pm.ParetoMTL()
    of = problem(Steady, **scope)
    adam = lambda parameters: torch.optim.NAdam(parameters, lr=0.02)  # noqa: E731
    plan = Plan(of, method, adam, lambda o: torch.optim.lr_scheduler.ExponentialLR(o, 0.9))
    with isolated_randomness():
        seed_everything(0)
        modules: list[nn.Module] = [Steady().double() for _ in range(4)]
    state = method.init(method.spread(4, 2))
    return plan, plan.batched(modules, state, most)


@pytest.mark.parametrize("most", [None, 2])
@pytest.mark.parametrize("scope", [{}, {"representation": "trunk"}])
def test_stacks_are_unstacked_exactly(most: int | None, scope: dict[str, Any]) -> None:
    """A frozen model included: they are where the stack is, and stay there. What is unstacked is another one."""
    (_, groups), (plan, twins) = (stacks(most, scope) for _ in range(2))
    x, y = classes(32)
    batch = x.double(), y

    def step(groups: list[Group], number: int) -> None:
        for group in groups:
            train_step([group], StepInput(batch, number, 9))
            assert group.scheduler is not None
            group.scheduler.step()

    for each in (groups, twins):
        for number in range(3):
            step(each, number)
        each[0].freeze(torch.tensor([k != 1 for k in range(each[0].models.count)]), last_step=False)
    singles = unstack(plan, twins)
    for number in range(3, 6):
        for get in (lambda g: g.models.tensors(), lambda g: g.state, lambda g: {"alive": g.active, "w": g.weights}):
            for name in get(groups[0]):
                both = [torch.cat([get(g)[name].double() for g in each]) for each in (groups, singles)]
                torch.testing.assert_close(*both, rtol=0, atol=0.0 if number == 3 else 1e-9, msg=name)
        step(groups, number)
        step(singles, number)
    assert len({float(group.optimizer.param_groups[0]["lr"]) for group in (*groups, *singles)}) == 1


def test_stacks_that_stepped_before_another_failed_do_not_step_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two stacks the second fails."""
    monkeypatch.setattr(choose, "try_stack", lambda *_, **__: Trial(most=2))
    forward, calls = Stack.forward, []

    def fail_in_the_second(self: Stack, batch: Any) -> Any:
        calls.append(self.count)
        if self.module.training and len(calls) == 4:
            raise RuntimeError("the second stack")
        return forward(self, batch)

    monkeypatch.setattr(Stack, "forward", fail_in_the_second)
    options: dict[str, Any] = {"preferences": 4, "epochs": 1, "keep": "last"}
    front, said = fallen(**options)
    assert front.strategy == "batched until step 1, then sequential: RuntimeError: the second stack"
    assert len(said) == 1
    assert_close(front, run(strategy="sequential", **options))


@pytest.mark.parametrize("stored", [{"step": "x", "before": "batched", "reason": ""}, {"steps": 3}, 5])
def test_a_checkpoint_that_says_something_else_is_refused(stored: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        Fallback.of(stored)
