"""A shared start: one model for the first part of a run, whose copies then train on their own."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.utils.data import DataLoader, IterableDataset

import paretomtl as pm
from _helpers.networks import MLP, Normed, classes, fit, problem
from _helpers.streams import pretended  # noqa: F401
from paretomtl.engine.runners.eager import EagerRunner
from paretomtl.methods import Auto, Linear, Method, ParetoMTL, PNorm
from paretomtl.methods.inputs import SafeStep, State
from paretomtl.problems import cross_entropies
from paretomtl.runs import read_log
from paretomtl.training.run.milestones import Milestones
from paretomtl.training.shards.executor import SerialExecutor

VAL = classes(40, seed=1)
EXACT: dict[str, Any] = {"epochs": 4, "precision": "float64", "strategy": "sequential"}


def adam(parameters: Any) -> torch.optim.Optimizer:
    return torch.optim.Adam(parameters, lr=0.05)


def momentum(parameters: Any) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr=0.1, momentum=0.9)


def standing(parameters: Any) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr=0.0)


def cosine(optimizer: Any, total: int) -> Any:
    return torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, total)


def same(one: pm.Front, other: pm.Front) -> bool:
    weights, others = one.models.stacked(), other.models.stacked()
    history = all(torch.equal(table, other.history[name]) for name, table in one.history.items())
    return history and all(torch.equal(tensor, others[name]) for name, tensor in weights.items())


def agree(one: pm.Front, other: pm.Front) -> None:
    others = other.models.stacked()
    for name, tensor in one.models.stacked().items():
        torch.testing.assert_close(tensor, others[name], rtol=0, atol=1e-8)
    for name, table in one.history.items():
        torch.testing.assert_close(table, other.history[name], rtol=0, atol=1e-8)


@pytest.mark.parametrize("optimizer", [adam, momentum])
def test_copies_go_on_with_their_optimizers_and_schedules(optimizer: Any) -> None:
    """An oracle: the same steps in a loop by hand, on all samples at once."""
    rows = torch.tensor([[0.8, 0.2], [0.5, 0.5], [0.1, 0.9]], dtype=torch.float64)
    options: dict[str, Any] = {**EXACT, "batch_size": 96, "epochs": 12}
    front = fit(problem(), "linear", rows, branch=0.5, optimizer=optimizer, scheduler=cosine, **options)

    shared = fit(problem(), "linear", rows[1:2], optimizer=standing, **{**options, "epochs": 1}).model(0)
    models, tuners = [shared], [optimizer(shared.parameters())]
    schedulers = [cosine(tuners[0], 12)]
    x, y = classes()
    for number in range(12):
        if number == 6:
            models = [copy.deepcopy(shared) for _ in rows]
            moments, rates = tuners[0].state_dict(), schedulers[0].state_dict()
            tuners = [optimizer(model.parameters()) for model in models]
            schedulers = [cosine(tuner, 12) for tuner in tuners]
            for tuner, scheduler in zip(tuners, schedulers, strict=True):
                tuner.load_state_dict(copy.deepcopy(moments))
                scheduler.load_state_dict(rates)
        for k, (model, tuner, scheduler) in enumerate(zip(models, tuners, schedulers, strict=True)):
            weights = torch.ones(2) if number < 6 else 2 * rows[k]
            tuner.zero_grad()
            (weights * torch.stack(list(cross_entropies(model(x.double()), y)))).sum().backward()
            tuner.step()
            scheduler.step()
    for k, model in enumerate(models):
        for name, tensor in model.named_parameters():
            torch.testing.assert_close(front.models.stacked()[name][k], tensor.detach(), rtol=0, atol=1e-9)


@pytest.mark.parametrize("method", ["linear", "auto", "pareto-mtl", PNorm()], ids=str)
@pytest.mark.parametrize("model", [MLP, Normed])
def test_strategies_agree(method: Any, model: Any) -> None:
    options: dict[str, Any] = {**EXACT, "branch": 0.4, "optimizer": adam, "clip_norm": 1.0}
    one = fit(problem(model), method, 4, **options)
    agree(one, fit(problem(model), method, 4, **{**options, "strategy": "batched"}))
    agree(one, fit(problem(model), method, 4, **options, workers=2))


@pytest.mark.usefixtures("pretended")
@pytest.mark.parametrize("method", ["linear", "auto", "pareto-mtl"])
def test_captured_steps_agree(method: str) -> None:
    """With fake streams. The branch is in the middle of an epoch, where a captured step keeps its place itself."""
    options: dict[str, Any] = {**EXACT, "branch": 0.4, "optimizer": adam}
    captured, launched = (fit(problem(), method, 4, **{**options, "strategy": s}) for s in ("graphed", "batched"))
    assert captured.strategy.startswith("graphed")
    agree(captured, launched)


def test_the_shared_part_costs_one_model() -> None:
    passes = {False: 0, True: 0}

    class Counting(MLP):
        def forward(self, x: Tensor) -> tuple[Tensor, ...]:
            passes[self.training] += 1
            return super().forward(x)

    def count(**options: Any) -> int:
        passes.update({False: 0, True: 0})
        fit(problem(Counting), "linear", 5, strategy="sequential", batch_size=24, epochs=10, **options)
        return passes[True]

    whole, branched = count(), count(branch=0.25)
    assert whole - branched == 4 * 10  # four models less, in 10 of 40 steps


@pytest.mark.parametrize("strategy", ["sequential", pytest.param("batched", marks=pytest.mark.study)])
@pytest.mark.parametrize(
    "method", ["auto", *(pytest.param(m, marks=pytest.mark.study) for m in ("linear", "pareto-mtl"))]
)
@pytest.mark.parametrize("stop", [1, 2, 3, 5])
def test_a_resumed_run_is_the_same_to_the_bit(stop: int, method: str, strategy: str, tmp_path: Path) -> None:
    """Stopped in the shared part, right before the branch (after epoch 2), after it, and after the probe of auto."""
    made = problem(Normed, val=VAL)
    options: dict[str, Any] = {"epochs": 8, "branch": 0.25, "optimizer": adam, "scheduler": cosine, "keep": "best"}
    straight = fit(made, method, 4, strategy=strategy, **options)
    interrupt = [lambda report: report.epoch == stop]
    first = fit(made, method, 4, strategy=strategy, out=tmp_path, callbacks=interrupt, **options)
    resumed = fit(made, method, 4, strategy=strategy, out=tmp_path, resume=True, **options)
    assert not first.complete
    assert same(resumed, straight)
    assert resumed.decisions == straight.decisions
    assert [line["event"] for line in read_log(tmp_path)].count("branched") == 1


@pytest.mark.parametrize("stop", [2, 3, 4])
def test_a_run_that_stops_inside_of_an_epoch_resumes_there(
    stop: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The branch is before the fourth step, in the second epoch of three steps."""
    options: dict[str, Any] = {"epochs": 4, "branch": 0.25, "checkpoint_seconds": 0.0, "strategy": "sequential"}
    straight = fit(problem(), "linear", 3, **options)
    real, taken = EagerRunner.step, []

    def step(self: Any, item: Any, number: int) -> None:
        if len(taken) == stop:
            raise KeyboardInterrupt
        taken.append(number)
        real(self, item, number)

    with monkeypatch.context() as broken:
        broken.setattr(EagerRunner, "step", step)
        with pytest.raises(KeyboardInterrupt):
            fit(problem(), "linear", 3, out=tmp_path, **options)
    assert same(fit(problem(), "linear", 3, out=tmp_path, resume=True, **options), straight)


