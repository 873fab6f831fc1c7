"""The front of a run, built from its snapshots."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from torch.utils.data import DataLoader

from paretomtl._support.version import made_by
from paretomtl.engine.history import EpochHistory
from paretomtl.front import Front
from paretomtl.front.indicators import widen_reference
from paretomtl.problems import Problem
from paretomtl.training.results.snapshot import Snapshot
from paretomtl.training.settings.settings import Settings


@dataclass(frozen=True)
class Outcome:
    """The data that all fronts of a run have in common.

    Attributes:
        snapshots: the models before the method dropped its constraints, and those at the end.
        history: losses and weights by epoch.
        strategy: how the models were trained, in words.
        seconds: how long training took.
        complete: whether the run reached a planned end.
        ended: why it ended, in words.
        shared: how many steps one model took for all of them; None without a branch.
        data: by split, a checksum.
    """

    snapshots: Sequence[Snapshot]
    history: EpochHistory
    strategy: str
    seconds: float
    complete: bool
    ended: str
    shared: int | None = None
    data: Mapping[str, str] = field(default_factory=dict)


def build_front(settings: Settings, index: int, outcome: Outcome, remarks: Sequence[str]) -> Front:
    """The front of the last snapshot for one of the seeds; each front holds the one before as its ``snapshot``."""
    count = len(settings.subproblems)
    part = slice(index * count, (index + 1) * count)
    front, snapshots, history = None, outcome.snapshots, outcome.history
    for snapshot in snapshots:
        reading, rows = settings.method.reading, settings.vectors[index]
        if snapshot.directions is not None and bool(snapshot.directions[part].isfinite().all()):
            reading, rows = "direction", snapshot.directions[part]
        front = Front(
            problem=settings.problem.name,
            method=settings.method.name,
            tasks=tuple(settings.problem.tasks),
            reading=reading,
            preferences=rows,
            subproblems=tuple(settings.subproblems),
            history=history.part(part, settings.dtype),
            seed=settings.seeds[index],
            seconds=outcome.seconds,
            model_factory=settings.problem.model,
            model_seeds=settings.model_seeds[part],
            snapshot=front,
            better={name: metric.better for name, metric in settings.problem.metrics.items()},
            complete=outcome.complete,
            strategy=outcome.strategy,
            reference=history.reference(settings.problem, part),
            made_by=made_by(),
            data=dict(outcome.data),
            remarks=tuple(remarks) if snapshot is snapshots[-1] else (),
            ended=outcome.ended,
            decisions=(
                *_options_in_words(settings, outcome.shared),
                *(snapshot.decisions[index] if snapshot.decisions else ()),
            ),
            **snapshot.part(part),
        )
        front = with_wide_reference(front, settings.problem)
    assert front is not None
    return front


def with_wide_reference(front: Front, problem: Problem) -> Front:
    """The front with a reference point beyond most of its models, if the problem has none and all models are there.

    The shards of a run keep the losses of untrained models, so that the merged front has the same point as one process.
    """
    if problem.reference is not None or front.reference is None or len(front.subproblems) < len(front.preferences):
        return front
    return replace(front, reference=tuple(widen_reference(front.reference, front.losses[front.ranking_split])))


def _options_in_words(settings: Settings, shared: int | None) -> Iterator[str]:
    """What was done to all models, apart from the method."""
    if settings.budget is not None:
        yield settings.budget.plan
    accumulated = settings.shares.accumulate
    if accumulated > 1 and isinstance(settings.problem.train, DataLoader):
        yield f"a step took {accumulated} batches of the DataLoader (accumulate={accumulated})"
    if shared is not None:
        steps = "step was" if shared == 1 else f"{shared:,} steps were"
        yield f"the first {steps} shared: one model with equal weights"
    if settings.average is not None:
        yield f"weights are means over recent steps (average={settings.average:g})"
