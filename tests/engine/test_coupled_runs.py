"""Runs of coupled methods: what is measured when, trials, resuming, fallback and broken models."""

from __future__ import annotations

import os
import signal
import weakref
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import paretomtl as pm
from _helpers.coupled import Breaking, Share, expected_weights
from _helpers.networks import Dropped, Normed, classes, fit, problem
from paretomtl.engine import step
from paretomtl.engine.autotune import choose, stack, threads
from paretomtl.engine.autotune.trial import Trial
from paretomtl.engine.measure import Measurement
from paretomtl.engine.models.stack import Stack
from paretomtl.problems import cross_entropies


def follows_the_formula(front: pm.Front, lost: Tensor | None = None, since: int = 0) -> bool:
    """Whether the weights are those of all rows, for one batch an epoch; without some models from an epoch on."""
    for epoch, (losses, weights) in enumerate(zip(front.history["losses"], front.history["weights"], strict=True)):
        gone = torch.zeros(len(losses), dtype=torch.bool) if lost is None or epoch < since else lost
        expected = expected_weights(losses.masked_fill(gone[:, None], torch.nan))
        torch.testing.assert_close(weights[~gone], expected[~gone], rtol=0, atol=1e-9)
    return True


def tensors_of(front: pm.Front) -> dict[str, Tensor]:
    """Weights, history and losses of a front, by name."""
    tables = {"weights": front.models.stacked(), "history": front.history, "losses": front.losses}
    return {f"{table} {name}": tensor for table, tensors in tables.items() for name, tensor in tensors.items()}


def same_bits(one: pm.Front, other: pm.Front) -> bool:
    others = tensors_of(other)
    return all(torch.equal(tensor, others[name]) for name, tensor in tensors_of(one).items())


def close(one: pm.Front, other: pm.Front) -> bool:
    torch.testing.assert_close(tensors_of(one), tensors_of(other), rtol=0, atol=1e-8)
    return True


@pytest.mark.parametrize("method", ["linear", "pareto-mtl", Share(), Share(gramian=True)], ids=str)
@pytest.mark.parametrize("workers", [1, 2])
def test_only_coupled_methods_hold_the_gradients_of_all_models(
    method: Any, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[str, int]] = []
    measured: list[weakref.ref[Any]] = []
    most, (measure, update) = [0], (step.measure, step.update)

    def noted_measure(group: Any, given: Any) -> Any:
        calls.append(("measure", id(group)))
        found = measure(group, given)
        measured.append(weakref.ref(found))
        held = [ref() for ref in measured]
        most[0] = max(most[0], sum(each is not None and each._combine is not None for each in held))
        return found

    def noted_update(group: Any, *rest: Any) -> Any:
        calls.append(("update", id(group)))
        return update(group, *rest)

    monkeypatch.setattr(threads, "try_threads", lambda *_, **__: Trial(workers=workers))
    monkeypatch.setattr(choose, "try_threads", lambda *_, **__: Trial(workers=workers))
    monkeypatch.setattr(step, "measure", noted_measure)
    monkeypatch.setattr(step, "update", noted_update)
    fit(problem(), method, 4, strategy="sequential", workers=workers, batch_size=96, epochs=2)
    first = [kind for kind, _ in calls[:8]]
    if not isinstance(method, str):
        assert first == ["measure"] * 4 + ["update"] * 4
        assert most[0] == 4
    elif workers == 1:
        assert first == ["measure", "update"] * 4, "a model is updated before the next one is measured"
        assert most[0] == 1
    else:
        assert "update" in first[:4], "the first two are updated before the next two are measured"
        assert most[0] <= 2