def test_a_run_that_stops_in_its_shared_part_has_equal_models() -> None:
    front = fit(problem(val=VAL), "pareto-mtl", 3, branch=0.5, callbacks=[lambda report: True], keep="best", patience=1)
    assert not front.complete
    assert front.epochs == [1, 1, 1]
    assert torch.equal(front.losses["val"][0], front.losses["val"][2])
    assert "shared" in front.decisions[0]


def test_best_epochs_and_patience_begin_at_the_branch() -> None:
    """Labels of validation are shuffled, so that the first epoch is the best of all."""
    val = VAL[0], VAL[1].flip(0)
    front = fit(problem(val=val), "linear", 3, branch=0.5, epochs=12, optimizer=adam, keep="best", patience=2)
    assert front.ended is not None
    assert front.ended.startswith("patience")
    assert min(front.epochs) > 6


def test_seeds_in_one_stack_and_models_dropped_from_a_front_change_nothing() -> None:
    options: dict[str, Any] = {**EXACT, "branch": 0.4, "device": "cpu", "progress": "quiet", "batch_size": 96}
    together = pm.fit_seeds(problem(), "linear", 3, seeds=[4, 9], **{**options, "strategy": "batched"})
    for seed, front in zip([4, 9], together, strict=True):
        agree(front, fit(problem(), "linear", 3, seed=seed, **{**options, "optimizer": None}))
    whole, part = (fit(problem(), "pareto-mtl", 4, **options, only=only) for only in (None, [1, 3]))
    for name, tensor in part.models.stacked().items():
        assert torch.equal(tensor, whole.models.stacked()[name][[1, 3]])


