from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import paretomtl as pm
from _helpers.networks import MLP, Dropped, Normed, fit, lenet_problem, problem
from paretomtl._support.files import read_json
from paretomtl.engine.autotune import choose
from paretomtl.engine.autotune.trial import Trial
from paretomtl.engine.runners.threads import ThreadPool, share_of
from paretomtl.problems import cross_entropies


@contextmanager
def threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def same(one: pm.Front, other: pm.Front) -> bool:
    pairs = [(one.parameters[name], other.parameters[name]) for name in one.parameters]
    return all(torch.equal(a, b) for a, b in [*pairs, *((one.history[n], other.history[n]) for n in one.history)])


@pytest.mark.parametrize("options", [{}, {"clip_norm": 0.1}, {"precision": "bfloat16"}, {"method": "linear"}])
@pytest.mark.parametrize("network", [MLP, Normed])
def test_side_by_side_takes_the_same_steps(network: Any, options: dict[str, Any]) -> None:
    """Bit by bit; three models on two workers, so that one is left over."""
    one, two = (fit(problem(network), strategy="sequential", workers=count, **options) for count in (1, 2))
    assert one.strategy == "sequential: asked for"
    assert two.strategy == "sequential: asked for, 2 models side by side"
    assert same(one, two)


@pytest.mark.parametrize("scope", [{"shared": ["trunk"]}, {"representation": "trunk"}])
def test_side_by_side_with_heads_apart(scope: dict[str, Any]) -> None:
    one, two = (fit(problem(Normed, **scope), strategy="sequential", workers=count) for count in (1, 3))
    assert same(one, two)


def test_a_network_with_threads_of_its_own_computes_as_with_its_share_of_them() -> None:
    with threads(4):
        side = fit(lenet_problem(), preferences=2, strategy="sequential", workers=2)
        assert torch.get_num_threads() == 4
    with threads(share_of(4, 2)):
        alone = fit(lenet_problem(), preferences=2, strategy="sequential")
    assert same(side, alone)


def test_shares_of_threads() -> None:
    assert [share_of(16, count) for count in (1, 3, 16, 25)] == [16, 5, 1, 1]


def test_models_that_draw_take_turns() -> None:
    one, two = (fit(problem(Dropped), strategy="sequential", workers=count) for count in (1, 2))
    assert "not side by side" in two.strategy
    assert "random numbers" in two.strategy
    assert same(one, two)


def test_models_that_share_a_tensor_take_turns() -> None:
    common = nn.Linear(6, 12)

    class Sharing(MLP):
        def __init__(self) -> None:
            super().__init__()
            self.trunk = nn.Sequential(common, nn.Tanh())

    assert "share tensors" in fit(problem(Sharing), strategy="sequential", workers=2).strategy


def test_a_mode_that_holds_for_one_thread_is_respected() -> None:
    with torch.device("cpu"):
        assert "a mode of torch" in fit(strategy="sequential", workers=2).strategy


def test_models_that_depend_on_their_neighbours_take_turns() -> None:
    seen: list[str] = []

    def losses(outputs: Any, targets: Tensor) -> Tensor:
        seen.append(threading.current_thread().name)
        return cross_entropies(outputs, targets) * (1.0 + threading.current_thread().name.startswith("paretomtl"))

    front = fit(problem(losses=losses), strategy="sequential", workers=2)
    assert "differ from those one after another" in front.strategy
    assert not seen[-1].startswith("paretomtl")


def test_an_error_surfaces_and_no_thread_stays() -> None:
    calls = []

    def losses(outputs: Any, targets: Tensor) -> Tensor:
        calls.append(None)
        if len(calls) > 20 and threading.current_thread().name.startswith("paretomtl"):
            raise ZeroDivisionError("of my own")
        return cross_entropies(outputs, targets)

    with pytest.raises(ZeroDivisionError, match="of my own"):
        fit(problem(losses=losses), strategy="sequential", workers=2)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("paretomtl")]


def test_ctrl_c_ends_after_the_step_and_the_run_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    whole = fit(problem(), strategy="sequential", workers=2)
    calls = []

    def losses(outputs: Any, targets: Tensor) -> Tensor:
        calls.append(None)
        if len(calls) == 40:
            os.kill(os.getpid(), signal.SIGINT)
        return cross_entropies(outputs, targets)

    with pytest.warns(UserWarning, match="training was stopped"):
        part = fit(problem(losses=losses), strategy="sequential", workers=2, out=tmp_path)
    assert not part.complete
    assert read_json(tmp_path / "config.json")["taken"]["workers"] == 2
    resumed = fit(problem(), strategy="sequential", out=tmp_path, resume=True)  # on the workers that it had
    assert resumed.strategy == whole.strategy
    assert same(whole, resumed)


@pytest.mark.parametrize(
    ("side", "stack", "taken", "count"),
    [
        (Trial(seconds=0.8, baseline=1.0, workers=2), 2.0, "sequential", 2),  # faster than both
        (Trial(seconds=0.97, baseline=1.0, workers=2), 2.0, "sequential", 1),  # by too little
        (Trial(seconds=0.8, baseline=1.0, workers=2), 0.5, "batched", 1),
        (Trial(seconds=0.7, baseline=0.9, workers=2), 0.8, "sequential", 2),  # the stack beats one after another alone
        (Trial(), 2.0, "sequential", 1),
        (Trial("so"), 0.5, "batched", 1),
    ],
)
def test_auto_takes_the_fastest(
    side: Trial, stack: float, taken: str, count: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(choose, "try_threads", lambda *_, **__: side)
    monkeypatch.setattr(choose, "time_stack", lambda *_: Trial(seconds=stack, baseline=1.0))
    front = fit(out=tmp_path)
    together = "2,000 ms" if stack == 2.0 else f"{1e3 * stack:.0f} ms"
    assert front.strategy.startswith(f"{taken}: {together} a step as a stack, 1,000 ms one after another")
    assert ("side by side" in front.strategy) == (side.workers > 1 or bool(side.why_not))
    assert read_json(tmp_path / "config.json")["taken"]["workers"] == count


def test_auto_measures_long_steps_and_leaves_short_ones_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "side by side" not in fit().strategy
    monkeypatch.setattr("paretomtl.engine.autotune.threads._SHORT", 0.0)
    with threads(2):
        assert "ms with 2 models side by side" in fit().strategy
        assert "side by side" not in fit(workers=1).strategy
    with threads(1):
        assert "side by side" not in fit().strategy


def test_bad_numbers_of_workers_are_refused() -> None:
    with pytest.raises(ValueError, match="'workers' must be a whole number"):
        fit(workers=0)
    with pytest.raises(ValueError, match="'workers' must be left out"):
        fit(strategy="batched", workers=2)


def test_one_worker_needs_no_thread() -> None:
    workers = ThreadPool()
    assert workers.step([], None, number=0, total=0) == []
    workers.close()