@pytest.mark.parametrize("strategy", ["sequential", "batched"])
def test_a_step_that_does_not_weigh_gathers_nothing(strategy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers: list[int] = []
    weigh_fronts = step.weigh_fronts

    def noted(*arguments: Any, **options: Any) -> Any:
        numbers.append(options["number"])
        return weigh_fronts(*arguments, **options)

    monkeypatch.setattr(step, "weigh_fronts", noted)
    monkeypatch.setattr(choose, "try_stack", lambda *_, **__: Trial())
    front = fit(problem(), Share(), strategy=strategy, batch_size=96, epochs=7, weigh_every=3, precision="float64")
    assert numbers == [0, 3, 6]
    weights = front.history["weights"]
    for epoch in (1, 2, 4, 5):
        assert torch.equal(weights[epoch], weights[epoch - 1])
    assert not torch.equal(weights[3], weights[2])


@pytest.mark.parametrize("strategy", ["auto", "sequential", "batched"])
def test_trials_weigh_whole_fronts(strategy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Six models: more than a trial of threads, or of models one after another, takes of other methods."""
    monkeypatch.setattr(threads, "_SHORT", 0.0)
    options: dict[str, Any] = {"strategy": strategy, "precision": "float64", "batch_size": 96}
    if strategy != "batched":
        options["workers"] = 2
    front = fit(problem(), Share(rows=6), 6, **options)
    assert "Error" not in front.strategy
    assert "ms a step as a stack" in front.strategy or strategy != "auto"
    assert "2 models side by side" in front.strategy or strategy == "batched"
    assert follows_the_formula(front)


def test_a_trial_of_memory_takes_all_stacks_of_a_front(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[int]] = []

    def tried(make: Any, count: int, *_: Any) -> Trial:
        seen.append([group.models.count for group in make(2)])
        return Trial(most=2)

    monkeypatch.setattr(stack, "try_memory", tried)
    monkeypatch.setattr(choose, "try_stack", lambda *given, on_cpu: stack.try_stack(*given, on_cpu=False))
    for method in (Share(rows=5), pm.MGDA()):
        front = fit(problem(), method, 5, strategy="batched", precision="float64", batch_size=96)
        assert front.strategy.startswith("batched")
    assert seen == [[2, 1, 2], [2]]
    assert follows_the_formula(fit(problem(), Share(rows=5), 5, strategy="batched", precision="float64", batch_size=96))


@pytest.mark.parametrize("strategy", ["sequential", "batched"])
@pytest.mark.parametrize("gramian", [False, True])
def test_a_run_is_resumed_in_the_middle_of_an_epoch(strategy: str, gramian: bool, tmp_path: Path) -> None:
    method, calls = Share(gramian, rows=3, fading=True), [0]
    options: dict[str, Any] = {"strategy": strategy, "weigh_every": 2}
    whole = fit(problem(Dropped), method, **options)

    def interrupted(outputs: Any, targets: Tensor) -> Tensor:
        calls[0] += 1
        if calls[0] == 26:
            os.kill(os.getpid(), signal.SIGINT)
        return cross_entropies(outputs, targets)

    with pytest.warns(UserWarning, match="training was stopped"):
        fit(problem(Dropped, losses=interrupted), method, out=tmp_path, **options)
    resumed = fit(problem(Dropped), method, out=tmp_path, resume=True, **options)
    assert same_bits(whole, resumed)


def test_the_best_epochs_and_a_warm_start() -> None:
    of = problem(val=classes(40, seed=1))
    options: dict[str, Any] = {"precision": "float64", "batch_size": 96, "keep": "best", "epochs": 6}
    one, other = (fit(of, Share(rows=3), strategy=name, **options) for name in ("sequential", "batched"))
    assert one.epochs == other.epochs
    assert close(one, other)
    assert follows_the_formula(fit(of, Share(rows=3), strategy="batched", start=one, **options))


class Counting(Normed):
    """Batch normalisation and dropout: a pass changes buffers and draws random numbers."""

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        hidden = torch.nn.functional.dropout(self.trunk(x), 0.2, training=self.training)
        return tuple(head(hidden) for head in self.heads)


@pytest.mark.parametrize("place", ["first", "last", "combine"])
@pytest.mark.parametrize("gramian", [False, True])
def test_stacks_that_fail_in_a_step_leave_nothing_behind(
    place: str, gramian: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first or the last of two stacks, or the updates after all were weighed: no model steps or counts twice."""
    method = Share(gramian, rows=4, fading=True)
    monkeypatch.setattr(choose, "try_stack", lambda *_, **__: Trial(most=2))
    options: dict[str, Any] = {"preferences": 4, "epochs": 2, "precision": "float64"}
    forward, combine, calls = Stack.forward, Measurement.combine, [0]
    fails = {"first": 5, "last": 6, "combine": 0}[place]

    def failing_forward(self: Stack, batch: Any) -> Any:
        calls[0] += self.module.training
        result = forward(self, batch)  # buffers are written, and random numbers drawn
        if self.module.training and calls[0] == fails:
            raise RuntimeError("a stack")
        return result

    def failing_combine(self: Any, weights: Tensor) -> Any:
        calls[0] += 1
        if calls[0] == 6:
            raise RuntimeError("a stack")
        return combine(self, weights)

    normed = problem(Normed)
    alone = fit(normed, method, strategy="sequential", **options)
    if place == "combine":
        monkeypatch.setattr(Measurement, "combine", failing_combine)
    else:
        monkeypatch.setattr(Stack, "forward", failing_forward)
    with pytest.warns(UserWarning, match="step 3 failed with the models as a stack"):
        fallen = fit(normed, method, strategy="batched", **options)
    assert fallen.strategy == "batched until step 2, then sequential: RuntimeError: a stack"
    assert close(fallen, alone)


def test_random_numbers_of_a_failed_step_are_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step that fails in its last stack, after all have drawn, and one that fails at once: the same bits."""
    monkeypatch.setattr(choose, "try_stack", lambda *_, **__: Trial(most=2))
    forward, fronts = Stack.forward, []
    for fails, late in ((5, False), (6, True)):
        calls = [0]

        def failing(self: Stack, batch: Any, fails: int = fails, late: bool = late, calls: Any = calls) -> Any:
            calls[0] += self.module.training
            if calls[0] == fails and self.module.training and not late:
                raise RuntimeError("a stack")
            result = forward(self, batch)
            if calls[0] == fails and self.module.training:
                raise RuntimeError("a stack")
            return result

        monkeypatch.setattr(Stack, "forward", failing)
        with pytest.warns(UserWarning, match="step 3 failed"):
            fronts.append(fit(problem(Counting), Share(rows=4), 4, strategy="batched", epochs=2))
    assert same_bits(*fronts)


@pytest.mark.filterwarnings("ignore:.*not finite")
@pytest.mark.parametrize("gramian", [False, True])
@pytest.mark.parametrize("strategy", ["sequential", "batched"])
def test_models_of_several_seeds_break(strategy: str, gramian: bool) -> None:
    options: dict[str, Any] = {"epochs": 5, "batch_size": 96, "device": "cpu", "progress": "quiet"}
    options |= {"optimizer": lambda p: torch.optim.SGD(p, lr=0.1), "precision": "float64", "strategy": strategy}
    method = Share(gramian, rows=4)
    fronts = pm.fit_seeds(problem(Breaking), method, 4, seeds=[0, 1, 5], **options)
    lost = [torch.tensor([status == "non-finite" for status in front.status]) for front in fronts]
    assert {0 < int(gone.sum()) < 4 for gone in lost} >= {True}
    for front, gone in zip(fronts, lost, strict=True):
        for tensor in front.models.stacked().values():
            assert tensor.isfinite().all()
        assert (front.history["weights"][3:, gone] == 0).all()
        if not gramian:
            assert follows_the_formula(front, gone, since=2)


def test_a_stored_run_in_shards_is_refused(tmp_path: Path) -> None:
    fit(problem(), "linear", out=tmp_path, executor=pm.training.SerialExecutor(2), epochs=1)
    with pytest.raises(ValueError, match=r"'method' must train each row .* in shards\. Got 'share' .* needs all rows"):
        fit(problem(), Share(), out=tmp_path, resume=True, epochs=1)