def test_shards_train_as_all_do(tmp_path: Path) -> None:
    options: dict[str, Any] = {"branch": 0.4, "strategy": "sequential"}
    whole = fit(problem(Normed), "linear", 3, **options)
    shards = fit(problem(Normed), "linear", 3, **options, executor=SerialExecutor(shard_size=2), out=tmp_path)
    assert same(shards, whole)


class Numbered(Linear):
    """Records the place of each step, as a method sees it."""

    def _weigh(self, step: SafeStep, state: State) -> tuple[Tensor, State]:
        PLACES.append((int(step.number), step.total))
        return super()._weigh(step, state)


PLACES: list[tuple[int, int]] = []


def test_the_method_begins_at_the_branch() -> None:
    PLACES.clear()
    fit(problem(), Numbered(), 1, branch=0.25, epochs=4, strategy="sequential")
    assert [(number, 9) for number in range(9)] == PLACES  # of twelve steps
    places = Milestones.of(ParetoMTL(release_steps=2), 0.25, 12, 4)
    assert places.snapshots == {3 + number for number in ParetoMTL(release_steps=2).snapshots(9)}


def test_a_stack_that_fails_in_the_shared_part_goes_on_alone() -> None:
    calls: list[int] = []

    class Failing(MLP):
        def forward(self, x: Tensor) -> tuple[Tensor, ...]:
            if self.training:
                calls.append(1)
            if (
                self.training
                and len(calls) > 8
                and torch._C._functorch.is_functorch_wrapped_tensor(self.heads[0].weight)
            ):
                raise RuntimeError("no stack any more")
            return super().forward(x)

    options: dict[str, Any] = {**EXACT, "branch": 0.5, "epochs": 6}
    with pytest.warns(UserWarning, match="failed with the models as a stack"):
        front = fit(problem(Failing), "linear", 3, **{**options, "strategy": "batched"})
    assert "then sequential" in front.strategy
    agree(front, fit(problem(), "linear", 3, **options))


class Stream(IterableDataset[Any]):
    """Batches of a length that is not known before."""

    def __iter__(self) -> Iterator[Any]:
        return iter(zip(*classes(), strict=True))


@pytest.mark.study
def test_data_of_unknown_length_branch_after_whole_epochs(tmp_path: Path) -> None:
    made = problem(train=DataLoader(Stream(), batch_size=32))
    options: dict[str, Any] = {"branch": 0.5, "epochs": 4, "strategy": "sequential"}
    straight = fit(made, "auto", 3, **options)
    assert "the first 6 steps were shared" in straight.decisions[0]
    for stop in (1, 2, 3):
        out = tmp_path / str(stop)
        fit(made, "auto", 3, out=out, callbacks=[lambda report, at=stop: report.epoch == at], **options)
        assert same(fit(made, "auto", 3, out=out, resume=True, **options), straight)
    with pytest.raises(ValueError, match=r"'branch' must leave .* Got 0.5 of 1 epochs of unknown length"):
        fit(made, "linear", 3, branch=0.5, epochs=1)


def test_a_model_that_cannot_be_copied_is_refused_before_it_trains() -> None:
    class Locked(MLP):
        def __deepcopy__(self, memo: Any) -> nn.Module:
            raise TypeError("cannot be copied")

    with pytest.raises(ValueError, match="'model' must make modules that can be copied"):
        fit(problem(Locked), "linear", 3, branch=0.5)


