"""The executor that runs jobs on Ray workers, and retries them when a worker dies.

Ray places jobs, and this library retries them itself: Ray's own retries do not know about checkpoints. A job is given
up only if it is lost several times without a new checkpoint, however long a run lasts.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any, Self

from paretomtl._support.argument_checks import check_count, check_not_negative, quote
from paretomtl._support.imports.optional_packages import require
from paretomtl.problems import NamedProblem
from paretomtl.training.shards.executor import Capacity, Executor, JobBatch
from paretomtl.training.shards.ray.cluster import connect, resources_of
from paretomtl.training.shards.ray.worker import Failure, board_class, remedy, run_job, versions

_POLL_SECONDS = 0.2  # between polls for messages of workers
_CHECK_SECONDS = 5.0  # between checks that a worker is large enough
_STOP_SECONDS = 60.0  # how long shards have to store a checkpoint when a run is stopped


class RayExecutor(Executor):
    """Trains shards on the workers of `Ray <https://docs.ray.io>`_ (extra ``ray``).

    Shards are retried when their workers die, on any other worker, from their last checkpoints. Workers may come and
    go: Ray places every shard when a worker is free.

    Args:
        address: of a cluster, such as ``"10.0.0.1:6379"``, or ``"auto"`` for the one that this machine belongs to. None
            uses the one that this process is connected to, or starts Ray on this machine and stops it at the end.
        cpus: of each shard, and the number of its torch threads.
        gpus: of each shard; None for one if the cluster has any and training is not on the CPU. A share such as 0.5
            puts two shards on one GPU.
        workers: how many shards are trained at a time; None for as many as the workers can hold.
        shard_size: how many models a shard has; None decides by a measurement.
        retries: how many times in a row a shard may lose its worker without storing a checkpoint in between.
        timeout: seconds to wait for an answer of the cluster, and for a worker that is large enough.
        problem: ``package.module:attribute`` or a :class:`~paretomtl.problems.NamedProblem`, where workers find the
            problem themselves; None sends it to them.

    Example:
        .. code-block:: python

            with pm.RayExecutor(cpus=2) as executor:
                front = pm.fit(problem, preferences=25, epochs=10, out="runs/first", executor=executor)
    """

    def __init__(
        self,
        address: str | None = None,
        *,
        cpus: int = 1,
        gpus: float | None = None,
        workers: int | None = None,
        shard_size: int | None = None,
        retries: int = 3,
        timeout: float = 60.0,
        problem: str | NamedProblem | None = None,
    ) -> None:
        cpus = check_count("cpus", cpus)
        if gpus is not None and not gpus >= 0:
            raise ValueError(f"'gpus' must not be negative. Got {quote(gpus)} instead.")
        workers = None if workers is None else check_count("workers", workers)
        shard_size = None if shard_size is None else check_count("shard_size", shard_size)
        retries = check_not_negative("retries", retries)
        if not timeout > 0:
            raise ValueError(f"'timeout' must be positive. Got {quote(timeout)} instead.")
        self.address = address
        self.shard_size = shard_size
        self.problem = NamedProblem(problem) if isinstance(problem, str) else problem
        self._cpus, self._gpus, self._workers, self._retries = cpus, gpus, workers, retries
        self._timeout = timeout
        self._depth = 0
        self._own = False
        self._ray: Any = None
        self._board: Any = None
        self._rounds = 0

    def __enter__(self) -> Self:
        if self._depth == 0:
            self._ray = require("ray", "ray")
            self._own = connect(self._ray, self.address, self._timeout)
        self._depth += 1
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._depth -= 1
        if self._depth:
            return
        if self._board is not None:
            self._ray.kill(self._board)
            self._board = None
        if self._own:
            self._ray.shutdown()

    def capacity(self, device: str | None) -> Capacity:
        if device not in (None, "cpu", "cuda"):
            raise ValueError(f'\'device\' must be "cpu" or "cuda" on Ray workers. Got {quote(device)} instead.')
        with self:
            on_gpu = device == "cuda" or (device is None and self._gpus != 0 and self._has_gpus())
            kind = "cuda" if on_gpu else "cpu"
            slots = self._wait_for_slots(kind)
            return Capacity(slots if self._workers is None else min(slots, self._workers), kind)

    def map(self, jobs: JobBatch) -> Iterator[tuple[int, Any]]:
        with self:
            self._wait_for_slots(jobs.device)
            yield from _Round(self._ray, jobs, self._resources(jobs.device), self._send(jobs), self).results()

    def _open_board(self) -> tuple[Any, int]:
        """The actor that relays messages, and the number of a new round of jobs."""
        if self._board is None:
            here = self._ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
                self._ray.get_runtime_context().get_node_id(), soft=True
            )
            actor = self._ray.remote(num_cpus=0, max_restarts=-1, max_task_retries=-1, scheduling_strategy=here)
            self._board = actor(board_class()).remote()
        self._rounds += 1
        return self._board, self._rounds

    def _has_capacity(self, device: str, since: float) -> bool:
        """Whether a worker is large enough, busy or not; raise an error if none has been for too long."""
        if self._slots(device):
            return True
        if time.monotonic() - since > self._timeout:
            raise self._too_small(device)
        return False

    def _resources(self, device: str) -> dict[str, float]:
        """The resources that each job requests of Ray."""
        gpus = (1.0 if self._gpus is None else self._gpus) if device == "cuda" else 0.0
        if device == "cuda" and gpus == 0:
            raise ValueError("'gpus' must be positive to train on \"cuda\". Got 0 instead.")
        return {"CPU": self._cpus, "GPU": gpus}

    def _has_gpus(self) -> bool:
        return any(resources.get("GPU", 0) > 0 for resources in resources_of(self._ray))

    def _slots(self, device: str) -> int:
        requested = {name: amount for name, amount in self._resources(device).items() if amount}
        return sum(
            min(int(resources.get(name, 0) / amount) for name, amount in requested.items())
            for resources in resources_of(self._ray)
        )

    def _wait_for_slots(self, device: str) -> int:
        began = time.monotonic()
        while not (slots := self._slots(device)):
            if self._own or time.monotonic() - began > self._timeout:  # no worker joins a local Ray
                raise self._too_small(device)
            time.sleep(min(1.0, self._timeout))
        return slots

    def _too_small(self, device: str) -> ValueError:
        requested = self._resources(device)
        available = [f"{r.get('CPU', 0):g} CPUs and {r.get('GPU', 0):g} GPUs" for r in resources_of(self._ray)]
        return ValueError(
            f"'cpus' and 'gpus' must be what one worker has. Got {requested['CPU']:g} and {requested['GPU']:g}; the "
            f"workers have {'; '.join(sorted(set(available))) or 'nothing'}. Ask for less, or start a larger one."
        )

    def _send(self, jobs: JobBatch) -> Any:
        """Put the configuration of all jobs into Ray's object store; an error names the part that cannot be sent."""
        try:
            return self._ray.put(jobs.config)
        except Exception as error:
            for name, value in jobs.config_parts.items():
                try:
                    self._ray.put(value)
                except Exception as inner:
                    raise self._unsendable(name, inner) from None
            raise self._unsendable("problem", error) from None

    def _unsendable(self, name: str, error: Exception) -> ValueError:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        reason = next((line for line in lines if "pickle" in line), lines[0] if lines else type(error).__name__)
        return ValueError(
            f"'{name}' must be something that can be sent to workers. Got: {reason.rstrip(':.')}. Let "
            "workers find the problem themselves, in a module that they can import: RayExecutor(problem="
            '"package.module:attribute"), or paretomtl run package.module:attribute --ray.'
        )


