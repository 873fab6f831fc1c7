"""The front of a run, built from its snapshots."""

from __future__ import annotations

from collections.abc import Sequence

from paretomtl._support.version import made_by
from paretomtl.engine.history import EpochHistory
from paretomtl.front import Front
from paretomtl.training.results.snapshot import Snapshot
from paretomtl.training.settings import Settings


def build_front(
    settings: Settings,
    index: int,
    stages: Sequence[Snapshot],
    trace: EpochHistory,
    strategy: str,
    seconds: float,
    complete: bool,
    ended: str,
    remarks: Sequence[str] = (),
) -> Front:
    """The front of one of the seeds, with what was kept on the way as its snapshot."""
    count = len(settings.subproblems)
    part = slice(index * count, (index + 1) * count)
    front = None
    for stage in stages:
        front = Front(
            problem=settings.problem.name,
            method=settings.method.name,
            tasks=tuple(settings.problem.tasks),
            reading=settings.method.reading,
            preferences=settings.vectors[index],
            subproblems=tuple(settings.subproblems),
            history=trace.part(part, settings.dtype),
            seed=settings.seeds[index],
            seconds=seconds,
            model_factory=settings.problem.model,
            snapshot=front,
            better={name: metric.better for name, metric in settings.problem.metrics.items()},
            complete=complete,
            strategy=strategy,
            reference=trace.reference(settings.problem, part),
            made_by=made_by(),
            remarks=tuple(remarks) if stage is stages[-1] else (),
            ended=ended,
            **stage.part(part),
        )
    assert front is not None
    return front
