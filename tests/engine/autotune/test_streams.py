"""Ordinary modules in one captured step, with streams that only pretend; tests/gpu has real ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import paretomtl as pm
from _helpers.networks import fit, problem
from _helpers.streams import (  # noqa: F401
    CPU,
    Net,
    Stream,
    Viewing,
    adam,
    batches,
    images,
    places,
    planned,
    pretended,
    run,
    values,
)
from paretomtl._support.files.atomic_files import read_json
from paretomtl.engine import gradients as _gradients
from paretomtl.engine import step
from paretomtl.engine.autotune import choose, streams
from paretomtl.engine.autotune.streams import has_wide_convolutions
from paretomtl.engine.autotune.trial import Trial
from paretomtl.engine.batches.indexed import ResidentBatches
from paretomtl.engine.batches.make import make_batches
from paretomtl.engine.history import EpochHistory
from paretomtl.engine.models.single import Single
from paretomtl.engine.runners.cuda_graph import GraphRunner
from paretomtl.engine.runners.eager import EagerRunner
from paretomtl.engine.strategy import ExecutionPlan, Plan


@pytest.mark.usefixtures("pretended")
@pytest.mark.parametrize("gathered", [False, True])
@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("workers", [1, 3])
def test_modules_side_by_side_step_as_one_after_another(
    workers: int, channels_last: bool, gathered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_gradients, "launches_cost", lambda tensor: gathered)
    plan, modules, state = planned()
    groups = plan.on_streams(modules, state, channels_last=channels_last)
    side = GraphRunner(groups, batches(), EpochHistory(3, 2, CPU), 10, 1, workers)
    number = run(side, 1)
    before = [places(group) for group in groups]
    run(side, 1, number)
    assert [places(group) for group in groups] == before, "a replay finds everything where it was"
    plan, modules, state = planned()
    alone = plan.sequential(modules, state)
    launched = EagerRunner(alone, batches(), EpochHistory(3, 2, CPU), 10, 1)
    run(launched, 1)
    run(launched, 1, number)
    for name, tensor in values(alone).items():
        torch.testing.assert_close(tensor, values(groups)[name], rtol=1e-4, atol=1e-6)
    for history in (side.history, launched.history):
        history.end_epoch()
    torch.testing.assert_close(side.history.last("losses"), launched.history.last("losses"), rtol=1e-4, atol=1e-6)


@pytest.mark.usefixtures("pretended")
def test_streams_are_forked_and_joined_in_all_but_the_first_step(monkeypatch: pytest.MonkeyPatch) -> None:
    plan, modules, state = planned(5)
    runner = GraphRunner(plan.on_streams(modules, state), batches(), EpochHistory(5, 2, CPU), 10, 1, 2)
    advance = step.advance

    def noted(groups: Any, *args: Any) -> Any:
        Stream.log.append(("work", Stream.current, [runner.groups.index(group) for group in groups]))
        return advance(groups, *args)

    monkeypatch.setattr(step, "advance", noted)
    items = runner.epoch(0, 0, 0, 0)
    runner.step(next(items), 0)
    main, (one, two) = runner._stream, runner._side_streams
    assert Stream.log[1:-1] == [("work", main, [k]) for k in range(5)]  # what is made once is made here
    Stream.log.clear()
    runner.step(next(items), 1)
    forks, works, joins = Stream.log[1:3], Stream.log[3:8], Stream.log[8:-1]
    assert forks == [("wait", one, main), ("wait", two, main)]
    assert works == [("work", side, [k]) for k, side in enumerate([one, two, one, two, one])]
    assert joins == [("wait", main, one), ("wait", main, two)]


@pytest.mark.parametrize(("model", "suits"), [(Net, True), (Viewing, False), (lambda: nn.Linear(6, 2), False)])
def test_channels_come_last_where_the_model_allows_it(model: Any, suits: bool) -> None:
    plan, (module,), state = planned(1, model)
    layouts = [p.stride() for p in module.parameters()]
    batch = next(batches().epoch(0, 0))
    assert streams._suits_channels_last(plan, module, state, batch, 10) == suits
    assert [p.stride() for p in module.parameters()] == layouts, "tried on copies"


def test_wide_convolutions_are_seen() -> None:
    assert has_wide_convolutions(pm.problems.ResNet18())
    assert not has_wide_convolutions(pm.problems.LeNet())
    assert not has_wide_convolutions(nn.Linear(100, 100))


STACK = ExecutionPlan("graphed", "the step can be captured")
CUT = ExecutionPlan("graphed", "cut", most=2)


@pytest.mark.parametrize(
    ("unstackable", "stack", "on_streams", "wide", "given", "reason"),
    [
        (None, Trial(seconds=0.074), Trial(seconds=0.013, workers=5, channels_last=True), True, STACK,
         "13 ms a step as ordinary modules side by side, 74 ms as a stack"),
        (None, Trial(seconds=3.0412), Trial(seconds=1.334, workers=5, channels_last=True), True, STACK,
         "1,334 ms a step as ordinary modules side by side, 3,041 ms as a stack"),
        (None, Trial(seconds=0.01), Trial(seconds=0.02, workers=5, channels_last=True), True, STACK,
         "10 ms a step as a stack, 20 ms as ordinary modules side by side"),
        (None, Trial(seconds=0.01), Trial(seconds=0.02, workers=5, channels_last=True), True, CUT,
         "cut; 10 ms a step as a stack, 20 ms as ordinary modules side by side"),
        (None, Trial(seconds=0.074), Trial(seconds=0.013), False, STACK, "the step can be captured"),
        (None, Trial(seconds=0.074), Trial("no room"), True, STACK, "the step can be captured"),
        (None, Trial("it waits"), Trial(seconds=0.013), False, STACK,
         "as ordinary modules one after another; not as a stack: it waits"),
        ("no rule", Trial(), Trial(seconds=0.013), True, STACK,
         "as an ordinary module; not as a stack: no rule"),
    ],
)  # fmt: skip
def test_the_faster_way_to_capture_is_taken(
    unstackable: str | None,
    stack: Trial,
    on_streams: Trial,
    wide: bool,
    given: ExecutionPlan,
    reason: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(choose, "try_capture", lambda *_, **__: stack)
    monkeypatch.setattr(choose, "try_streams", lambda *_: on_streams)
    monkeypatch.setattr(choose, "has_wide_convolutions", lambda module: wide)
    plan, modules, state = planned(1 if "an ordinary module" in reason else 3)
    choice, whys = choose._captured(plan, modules, state, batches(), None, 10, given, unstackable)
    assert choice is not None
    assert (choice.reason, whys) == (reason, [])
    assert choice.on_streams == ("as ordinary modules" in reason.split(", ")[0] or "not as a stack" in reason)
    if choice.on_streams:
        assert (choice.workers, choice.channels_last, choice.most) == (
            on_streams.workers,
            on_streams.channels_last,
            None,
        )
    assert ExecutionPlan.of(json.loads(json.dumps(choice.stored()))) == choice, "as a run is taken up again"


def test_what_cannot_be_captured_either_way_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    plan, modules, state = planned()
    for reason, expected in (("b", ["a", "as ordinary modules, b"]), ("a", ["a"])):
        monkeypatch.setattr(choose, "try_streams", lambda *_, why=reason: Trial(why))
        assert choose._captured(plan, modules, state, batches(), None, 10, STACK, "a") == (None, expected)


@pytest.mark.usefixtures("pretended")
def test_fewer_streams_where_memory_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []

    def trial(groups: Any, *args: Any, workers: int, **options: Any) -> Trial:
        tried.append((len(groups()), workers))
        return Trial("OutOfMemoryError: CUDA out of memory") if workers > room else Trial(seconds=0.008)

    monkeypatch.setattr(streams, "try_capture", trial)
    plan, modules, state = planned(10)
    batch = next(batches().epoch(0, 0))
    room = 2
    found = streams.try_streams(plan, modules, state, batches(), batch, 10)
    assert tried == [(8, 8), (8, 4), (8, 2)]
    assert (found.why_not, found.workers, found.channels_last) == (None, 2, True)
    assert found.seconds == pytest.approx(0.01), "of all ten"
    room = 0
    assert str(streams.try_streams(plan, modules, state, batches(), batch, 10).why_not).startswith("OutOfMemoryError")
    room = 8
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (1000, 1 << 40))
    assert "all models would need about" in str(streams.try_streams(plan, modules, state, batches(), batch, 10).why_not)


class Recurrent(nn.Module):
    """Cannot be stacked."""

    def __init__(self) -> None:
        super().__init__()
        self.cells = nn.LSTM(1, 5, batch_first=True)
        self.head = nn.Linear(5, 6)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        return tuple(self.head(self.cells(x[..., None])[0][:, -1]).split(3, -1))


@pytest.mark.usefixtures("pretended")
@pytest.mark.parametrize(
    "options", [{}, {"keep": "best"}, {"weigh_every": 3}, {"method": "linear", "clip_norm": 0.1}], ids=str
)
@pytest.mark.parametrize("strategy", ["auto", "graphed"])
def test_whole_runs_of_what_cannot_be_stacked(strategy: str, options: dict[str, Any]) -> None:
    of = problem(Recurrent)
    of = problem(Recurrent, val=of.train)
    graphed = fit(of, strategy=strategy, **options)
    assert graphed.strategy.startswith("graphed: as ordinary modules side by side; not as a stack: ")
    alone = fit(of, strategy="sequential", **options)
    assert graphed.epochs == alone.epochs
    for name, tensor in alone.models.stacked().items():
        torch.testing.assert_close(graphed.models.stacked()[name], tensor, rtol=1e-4, atol=1e-6)


@pytest.mark.usefixtures("pretended")
def test_a_run_that_is_taken_up_again_does_not_try_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(report: Any) -> None:
        if report.epoch == 2:
            raise InterruptedError

    options: dict[str, Any] = {"strategy": "graphed", "optimizer": adam, "batch_size": 16}
    monkeypatch.setattr(choose, "try_stack", lambda *_, **__: Trial("so it is said"))
    with pytest.raises(InterruptedError):
        fit(images(), out=tmp_path, callbacks=[stop], **options)
    taken = read_json(tmp_path / "config.json")["taken"]
    assert (taken["apart"], taken["channels_last"], taken["workers"]) == (True, True, 3)
    whole = fit(images(), **options)
    monkeypatch.setattr(choose, "try_streams", None)
    resumed = fit(images(), out=tmp_path, resume=True, **options)
    assert resumed.strategy == whole.strategy
    for name, tensor in whole.models.stacked().items():
        assert torch.equal(tensor, resumed.models.stacked()[name]), name
        assert tensor.is_contiguous()
    loaded = pm.Front.load(tmp_path / "front", images())
    x = images().train[0][:4]  # type: ignore[index]
    for mine, theirs in zip(loaded.model(1).eval()(x), resumed.model(1).eval()(x), strict=True):
        assert torch.equal(mine, theirs)


@pytest.mark.usefixtures("pretended")
def test_models_that_replace_what_they_keep_are_not_captured() -> None:
    class Averages(Recurrent):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("mean", torch.zeros(()))

        def forward(self, x: Tensor) -> tuple[Tensor, ...]:
            self.mean = 0.9 * self.mean + 0.1 * x.mean()
            return super().forward(x)

    with pytest.raises(ValueError, match="as ordinary modules, the model replaces tensors that it keeps"):
        fit(problem(Averages), strategy="graphed")
    assert fit(problem(Averages)).strategy.startswith("sequential: ")


@pytest.mark.usefixtures("pretended")
def test_a_model_that_broke_is_taken_out_of_a_captured_step() -> None:
    class Breaks(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = nn.Parameter(torch.tensor([1.0]))

        def forward(self, x: Tensor) -> Tensor:
            return x * self.w

    def losses(outputs: Tensor, targets: Tensor) -> Tensor:
        mean = outputs.mean()
        return torch.stack([mean * mean, torch.where(mean > 0.75, mean, torch.nan)])

    made = pm.Problem(Breaks, losses, ["a", "b"], train=(torch.ones(8, 1), torch.zeros(8, 1)))
    modules: list[nn.Module] = [Breaks(), Breaks()]
    modules[1].w.data.fill_(100.0)  # type: ignore[operator, union-attr]
    method = pm.Linear()
    plan = Plan(made, method, lambda p: torch.optim.SGD(p, lr=0.03))
    groups = plan.on_streams(modules, method.init(torch.full((2, 2), 0.5, dtype=torch.float64)))
    assert all(isinstance(group.models, Single) for group in groups)
    train = make_batches("train", made.train, batch_size=8, device=CPU, dtype=torch.float32)
    assert isinstance(train, ResidentBatches)
    runner = GraphRunner(groups, train, EpochHistory(2, 2, CPU), 10, 1, 2)
    path = []
    for number in range(8):
        path.append(float(groups[0].models.tensors()["w"][0, 0]))
        run(runner, 1, number)
    for group in groups:
        group.restore_frozen()
    assert torch.cat([group.active for group in groups]).tolist() == [False, True]
    assert float(groups[0].models.tensors()["w"][0, 0]) == min(w for w in path if w > 0.75), "where it last was finite"
