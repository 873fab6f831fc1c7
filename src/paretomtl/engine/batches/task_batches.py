"""Batches of several data sets side by side, one for each task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from paretomtl.engine.batches.base import Batches
from paretomtl.engine.batches.partition import MicroBatches
from paretomtl.engine.batches.structure import count_samples
from paretomtl.problems.per_task import TaskBatch

_PASSES = 2**14  # offset of the epoch number that gives repeated passes of a short data set in one epoch another order
_END = object()


class TaskBatches(Batches):
    """A data set for each task: a batch holds one batch of each, by task name.

    The order of each data set is decided by (seed, epoch), as it would be alone. Where an epoch ends with the longest
    one, shorter ones start again in another order. Splits are evaluated to the end of each, every sample once.

    Args:
        name: what error messages call the split.
        parts: the data sets by task name.
        mode: "max_size_cycle" or "min_size".
    """

    def __init__(self, name: str, parts: Mapping[str, Batches], mode: str) -> None:
        self.name = name
        self.parts = dict(parts)
        self.mode = mode
        lengths = [part.steps for part in parts.values()]
        known = [length for length in lengths if length is not None]
        self.steps = None if len(known) < len(lengths) else (min if mode == "min_size" else max)(known)
        samples = [part.samples for part in parts.values() if part.samples is not None]
        self.samples = sum(samples) if len(samples) == len(lengths) else None
        self.resumes_inside = all(part.resumes_inside for part in parts.values())
        self.keeps_workers = any(part.keeps_workers for part in parts.values())
        self.in_micro_batches = any(part.in_micro_batches for part in parts.values())

    def epoch(self, seed: int, epoch: int, start: int = 0) -> Iterator[Any]:
        passes = [_Passes(part, seed, epoch, start) for part in self.parts.values()]
        while True:
            firsts = [_END if each.number else each.next() for each in passes]  # those in their first pass come first
            ended = [each.number > 0 for each in passes]
            if all(ended) or (self.mode == "min_size" and any(ended)):
                return
            yield self._together(
                [each.next() if batch is _END else batch for each, batch in zip(passes, firsts, strict=True)]
            )

    def in_order(self, models: int = 1, *, shared: bool = False) -> Iterator[Any]:
        sources = {task: part.in_order(models, shared=shared) for task, part in self.parts.items()}
        stand_ins: dict[str, Any] = {}
        while True:
            batches_by_task = {task: next(source, _END) for task, source in sources.items()}
            if all(batch is _END for batch in batches_by_task.values()):
                return
            for task, batch in batches_by_task.items():
                stand_ins.setdefault(task, batch)
            yield TaskBatch(
                {task: stand_ins[task] if batch is _END else batch for task, batch in batches_by_task.items()},
                {task: 0 if batch is _END else count_samples(batch) for task, batch in batches_by_task.items()},
            )

    def probe(self) -> Any:
        batches_by_task = {task: part.probe() for task, part in self.parts.items()}
        if any(batch is None for batch in batches_by_task.values()):
            return None
        return TaskBatch(batches_by_task, {task: count_samples(batch) for task, batch in batches_by_task.items()})

    def _together(self, batches: list[Any]) -> Any:
        """One batch of all tasks; in micro-batches, as many as the task with most has."""
        if not isinstance(batches[0], MicroBatches):
            batches_by_task = dict(zip(self.parts, batches, strict=True))
            return TaskBatch(batches_by_task, {task: count_samples(batch) for task, batch in batches_by_task.items()})
        micro_batches: dict[str, MicroBatches] = dict(zip(self.parts, batches, strict=True))
        parts = []
        for i in range(max(len(micro.parts) for micro in micro_batches.values())):
            there = {task: i < len(micro.parts) for task, micro in micro_batches.items()}
            parts.append(
                TaskBatch(
                    {task: micro.parts[i if there[task] else 0] for task, micro in micro_batches.items()},
                    {task: micro.samples[i] if there[task] else 0 for task, micro in micro_batches.items()},
                )
            )
        return MicroBatches(tuple(parts), tuple(max(part.samples.values()) for part in parts))


class _Passes:
    """One data set, read repeatedly within an epoch.

    Attributes:
        number: how many passes have ended.
    """

    def __init__(self, batches: Batches, seed: int, epoch: int, start: int) -> None:
        self._batches, self._seed, self._epoch = batches, seed, epoch
        self.number, inside = divmod(start, batches.steps) if start and batches.steps else (0, 0)
        self._source = self._open(inside)

    def next(self) -> Any:
        """The next batch; ``_END`` once, at the end of the first pass."""
        batch = next(self._source, _END)
        if batch is not _END:
            return batch
        self.number += 1
        self._source = self._open(0)
        return _END if self.number == 1 else self.next()

    def _open(self, inside: int) -> Iterator[Any]:
        return self._batches.epoch(self._seed, self._epoch + self.number * _PASSES, inside)
