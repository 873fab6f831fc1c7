"""Steps that are captured once in a CUDA graph, and replayed.

A captured step reads and writes fixed memory: the order of the samples and the position in it, the step number,
learning rates, the state of the method, the sums of the history. The first three steps of a kind are launched eagerly,
which creates all lazy objects; they are steps of the run, so nothing has to be undone. Schedulers see plain numbers,
and the device gets a new value when one changes.

Each ordinary module is captured on its own stream, which forks from the stream of the capture and joins it again. The
first step of a kind runs on one stream: lazily created objects must exist before another stream reads them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import torch

from paretomtl.engine.batches.indexed import ResidentBatches
from paretomtl.engine.global_state import numbers_outside
from paretomtl.engine.history import EpochHistory
from paretomtl.engine.model_group import Group
from paretomtl.engine.optimizers import reads_rate_on_device
from paretomtl.engine.runners.eager import EagerRunner
from paretomtl.engine.step import Run, StepInput, run_in_order

T = TypeVar("T")

_WARM_UP = 3  # steps of a kind that are launched one by one before one is captured


class GraphRunner(EagerRunner):
    """Captures the whole step once and replays it: gathering the batch, the models, the dual, the update, the sums.

    Args:
        groups: one stack or several, or ordinary modules, made for captured steps.
        train: tensors on the device.
        history: adds up losses and weights.
        total: how many steps are planned.
        every: how often the method is asked for new weights, in steps.
        workers: how many groups step side by side, each on its own stream.
    """

    def __init__(
        self,
        groups: Sequence[Group],
        train: ResidentBatches,
        history: EpochHistory,
        total: int,
        every: int = 1,
        workers: int = 1,
    ) -> None:
        super().__init__(groups, train, history, total, every)
        device = train.order.device
        self._resident = train
        self._labelled = train.labelled()
        self._begin = torch.zeros((), dtype=torch.long, device=device)
        self._number = torch.zeros((), dtype=torch.long, device=device)
        self._graphs: dict[tuple[int, bool], torch.cuda.CUDAGraph] = {}
        self._launched: dict[tuple[int, bool], int] = {}
        self._memory_pool = torch.cuda.graph_pool_handle()
        self._stream = _new_stream(device)
        self._side_streams = [_new_stream(device) for _ in range(min(workers, len(groups)))] if workers > 1 else []
        self._forked = False
        self._rates = [
            [torch.tensor(float(part["lr"]), device=device) for part in group.optimizer.param_groups]
            for group in groups
        ]
        self._known_options = self._options()
        self._known_numbers = self._numbers_outside()

    def epoch(self, seed: int, epoch: int, start: int, number: int) -> Iterator[Any]:
        if self._labelled and not self.history.complete():
            self._labelled = False  # from here on with m backward passes, which leave out a task alone
            self._drop_graphs()
            self._launched.clear()
        outside = self._numbers_outside()
        if outside != self._known_numbers:  # such as a weight that a callback changes from epoch to epoch
            self._known_numbers = outside
            self._drop_graphs()
        self._resident.shuffle(seed, epoch)
        self._begin.fill_(start * self._resident.batch_size)
        self._number.fill_(number)
        return iter(self._resident.sizes()[start:])

    def step(self, item: Any, number: int) -> None:
        kind = (int(item), number % self.every == 0)
        self._update_options()
        if kind not in self._graphs:
            launched = self._launched.get(kind, 0)
            self._forked = launched > 0  # the first step creates lazy objects, on one stream
            if launched < _WARM_UP:
                self._launched[kind] = launched + 1
                self._stream.wait_stream(torch.cuda.current_stream())
                with torch.cuda.stream(self._stream):
                    self._advance(*kind)
                torch.cuda.current_stream().wait_stream(self._stream)
                return
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, pool=self._memory_pool, stream=self._stream):
                self._advance(*kind)
            self._graphs[kind] = graph
        self._graphs[kind].replay()

    def _drop_graphs(self) -> None:
        """Drop all graphs and their pool: torch refuses to reuse a pool whose graphs are gone."""
        self._graphs.clear()
        self._memory_pool = torch.cuda.graph_pool_handle()

    def _advance(self, size: int, weigh: bool) -> None:
        """Take one step, and write its results back in place."""
        part = self._resident.part(self._begin, size)
        before = [(group.active, group.state, group.weights) for group in self.groups]
        with self._rates_on_device():
            self.launch(StepInput(part, self._number, self.total, weigh, self._labelled))
        for group, (active, state, weights) in zip(self.groups, before, strict=True):
            active.copy_(group.active)
            if group.state.keys() != state.keys():
                raise ValueError("a method must keep the names of its state, to be captured.")
            for name, tensor in state.items():
                if group.state[name] is not tensor:
                    tensor.copy_(group.state[name])
            group.active, group.state = active, state
            if weights is not None and group.weights is not None and weights is not group.weights:
                weights.copy_(group.weights)
                group.weights = weights
        self._begin += size
        self._number += 1

    def _numbers_outside(self) -> dict[str, Any]:
        models = self.groups[0].models
        return numbers_outside(models.problem.losses, models.module)

    @property
    def _run(self) -> Run:
        return self._run_on_streams if self._side_streams and self._forked else run_in_order

    def _run_on_streams(self, function: Callable[[int], T], count: int, results: list[T]) -> list[T]:
        here = torch.cuda.current_stream()
        for side in self._side_streams:
            side.wait_stream(here)
        for k in range(count):
            with torch.cuda.stream(self._side_streams[k % len(self._side_streams)]):
                results.append(function(k))
        for side in self._side_streams:
            here.wait_stream(side)
        return results

    @contextlib.contextmanager
    def _rates_on_device(self) -> Iterator[None]:
        """Let optimizers read their learning rate from the device if they can: schedulers then need no new capture."""
        parts = [
            (part, rate)
            for group, rates in zip(self.groups, self._rates, strict=True)
            if reads_rate_on_device(group.optimizer)
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

    def _update_options(self) -> None:
        """Copy new learning rates to the device; drop the graphs if other options of an optimizer changed."""
        now = self._options()
        if now == self._known_options:
            return
        for group, rates in zip(self.groups, self._rates, strict=True):
            for part, rate in zip(group.optimizer.param_groups, rates, strict=True):
                rate.fill_(float(part["lr"]))
        if [fixed for fixed, _ in now] != [fixed for fixed, _ in self._known_options]:
            self._drop_graphs()
        self._known_options = now

    def _options(self) -> list[tuple[dict[str, Any], float]]:
        """The options that a capture freezes, and the learning rate, which it may read from the device."""
        options = []
        for group in self.groups:
            on_device = reads_rate_on_device(group.optimizer)
            for part in group.optimizer.param_groups:
                left_out = ("params", "param_names", "initial_lr", *(["lr"] if on_device else []))
                fixed = {name: value for name, value in part.items() if name not in left_out}
                options.append((fixed, float(part["lr"])))
        return options


def _new_stream(device: torch.device) -> torch.cuda.Stream:
    stream: torch.cuda.Stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
    return stream
