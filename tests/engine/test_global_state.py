"""Numbers that a step knows from Python: what is seen of them, and when they count as changed."""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from paretomtl._support.random_state import host_random_state, isolated_randomness
from paretomtl.engine.global_state import global_numbers, numbers_outside

RATE = 0.5
TABLE: dict[str, Any] = {"rate": 1.0, "name": "x"}


def losses(outputs: Tensor, targets: Tensor) -> Tensor:
    return outputs * RATE * TABLE["rate"] + targets


def test_global_numbers_are_seen_and_set_in_place() -> None:
    found = global_numbers(losses, nn.Linear(1, 1))
    assert dict(found) == {"RATE": 0.5, "TABLE['rate']": 1.0}
    held = TABLE
    found["TABLE['rate']"] = 3.0
    assert held["rate"] == 3.0
    found["TABLE['rate']"] = 1.0


def test_every_place_of_a_number_shows_its_change() -> None:
    """A closure, its lists, tensors of the host, and the object that losses belong to."""
    beta, table, scale = 0.0, [0.0], torch.zeros(())

    def closed(outputs: Tensor, targets: Tensor) -> Tensor:
        return outputs * beta * table[0] * scale

    class Owner:
        gamma = 0.0

        def __init__(self) -> None:
            self.beta = 0.0

        def losses(self, outputs: Tensor, targets: Tensor) -> Tensor:
            return outputs * self.beta

    owner, module = Owner(), nn.Linear(1, 1)
    seen = [numbers_outside(closed, module)]
    beta = 1.0
    seen.append(numbers_outside(closed, module))
    table[0] = 1.0
    seen.append(numbers_outside(closed, module))
    scale.fill_(1.0)
    seen.append(numbers_outside(closed, module))
    assert all(one != other for one, other in itertools.pairwise(seen))
    assert seen[-1] == numbers_outside(closed, module)
    before = numbers_outside(owner.losses, module)
    owner.beta = 1.0
    assert numbers_outside(owner.losses, module) != before


def test_draws_of_the_host_show() -> None:
    with isolated_randomness():
        for draw in (lambda: torch.rand(1), lambda: np.random.rand(), random.random):  # noqa: NPY002
            before = host_random_state()
            assert host_random_state() == before
            draw()
            assert host_random_state() != before
