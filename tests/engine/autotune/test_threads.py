"""Trials of models side by side: what keeps them from it, and what they are compared with."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from _helpers.networks import Dropped, fit, problem
from _helpers.thread_counts import same, threads
from paretomtl._support.files.atomic_files import read_json
from paretomtl.engine.autotune import choose
from paretomtl.engine.autotune import threads as threads_trial
from paretomtl.engine.autotune.trial import Trial
from paretomtl.problems import cross_entropies


def test_models_that_draw_take_turns() -> None:
    one, two = (fit(problem(Dropped), strategy="sequential", workers=count) for count in (1, 2))
    assert "not side by side" in two.strategy
    assert "random numbers" in two.strategy
    assert same(one, two)


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
    monkeypatch.setattr(threads_trial, "_SHORT", 0.0)
    with threads(2):
        assert "ms with 2 models side by side" in fit().strategy
        assert "side by side" not in fit(workers=1).strategy
    with threads(1):
        assert "side by side" not in fit().strategy
