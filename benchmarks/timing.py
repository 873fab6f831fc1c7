"""Calls that take turns, so that other work on the machine affects all of them alike. A helper, not a benchmark."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

import torch

ROUNDS, WARM_UP = 60, 10


def take_turns(
    calls: dict[str, Callable[[], Any]], device: str, rounds: int = ROUNDS, warm_up: int = WARM_UP
) -> dict[str, list[float]]:
    """Milliseconds of every call in every round; the order is random, so that no call always follows the same one."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    chance = random.Random(0)
    for turn in range(warm_up + rounds):
        for name in chance.sample(list(calls), len(calls)):
            began = time.perf_counter()
            calls[name]()
            if device == "cuda":
                torch.cuda.synchronize()
            if turn >= warm_up:
                times[name].append(1e3 * (time.perf_counter() - began))
    return times
