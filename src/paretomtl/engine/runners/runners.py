"""What takes the steps of a run: launched one by one, or captured once in a CUDA graph and replayed."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from paretomtl.engine.data.batches import Batches, Resident
from paretomtl.engine.global_state import numbers_outside
from paretomtl.engine.history import EpochHistory
from paretomtl.engine.measure import matches_majority
from paretomtl.engine.runners.threads import ThreadPool
from paretomtl.engine.step import Group, StepRecord, split_by_group

_WARM_UP = 3  # steps of a kind that are launched one by one before one is captured

CAPTURABLE = {
    torch.optim.SGD: {"fused": True, "foreach": False},
    torch.optim.Adam: {"fused": True, "foreach": False, "capturable": True},
    torch.optim.AdamW: {"fused": True, "foreach": False, "capturable": True},
    torch.optim.Adamax: {"capturable": True},
    torch.optim.NAdam: {"capturable": True},
    torch.optim.RAdam: {"capturable": True},
    torch.optim.RMSprop: {"capturable": True},
    torch.optim.Adadelta: {"capturable": True},
    torch.optim.Rprop: {"capturable": True},
}
"""Optimizers that can be captured, and the options that let them."""

RATE_ON_DEVICE = (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW)
"""Optimizers whose fused steps read a learning rate in float32 from the device."""


class Runner(ABC):
    """Takes the steps of all groups, and adds what they saw to the trace.

    Args:
        groups: the models.
        train: the batches.
        trace: adds up losses and weights.
        total: how many steps are planned; 0 when that is not known.
        every: how often weights are made anew, in steps.
        workers: how many groups step side by side.
    """

    def __init__(
        self, groups: Sequence[Group], train: Batches, trace: EpochHistory, total: int, every: int, workers: int = 1
    ) -> None:
        self.groups = groups
        self.train = train
        self.trace = trace
        self.total = total
        self.every = every
        self._workers = ThreadPool(workers)

    @abstractmethod
    def epoch(self, seed: int, epoch: int, start: int, number: int) -> Iterator[Any]:
        """What to hand to :meth:`step`, from step ``start`` of an epoch on, when ``number`` steps are done in all."""

    @abstractmethod
    def step(self, item: Any, number: int) -> None:
        """Advance all groups by one step."""

    def finish(self, batch: Any, number: int, done: Sequence[StepRecord]) -> None:
        """Launch a step that the first models have taken already, with the groups of the others."""
        self.take(batch, number, weigh=number % self.every == 0, done=done)

    def take(
        self,
        batch: Any,
        number: int | Tensor,
        *,
        weigh: bool,
        labelled: bool | None = None,
        done: Sequence[StepRecord] = (),
    ) -> None:
        """One step of all groups on a batch, launched here and now; ``done`` is that of the first models, if any."""
        options = {"number": number, "total": self.total, "weigh": weigh, "labelled": labelled}
        taken = [*done, *self._step_all(self.groups[_count(done) :], batch, options)]
        self.trace.add(taken)
        if batch is not None and len(self.groups) > 1:
            self._take_out_unlike(torch.cat([part.counts for part in taken]))

    def close(self) -> None:
        """End the threads that step groups side by side."""
        self._workers.close()

    @property
    def done(self) -> list[StepRecord]:
        """What groups did in a step that failed at another one."""
        return self._workers.taken

    def _step_all(self, groups: Sequence[Group], batch: Any, options: dict[str, Any]) -> list[StepRecord]:
        """What these groups saw and did in one step, in their order."""
        return self._workers.step(groups, batch, **options)

    def _take_out_unlike(self, counts: Tensor) -> None:
        """A task that is NaN for some living models and not for others was not without labels: those models broke."""
        sound = matches_majority(counts, torch.cat([group.active for group in self.groups]))
        for group, mine in zip(self.groups, split_by_group(sound, self.groups), strict=True):
            group.freeze(mine, last_step=True)


class EagerRunner(Runner):
    """Every operation of every step is launched by the host."""

    def epoch(self, seed: int, epoch: int, start: int, number: int) -> Iterator[Any]:
        return self.train.epoch(seed, epoch, start)

    def step(self, item: Any, number: int) -> None:
        self.take(item, number, weigh=number % self.every == 0)


class GraphRunner(Runner):
    """The whole step is captured once and replayed: gathering the batch, the models, the dual, the update, the sums.

    The first steps are launched one by one, as everything that is made once is made there. What a replay reads and
    writes stays where it is: the order of the samples, the place in it, the number of the step, the learning rates.

    Args:
        groups: one stack or several, or ordinary modules; of a plan for captured steps.
        train: tensors on the device.
        trace: adds up losses and weights.
        total: how many steps are planned.
        every: how often weights are made anew, in steps.
        workers: how many groups step side by side, each on a stream of its own.
    """

    def __init__(
        self,
        groups: Sequence[Group],
        train: Resident,
        trace: EpochHistory,
        total: int,
        every: int = 1,
        workers: int = 1,
    ) -> None:
        super().__init__(groups, train, trace, total, every)
        device = train.order.device
        self._resident = train
        self._labelled = train.labelled()
        self._begin = torch.zeros((), dtype=torch.long, device=device)
        self._number = torch.zeros((), dtype=torch.long, device=device)
        self._graphs: dict[tuple[int, bool], torch.cuda.CUDAGraph] = {}
        self._launched: dict[tuple[int, bool], int] = {}
        self._pool = torch.cuda.graph_pool_handle()
        self._stream = _new_stream(device)
        self._sides = [_new_stream(device) for _ in range(min(workers, len(groups)))] if workers > 1 else []
        self._forked = False
        self._rates = [
            [torch.tensor(float(part["lr"]), device=device) for part in group.optimizer.param_groups]
            for group in groups
        ]
        self._known = self._options()
        self._outside = self._numbers_outside()

    def epoch(self, seed: int, epoch: int, start: int, number: int) -> Iterator[Any]:
        if self._labelled and not self.trace.complete():
            self._labelled = False  # from here on with m backward passes, which leave out a task alone
            self._forget()
            self._launched.clear()
        outside = self._numbers_outside()
        if outside != self._outside:  # such as a weight that a callback changes from epoch to epoch
            self._outside = outside
            self._forget()
        self._resident.shuffle(seed, epoch)
        self._begin.fill_(start * self._resident.batch_size)
        self._number.fill_(number)
        return iter(self._resident.sizes()[start:])

    def step(self, item: Any, number: int) -> None:
        kind = (int(item), number % self.every == 0)
        self._follow_options()
        if kind not in self._graphs:
            launched = self._launched.get(kind, 0)
            self._forked = launched > 0  # in the first step, what is made once is made for all before any goes on
            if launched < _WARM_UP:
                self._launched[kind] = launched + 1
                self._stream.wait_stream(torch.cuda.current_stream())
                with torch.cuda.stream(self._stream):
                    self._advance(*kind)
                torch.cuda.current_stream().wait_stream(self._stream)
                return
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, pool=self._pool, stream=self._stream):
                self._advance(*kind)
            self._graphs[kind] = graph
        self._graphs[kind].replay()

    def _forget(self) -> None:
        """Drop what was captured, with its pool: torch refuses to use one again whose graphs are gone."""
        self._graphs.clear()
        self._pool = torch.cuda.graph_pool_handle()

    def _advance(self, size: int, weigh: bool) -> None:
        """One step, with everything it leaves behind written to where it was."""
        part = self._resident.part(self._begin, size)
        kept = [(group.active, group.state, group.weights) for group in self.groups]
        with self._rates_on_device():
            self.take(part, self._number, weigh=weigh, labelled=self._labelled)
        for group, (alive, state, weights) in zip(self.groups, kept, strict=True):
            alive.copy_(group.active)
            if group.state.keys() != state.keys():
                raise ValueError("a method must keep the names of its state, to be captured.")
            for name, tensor in state.items():
                if group.state[name] is not tensor:
                    tensor.copy_(group.state[name])
            group.active, group.state = alive, state
            if weights is not None and group.weights is not None and weights is not group.weights:
                weights.copy_(group.weights)
                group.weights = weights
        self._begin += size
        self._number += 1

    def _numbers_outside(self) -> dict[str, Any]:
        models = self.groups[0].models
        return numbers_outside(models.problem.losses, models.module)

    def _step_all(self, groups: Sequence[Group], batch: Any, options: dict[str, Any]) -> list[StepRecord]:
        if not self._sides or not self._forked:
            return super()._step_all(groups, batch, options)
        here, taken = torch.cuda.current_stream(), []
        for side in self._sides:
            side.wait_stream(here)
        for k, group in enumerate(groups):
            with torch.cuda.stream(self._sides[k % len(self._sides)]):
                taken += self._workers.step([group], batch, **options)
        for side in self._sides:
            here.wait_stream(side)
        return taken

    @contextlib.contextmanager
    def _rates_on_device(self) -> Iterator[None]:
        """Optimizers that can read their learning rate from the device do so: schedulers then need no new capture."""
        parts = [
            (part, rate)
            for group, rates in zip(self.groups, self._rates, strict=True)
            if _reads_rate(group.optimizer)
            for part, rate in zip(group.optimizer.param_groups, rates, strict=True)
        ]
        before = [part["lr"] for part, _ in parts]
        try:
            for part, rate in parts:
                part["lr"] = rate
            yield
        finally:
            for (part, _), rate in zip(parts, before, strict=True):
                part["lr"] = rate

    def _follow_options(self) -> None:
        """Tell the device about new learning rates; forget what was captured with other options of an optimizer."""
        now = self._options()
        if now == self._known:
            return
        for group, rates in zip(self.groups, self._rates, strict=True):
            for part, rate in zip(group.optimizer.param_groups, rates, strict=True):
                rate.fill_(float(part["lr"]))
        if [fixed for fixed, _ in now] != [fixed for fixed, _ in self._known]:
            self._forget()
        self._known = now

    def _options(self) -> list[tuple[dict[str, Any], float]]:
        """The options that a capture holds fast, and the learning rate where it does not."""
        found = []
        for group in self.groups:
            on_device = _reads_rate(group.optimizer)
            for part in group.optimizer.param_groups:
                left_out = ("params", "param_names", "initial_lr", *(["lr"] if on_device else []))
                fixed = {name: value for name, value in part.items() if name not in left_out}
                found.append((fixed, float(part["lr"])))
        return found


def _count(taken: Sequence[StepRecord]) -> int:
    """How many models took a step."""
    return sum(len(part.losses) for part in taken)


def _new_stream(device: torch.device) -> torch.cuda.Stream:
    stream: torch.cuda.Stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
    return stream


def _reads_rate(optimizer: torch.optim.Optimizer) -> bool:
    tensors = [tensor for part in optimizer.param_groups for tensor in part["params"]]
    return isinstance(optimizer, RATE_ON_DEVICE) and all(tensor.dtype == torch.float32 for tensor in tensors)


def make_capturable(optimizer: torch.optim.Optimizer) -> None:
    """Give an optimizer the options that let its step be captured."""
    for part in optimizer.param_groups:
        part.update(CAPTURABLE[type(optimizer)])