class _Round:
    """A batch of jobs on a cluster, until all are done."""

    def __init__(
        self, ray: Any, jobs: JobBatch, resources: Mapping[str, float], config: Any, executor: RayExecutor
    ) -> None:
        self._ray, self._jobs, self._config, self._executor = ray, jobs, config, executor
        self._board, self._number = executor._open_board()
        self._run_job = ray.remote(num_cpus=resources["CPU"], num_gpus=resources["GPU"], max_retries=0)(run_job)
        self._threads = int(resources["CPU"])
        self._waiting = deque(range(len(jobs.names)))
        self._running: dict[Any, int] = {}
        self._begun: set[int] = set()
        self._losses: dict[int, tuple[Any, int]] = {}
        self._had_capacity = self._checked = time.monotonic()
        self._stopped = float("inf")

    def results(self) -> Iterator[tuple[int, Any]]:
        """The results of jobs, as they end."""
        try:
            while self._running or (self._waiting and not self._jobs.stopping):
                self._submit()
                done, _ = self._ray.wait(list(self._running), num_returns=1, timeout=_POLL_SECONDS)
                self._receive()
                for ref in done:
                    i = self._running.pop(ref)
                    self._begun.discard(i)
                    ended, result = self._result(ref, i)
                    if ended:
                        yield i, result
                self._check_workers()
                self._jobs.poll()
        finally:
            for ref in self._running:
                self._ray.cancel(ref, force=True)

    def _submit(self) -> None:
        """Submit jobs to Ray; when the run is stopped, cancel those that have not begun."""
        if self._jobs.stopping:
            self._waiting.clear()
            self._stopped = min(self._stopped, time.monotonic())
            late = time.monotonic() - self._stopped > _STOP_SECONDS
            for ref in [ref for ref, i in self._running.items() if late or i not in self._begun]:
                self._ray.cancel(ref, force=True)
            return
        most = self._executor._workers or len(self._jobs.names)
        while self._waiting and len(self._running) < most:
            i = self._waiting.popleft()
            call = self._jobs.function, self._jobs.inputs[i]
            ref = self._run_job.remote(
                [self._config], call, (self._number, i), self._board, self._threads, sys.path, versions()
            )
            self._running[ref] = i

    def _receive(self) -> None:
        """Take the new messages of jobs, and tell jobs whether to stop."""
        for i, kind, message in self._ray.get(self._board.take.remote(self._number, self._jobs.stopping)):
            if kind == "began":
                self._begun.add(i)
                self._jobs.on_start(i, message)
            elif kind == "fetch":
                self._board.answer.remote(self._number, i, self._jobs.fetch(i))
            else:
                self._jobs.on_message(i, message)

    def _result(self, ref: Any, i: int) -> tuple[bool, Any]:
        """Whether a job ended, and its result; one whose worker died waits to be retried."""
        errors, name = self._ray.exceptions, self._jobs.names[i]
        try:
            result = self._ray.get(ref)
        except errors.TaskCancelledError:
            return False, None
        except errors.RayTaskError as error:  # before the job itself began
            raise ValueError(f"'workers' must be able to begin shard {name}. {remedy(error)}") from None
        except errors.RayError as error:
            if self._jobs.stopping:
                return False, None
            self._retry(i, type(error).__name__)
            return False, None
        if isinstance(result, Failure):
            result.raise_(name)
        return True, result

    def _retry(self, i: int, why: str) -> None:
        """Queue a lost job again, unless it has been lost too often without progress."""
        marker = self._jobs.on_lost(i, why)
        before, times = self._losses.get(i, (marker, 0))
        times = times + 1 if before == marker else 1
        self._losses[i] = marker, times
        if times > self._executor._retries:
            raise RuntimeError(
                f"shard {self._jobs.names[i]} lost its worker {times} times in a row ({why}), and stored no checkpoint "
                "in between. Where memory is short, fewer 'workers' or a smaller 'shard_size' may help; a shorter "
                "'checkpoint_seconds' may, too. What is done is stored, and resume=True goes on."
            )
        self._waiting.append(i)

    def _check_workers(self) -> None:
        """Raise an error if jobs wait for a worker that is gone, and no other one comes."""
        now = time.monotonic()
        if now - self._checked < _CHECK_SECONDS:
            return
        self._checked = now
        if self._begun or self._executor._has_capacity(self._jobs.device, self._had_capacity):
            self._had_capacity = now
