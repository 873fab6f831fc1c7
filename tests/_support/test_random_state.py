from __future__ import annotations

import multiprocessing
import threading
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
import torch

from _helpers.networks import Dropped, fit, problem
from paretomtl._support.random_state import isolated_randomness, seed_everything


def test_fits_in_two_threads_do_not_change_each_other() -> None:
    """Dropout draws from the global random state, which all threads share."""
    barrier = threading.Barrier(2)

    def train(seed: int, *, wait: bool = True) -> torch.Tensor:
        if wait:
            barrier.wait()
        return fit(problem(Dropped), seed=seed, epochs=6, strategy="sequential").losses["train"]

    alone = [train(seed, wait=False) for seed in range(2)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with ThreadPoolExecutor(2) as pool:
            together = list(pool.map(train, range(2)))
    for one, other in zip(alone, together, strict=True):
        assert torch.equal(one, other)


def test_a_model_made_in_another_thread_does_not_change_a_run() -> None:
    entered, done = threading.Event(), threading.Event()

    def slow() -> Dropped:
        if threading.current_thread() is not threading.main_thread():
            entered.set()
            done.wait()
        return Dropped()

    front = fit(problem(slow), epochs=1, strategy="sequential")
    maker = threading.Thread(target=front.model, args=(0,))

    def make(report: Any) -> None:
        """Let the thread come between two epochs of the run, if it can."""
        if report.epoch == 1:
            maker.start()
            entered.wait(0.2)

    options: dict[str, Any] = {"epochs": 4, "strategy": "sequential"}
    alone = fit(problem(Dropped), **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        beside = fit(problem(Dropped), callbacks=[make], **options)
        done.set()
        maker.join()
    assert torch.equal(alone.losses["train"], beside.losses["train"])


@contextmanager
def turn_taken() -> Iterator[threading.Event]:
    """Another thread has isolated randomness, until the event is set, or the block ends."""
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with isolated_randomness():
            held.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    try:
        yield done
    finally:
        done.set()
        thread.join()


def test_a_thread_that_waits_says_so() -> None:
    with turn_taken() as done:
        threading.Timer(0.05, done.set).start()
        with pytest.warns(UserWarning, match="another thread of this process trains"), isolated_randomness():
            pass


def test_a_fit_inside_of_a_fit_needs_no_turn() -> None:
    fronts: list[Any] = []
    fit(epochs=1, callbacks=[lambda report: fronts.append(fit(epochs=1))])
    assert fronts[0].complete


def _draw(queue: Any) -> None:
    with isolated_randomness():
        seed_everything(0)
        queue.put(torch.rand(()).item())


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="processes are not forked here")
def test_a_child_process_does_not_wait_for_threads_of_its_parent() -> None:
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    with turn_taken(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Python, about forks beside threads
        child = context.Process(target=_draw, args=(queue,))
        child.start()
        child.join(60)
    assert child.exitcode == 0
