"""Models that step side by side in threads."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from _helpers.networks import MLP, Normed, fit, lenet_problem, problem
from _helpers.thread_counts import same, threads
from paretomtl._support.files.atomic_files import read_json
from paretomtl.engine.runners.threads import ThreadPool, share_of
from paretomtl.problems import cross_entropies


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


@pytest.mark.study
def test_a_network_with_threads_of_its_own_computes_as_with_its_share_of_them() -> None:
    with threads(4):
        side = fit(lenet_problem(), preferences=2, strategy="sequential", workers=2)
        assert torch.get_num_threads() == 4
    with threads(share_of(4, 2)):
        alone = fit(lenet_problem(), preferences=2, strategy="sequential")
    assert same(side, alone)


def test_shares_of_threads() -> None:
    assert [share_of(16, count) for count in (1, 3, 16, 25)] == [16, 5, 1, 1]


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


def test_bad_numbers_of_workers_are_refused() -> None:
    with pytest.raises(ValueError, match="'workers' must be a whole number"):
        fit(workers=0)
    with pytest.raises(ValueError, match="'workers' must be left out"):
        fit(strategy="batched", workers=2)


def test_results_come_in_order_up_to_the_wave_that_fails() -> None:
    pool, results = ThreadPool(2), list[int]()
    assert pool.map(lambda k: k * k, 5, []) == [0, 1, 4, 9, 16]
    with pytest.raises(ZeroDivisionError):
        pool.map(lambda k: k // (k - 3), 5, results)
    assert results == [0, -1], "those of the first wave"
    pool.close()
