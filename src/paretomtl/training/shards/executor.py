"""Executors: where jobs run. The serial one runs them in this process, one after another."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol, Self, TypeAlias

from paretomtl._support.argument_checks import check_count
from paretomtl.engine.device import find_device
from paretomtl.engine.processes import ProcessGroup
from paretomtl.problems import NamedProblem


class Channel(Protocol):
    """The connection of a job to the process that started it."""

    @property
    def stopping(self) -> bool:
        """Whether that process asks the job to store its progress and end."""

    def send(self, message: Any) -> None:
        """Send something to :meth:`JobBatch.on_message`."""

    def fetch(self) -> Any:
        """Fetch the result of :meth:`JobBatch.fetch` for this job."""


JobFunction: TypeAlias = Callable[[Any, Any, Channel], Any]
"""A job: a function of the configuration of all jobs, of its own input, and of a channel."""


class JobBatch:
    """Jobs for an executor, and the process that listens to them.

    An executor calls :meth:`on_start` when a job begins, :meth:`on_message` with its messages, :meth:`poll`
    periodically while jobs run, and reads :attr:`stopping`. One whose jobs run elsewhere also calls :meth:`fetch` and
    :meth:`on_lost`.

    Args:
        function: called for each job; a function of a module, so that workers can import it.
        names: of the jobs.
        inputs: the input of each job.
        config: the configuration of all jobs, which is sent once.
        device: "cpu" or "cuda".
        config_parts: the parts of ``config``, by the names that users know: an error names the part that cannot be
            sent.
    """

    def __init__(
        self,
        function: JobFunction,
        names: Sequence[str],
        inputs: Sequence[Any],
        config: Any,
        device: str,
        config_parts: Mapping[str, Any],
    ) -> None:
        self.function = function
        self.names = names
        self.inputs = inputs
        self.config = config
        self.device = device
        self.config_parts = config_parts
        self._stopped = False

    @property
    def stopping(self) -> bool:
        """Whether jobs are asked to store their progress and end."""
        return self._stopped

    def stop(self) -> None:
        """Ask all jobs to store their progress and end."""
        self._stopped = True

    def on_start(self, i: int, where: Mapping[str, Any]) -> None:
        """Handle the start of job i, in the process that ``where`` describes."""

    def on_message(self, i: int, message: Any) -> None:
        """Handle a message of job i."""

    def fetch(self, i: int) -> Any:
        """The files that job i needs if it does not see those of the run."""

    def on_lost(self, i: int, why: str) -> Any:
        """Handle the death of the process of job i.

        Returns:
            A marker of the progress that job i has stored. The job is retried, unless it is lost too often without a
            change of the marker.
        """

    def poll(self) -> None:
        """Do periodic work while jobs run."""


@dataclass(frozen=True)
class Capacity:
    """How many jobs an executor runs at a time, and on which device.

    Attributes:
        slots: how many jobs run at a time.
        device: "cpu" or "cuda".
    """

    slots: int
    device: str


class Executor(ABC):
    """Runs jobs: shards of a front, runs of a comparison, cells of a study.

    An executor that has to be started and stopped is a context manager, so that several runs can share it. A run
    outside of the context starts and stops it.

    Attributes:
        shard_size: how many models a shard has; None decides by a measurement.
        problem: where workers find the problem; None sends it to them.
    """

    shard_size: int | None = None
    problem: NamedProblem | None = None

    @abstractmethod
    def capacity(self, device: str | None) -> Capacity:
        """The capacity for jobs on this device; None for a GPU if there is one."""

    @abstractmethod
    def map(self, jobs: JobBatch) -> Iterator[tuple[int, Any]]:
        """Run all jobs, and yield the number and the result of each as it ends.

        Jobs that have not begun when ``jobs.stopping`` becomes True are left out.
        """

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None


class SerialExecutor(Executor):
    """One shard after another, in this process: the same shards, files and front as on a cluster.

    A run in shards that is resumed without an executor goes on this way.

    Args:
        shard_size: how many models a shard has; None for all in one.

    Example:
        >>> import paretomtl as pm
        >>> two = pm.training.SerialExecutor(shard_size=2)
        >>> front = pm.fit(pm.problems.quadratic(), preferences=3, epochs=50, executor=two, progress="quiet")
        >>> len(front), front.complete
        (3, True)
    """

    def __init__(self, shard_size: int | None = None) -> None:
        if shard_size is not None:
            shard_size = check_count("shard_size", shard_size)
        self.shard_size = shard_size

    def capacity(self, device: str | None) -> Capacity:
        return Capacity(1, str(find_device(device, ProcessGroup())))

    def map(self, jobs: JobBatch) -> Iterator[tuple[int, Any]]:
        for i in range(len(jobs.names)):
            if jobs.stopping:
                return
            jobs.on_start(i, {})
            yield i, jobs.function(jobs.config, jobs.inputs[i], _DirectChannel(jobs, i))


class _DirectChannel:
    """A channel within one process."""

    def __init__(self, jobs: JobBatch, i: int) -> None:
        self._jobs = jobs
        self._i = i

    @property
    def stopping(self) -> bool:
        return self._jobs.stopping

    def send(self, message: Any) -> None:
        self._jobs.on_message(self._i, message)
        self._jobs.poll()

    def fetch(self) -> Any:
        return self._jobs.fetch(self._i)
