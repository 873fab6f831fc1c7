"""A job on a Ray worker: its messages, its errors, and the versions that must match those of the run.

Messages of workers go through one actor, on the machine of the process that started the run.
"""

from __future__ import annotations

import os
import platform
import socket
import sys
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from paretomtl._support.files.paths import is_in_package
from paretomtl._support.imports.optional_packages import require, version_of

_FETCH_SECONDS = 0.2  # between polls for the answer


@dataclass(frozen=True)
class Failure:
    """An error in a job, as it can be sent: one of this library's about its input, or any other."""

    kind: str
    text: str
    trace: str
    ours: bool

    def raise_(self, name: str) -> None:
        """Raise the error here, with what is known about its origin."""
        known: dict[str, type[Exception]] = {
            kind.__name__: kind for kind in (ValueError, TypeError, IndexError, OSError, ModuleNotFoundError)
        }
        if self.ours:
            raise known.get(self.kind, ValueError)(self.text)
        raise RuntimeError(f"shard {name} failed on its worker:\n{self.trace}")


def board_class() -> type:
    """The class of the actor that relays messages of jobs.

    A class within a function is sent by its code, so that the actor need not import torch.
    """

    class Board:
        def __init__(self) -> None:
            self._messages: list[tuple[int, int, str, Any]] = []
            self._answers: dict[tuple[int, int], Any] = {}
            self._stopping: set[int] = set()

        def put(self, number: int, i: int, kind: str, message: Any) -> bool:
            """Store a message of job i of a round; return whether that round is asked to stop."""
            self._messages.append((number, i, kind, message))
            return number in self._stopping

        def take(self, number: int, stopping: bool) -> list[tuple[int, str, Any]]:
            """Take all new messages of a round; those of earlier rounds are dropped."""
            self._stopping = {number} if stopping else set()
            messages, self._messages = self._messages, []
            return [(i, kind, message) for sender, i, kind, message in messages if sender == number]

        def answer(self, number: int, i: int, content: Any) -> None:
            """Store the answer that a job fetches."""
            self._answers[number, i] = content

        def fetched(self, number: int, i: int) -> tuple[bool, Any]:
            """Whether there is an answer for a job yet, and the answer."""
            there = (number, i) in self._answers
            return there, self._answers.pop((number, i), None)

    return Board


class _BoardChannel:
    """A channel from a worker through the board. It waits only for the last message."""

    def __init__(self, ray: Any, board: Any, place: tuple[int, int]) -> None:
        self._ray, self._board, self._place = ray, board, place
        self._last: Any = None
        self._stopping = False

    @property
    def stopping(self) -> bool:
        self._look()
        return self._stopping

    def send(self, message: Any, kind: str = "message") -> None:
        self._look()  # at the reply to the last message, which has arrived by now
        self._last = self._board.put.remote(*self._place, kind, message)

    def _look(self) -> None:
        if self._last is not None and self._ray.wait([self._last], timeout=0)[0]:
            self._stopping |= bool(self._ray.get(self._last))

    def fetch(self) -> Any:
        self.send(None, "fetch")
        while not (answer := self._ray.get(self._board.fetched.remote(*self._place)))[0]:
            time.sleep(_FETCH_SECONDS)
        return answer[1]

    def wait(self) -> None:
        """Wait until all messages are delivered."""
        if self._last is not None:
            self._ray.get(self._last)


def run_job(
    config: list[Any],
    call: Any,
    place: tuple[int, int],
    board: Any,
    threads: int,
    paths: list[str],
    expected: Mapping[str, str],
) -> Any:
    """Run one job on a worker, with its share of the threads.

    Args:
        config: the reference of the configuration of all jobs; in a list, because Ray would resolve it before the
            versions are known to be the same.
        call: the function of the job, and its own input.
        place: the numbers of the round and of the job.
        board: where messages go.
        threads: of torch.
        paths: the module search path of the process that started the run.
        expected: the versions of that process.
    """
    ray = require("ray", "ray")
    channel = _BoardChannel(ray, board, place)
    channel.send({"host": socket.gethostname(), "pid": os.getpid()}, "began")
    try:
        check_versions(expected, versions())
        sys.path.extend(path for path in paths if path not in sys.path and Path(path).exists())
        torch.set_num_threads(threads)
        function, own_input = call
        result = function(ray.get(config[0]), own_input, channel)
    except Exception as error:
        return failure(error)
    finally:
        channel.wait()
    return result


def failure(error: Exception) -> Failure:
    """An error in a form that can be sent, whatever it holds."""
    if type(error).__name__ == "RaySystemError" or isinstance(error, ModuleNotFoundError):
        return Failure("ValueError", f"'problem' must be found on the workers. {remedy(error)}", "", True)
    last = traceback.extract_tb(error.__traceback__)[-1].filename
    trace = "".join(traceback.format_exception(error))
    return Failure(type(error).__name__, str(error), trace, is_in_package(last))


def remedy(error: Exception) -> str:
    """A text on the module that a worker lacks, and how to install it."""
    missing = next((line for line in reversed(str(error).splitlines()) if "No module named" in line), str(error))
    return (
        f"Got {missing.strip()} Install it on every worker, with this library, or start Ray there with a PYTHONPATH "
        "that has it."
    )


def versions() -> dict[str, str]:
    """The versions that must match between this process and a worker."""
    python = ".".join(platform.python_version_tuple()[:2])
    return {"python": python, "torch": version_of("torch").split("+")[0], "paretomtl": version_of("paretomtl")}


def check_versions(expected: Mapping[str, str], installed: Mapping[str, str]) -> None:
    """Refuse a worker with other versions than the process that started the run."""
    for name, wanted in expected.items():
        if installed.get(name) != wanted:
            raise ValueError(
                f"'workers' must have the versions of the process that starts the run: {name} {wanted}. Got "
                f"{name} {installed.get(name)} on {socket.gethostname()}: install the same on all of them."
            )
