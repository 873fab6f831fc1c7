"""Steps whose operations are launched one by one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from paretomtl.engine.runners.base import Runner


class EagerRunner(Runner):
    """Every operation of every step is launched by the host."""

    def epoch(self, seed: int, epoch: int, start: int, number: int) -> Iterator[Any]:
        return self.train.epoch(seed, epoch, start)

    def step(self, item: Any, number: int) -> None:
        self.run_step(item, number, weigh=number % self.every == 0)