def test_a_model_that_breaks_in_the_shared_part_breaks_all_its_copies() -> None:
    def losses(outputs: Any, targets: Tensor) -> Any:
        broken = torch.where(outputs[0].abs().max() < 50, 1.0, torch.nan)
        return [broken * value for value in cross_entropies(outputs, targets)]

    def wild(parameters: Any) -> torch.optim.Optimizer:
        return torch.optim.SGD(parameters, lr=1e4)

    with pytest.warns(UserWarning, match="not finite"):
        front = fit(problem(losses=losses), "linear", 3, branch=0.5, optimizer=wild, strategy="batched")
    assert front.status == ["non-finite"] * 3
    assert all(tensor.isfinite().all() for tensor in front.models.stacked().values())


def test_a_run_with_another_branch_is_not_resumed(tmp_path: Path) -> None:
    fit(problem(), "linear", 3, branch=0.5, out=tmp_path)
    with pytest.raises(ValueError, match="branch"):
        fit(problem(), "linear", 3, branch=0.25, out=tmp_path, resume=True)


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"branch": 0.0}, "'branch' must be over 0 and under 1, a share. Got 0.0"),
        ({"branch": 1}, "'branch' must be over 0 and under 1, a share. Got 1"),
        ({"branch": float("nan")}, "'branch' must be over 0 and under 1, a share. Got nan"),
        ({"branch": "half"}, "'branch' must be over 0 and under 1, a share. Got 'half'"),
        ({"branch": 0.5, "method": "mgda"}, "'mgda', which tells its models apart by their starts alone. Got 0.5"),
        ({"branch": 0.5, "method": "single-task"}, "'single-task', which trains separate networks. Got 0.5"),
        ({"branch": 0.5, "epochs": 1, "batch_size": 96}, "'branch' must leave at least one step .* 0.5 of 1 steps"),
    ],
    ids=str,
)
def test_bad_branches_are_refused(options: dict[str, Any], rule: str) -> None:
    with pytest.raises(ValueError, match=rule):
        fit(problem(), options.pop("method", "linear"), None, **options)


def test_a_warm_start_does_not_branch() -> None:
    with pytest.raises(ValueError, match="'branch' must be None with 'start'"):
        fit(problem(), "linear", 3, branch=0.5, start=fit(problem(), "linear", 3))


@given(st.floats(0.001, 0.999), st.integers(0, 10**5), st.integers(2, 500), st.sampled_from([Auto(), Linear()]))
def test_milestones_come_in_order_and_leave_room(share: float, total: int, epochs: int, method: Method) -> None:
    """Or the share is refused, which leaves no step."""
    try:
        places = Milestones.of(method, share, total, epochs)
    except ValueError:
        assert round(share * (total or epochs)) >= (total or epochs) or total == 1
        return
    assert places.branch is not None
    at = places.branch.steps if total else places.branch.epochs
    assert 1 <= at < (total or epochs)
    assert abs(at - share * (total or epochs)) <= 1.0
    if places.probe_end is not None:
        assert at < (places.probe_end.steps if total else places.probe_end.epochs)


@pytest.mark.parametrize(
    ("method", "streamed", "message"),
    [
        (
            ParetoMTL(release_steps=9),
            False,
            "must be fewer than the steps planned ('total'). Got 9 of 9",
        ),
        (ParetoMTL(release_steps=11), False, "'release_steps' must be fewer than the steps planned"),
        (ParetoMTL(release_steps=2), True, "'release_steps' must be fewer than the steps planned"),
    ],
)
def test_a_method_that_does_not_fit_behind_the_branch_is_refused_before_training(
    method: Method, streamed: bool, message: str
) -> None:
    taken: list[int] = []

    class Counting(torch.optim.SGD):
        def step(self, closure: Any = None) -> Any:
            taken.append(1)
            return super().step(closure)

    given = problem(train=DataLoader(Stream(), batch_size=32)) if streamed else problem()
    with pytest.raises(ValueError, match=re.escape(message)):
        fit(given, method, branch=0.25, optimizer=lambda p: Counting(p, lr=0.1), strategy="sequential")
    assert taken == []
