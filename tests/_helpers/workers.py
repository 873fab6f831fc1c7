"""Problems for workers in other processes, which find them by name."""

from __future__ import annotations

import functools
import os
import signal
import threading
import time
from collections.abc import Collection
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import paretomtl as pm
from _helpers.networks import MLP, classes
from paretomtl.problems import cross_entropies

_FATAL = 12  # of 18 steps and few checks


class Slow(MLP):
    """Slow steps that are counted in a file, one byte each; some models kill their process, once, at a step of theirs.

    A model is known by its ``mark``, which is random, and the same after a restart. The count of each model has a file
    of its own, which one process writes at a time, so that the step does not depend on other processes.
    """

    mark: Tensor

    def __init__(self, seconds: float, counted: Path | None, deadly: Collection[float]) -> None:
        super().__init__()
        self.seconds, self.counted, self.deadly = seconds, counted, deadly
        self.register_buffer("mark", torch.rand(()))

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        if self.training and torch.is_grad_enabled():
            time.sleep(self.seconds)
            if self.counted is not None:
                count(self.counted)
                mark = float(self.mark)
                if mark in self.deadly and count(self.counted.with_suffix(f".{mark}")) == _FATAL:
                    os.kill(os.getpid(), signal.SIGKILL)
        return super().forward(x)


def count(path: Path) -> int:
    """Append a byte to a file, and return its new length."""
    with path.open("ab") as file:
        file.write(b".")
        return file.tell()


class Dying(MLP):
    """Ends its process, unless that is process ``home``."""

    def __init__(self, home: int) -> None:
        super().__init__()
        self.home = home

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        if os.getpid() != self.home:
            self.end()
        return super().forward(x)

    def end(self) -> None:
        os._exit(1)


class Failing(Dying):
    """Raises an error there, as user code may."""

    def end(self) -> None:
        raise LookupError("a bug of the user's")


def slow(seconds: float = 0.0, counted: Path | None = None, deadly: Collection[float] = ()) -> pm.Problem:
    make = functools.partial(Slow, seconds, counted, deadly)
    return pm.Problem(make, cross_entropies, ["a", "b"], train=classes(), val=classes(50, seed=1))


def unsendable(**fields: Any) -> pm.Problem:
    """A problem that holds a lock, which cannot be sent to another process."""
    lock = threading.Lock()

    def losses(outputs: Any, targets: Tensor) -> Tensor:
        with lock:
            return cross_entropies(outputs, targets)

    return pm.Problem(MLP, losses, ["a", "b"], train=classes(), **fields)
