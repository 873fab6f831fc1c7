"""Where pieces of work are done: what an executor is, and the one that does them here, one after another."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol, Self, TypeAlias

from paretomtl._support.checks import check_count
from paretomtl.engine.device import find_device
from paretomtl.engine.processes import ProcessGroup
from paretomtl.problems import NamedProblem


class Channel(Protocol):
    """What a piece of work has to the process that asked for it."""

    @property
    def stopping(self) -> bool:
        """Whether that process wants the piece to store what there is, and to end."""

    def send(self, message: Any) -> None:
        """Send something to :meth:`JobBatch.on_message`."""

    def fetch(self) -> Any:
        """What :meth:`JobBatch.fetch` has for this piece."""


Work: TypeAlias = Callable[[Any, Any, Channel], Any]
"""A piece of work: of what all pieces have in common, of its own order, and of a link to whoever asked for it."""


class JobBatch:
    """Pieces of work, and who listens to them.

    Args:
        work: what is done for each piece; a function of a module, so that it can be named elsewhere.
        names: of the pieces.
        orders: what each piece alone needs.
        common: what all pieces have in common, which is sent once.
        device: "cpu" or "cuda".
        sent: what ``common`` is made of, by the names that users know, to say what of it cannot be sent.
    """

    def __init__(
        self,
        work: Work,
        names: Sequence[str],
        orders: Sequence[Any],
        common: Any,
        device: str,
        sent: Mapping[str, Any],
    ) -> None:
        self.work = work
        self.names = names
        self.orders = orders
        self.common = common
        self.device = device
        self.sent = sent
        self._stopped = False

    @property
    def stopping(self) -> bool:
        """Whether pieces shall store what there is, and end."""
        return self._stopped

    def stop(self) -> None:
        """Let them."""
        self._stopped = True

    def on_message(self, i: int, message: Any) -> None:
        """Something that piece i told."""

    def fetch(self, i: int) -> Any:
        """What piece i needs where it does not see the files of the run."""

    def on_start(self, i: int, where: Mapping[str, Any]) -> None:
        """Piece i is worked on, in a process that is described."""

    def on_lost(self, i: int, why: str) -> None:
        """The process of piece i is gone; the piece is begun again."""

    def progress_marker(self, i: int) -> Any:
        """How far piece i has come for good; a piece that is lost too often without a change is given up."""

    def poll(self) -> None:
        """Called now and then, while pieces are worked on."""


@dataclass(frozen=True)
class Capacity:
    """What there is to work with.

    Attributes:
        slots: how many pieces are worked on at a time.
        device: "cpu" or "cuda".
    """

    slots: int
    device: str


class Executor(ABC):
    """Where shards of a front are trained, or cells of a study.

    One that has to be started and stopped is so as a context manager, so that several runs can share it; a run that is
    not within starts and stops it itself.

    Attributes:
        shard_size: how many subproblems a shard has; None leaves it to what is measured.
        problem: where workers find the problem, instead of it being sent to them.
    """

    shard_size: int | None = None
    problem: NamedProblem | None = None

    @abstractmethod
    def capacity(self, device: str | None) -> Capacity:
        """What there is for pieces on this device; None for a GPU where there is one."""

    @abstractmethod
    def map(self, jobs: JobBatch) -> Iterator[tuple[int, Any]]:
        """Do all pieces; the number and the result of each, as they end.

        Pieces that have not begun when ``jobs.stopping`` becomes True are left out.
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
        shard_size: how many subproblems a shard has; None for all in one.

    Example:
        >>> import paretomtl as pm
        >>> two = pm.training.SerialExecutor(shard_size=2)
        >>> front = pm.fit(pm.problems.quadratic(), preferences=3, epochs=50, executor=two, progress="quiet")
        >>> len(front), front.complete
        (3, True)
    """

    def __init__(self, shard_size: int | None = None) -> None:
        if shard_size is not None:
            check_count("shard_size", shard_size)
        self.shard_size = shard_size

    def capacity(self, device: str | None) -> Capacity:
        return Capacity(1, str(find_device(device, ProcessGroup())))

    def map(self, jobs: JobBatch) -> Iterator[tuple[int, Any]]:
        for i in range(len(jobs.names)):
            if jobs.stopping:
                return
            jobs.on_start(i, {})
            yield i, jobs.work(jobs.common, jobs.orders[i], _Direct(jobs, i))


class _Direct:
    """A link within one process."""

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
