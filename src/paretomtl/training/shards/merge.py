"""Merged shards: one front, and one report of their progress."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from paretomtl.front import Front
from paretomtl.front.indicators import hypervolume_or_none
from paretomtl.front.joining import joined_versions, row_fields
from paretomtl.front.models import StackedModels, stack_rows
from paretomtl.training.progress.callbacks import Report
from paretomtl.training.results.front import with_wide_reference
from paretomtl.training.settings.settings import Settings


def merge_fronts(parts: Sequence[Front], settings: Settings, *, complete: bool, seconds: float, ended: str) -> Front:
    """The front of all models that some shards hold, in the order of the run.

    Args:
        parts: the fronts of shards, each of some models against the preferences of all.
        settings: of the whole run.
        complete: whether it has ended.
        seconds: how long it took.
        ended: why it ended, in words.
    """
    front = _merge_snapshot(parts, settings, complete, seconds, ended)
    return replace(front, strategy=f"{len(parts)} shards; {front.strategy}")


def _merge_snapshot(parts: Sequence[Front], settings: Settings, complete: bool, seconds: float, ended: str) -> Front:
    first = parts[0]
    subproblems = [k for part in parts for k in part.subproblems]
    places = {k: i for i, k in enumerate(settings.subproblems)}
    order = sorted(range(len(subproblems)), key=lambda i: places[subproblems[i]])
    weights = [part.models.weights(row) for part in parts for row in range(len(part))]
    snapshots = [part.snapshot for part in parts if part.snapshot is not None]
    snapshot = None
    if len(snapshots) == len(parts):
        snapshot = _merge_snapshot(snapshots, settings, complete, seconds, ended)
    merged = replace(
        first,
        **row_fields(parts, order),
        models=StackedModels(stack_rows([weights[i] for i in order])),
        reference=_reference(settings, [part.reference for part in parts]),
        seconds=seconds,
        model_factory=settings.problem.model,
        snapshot=snapshot,
        complete=complete,
        ended=ended,
        made_by=joined_versions(parts),
        remarks=tuple(dict.fromkeys(remark for part in parts for remark in part.remarks)),
    )
    return with_wide_reference(merged, settings.problem)


def _reference(settings: Settings, references: Sequence[Sequence[float] | None]) -> tuple[float, ...] | None:
    """That of the problem, or the largest losses of the untrained models of all shards."""
    if settings.problem.reference is not None:
        return tuple(settings.problem.reference)
    known = [reference for reference in references if reference is not None]
    return tuple(map(max, zip(*known, strict=True))) if known and len(known) == len(references) else None


class Overview:
    """The progress of the shards of a run, from the last report of each.

    Args:
        settings: of the whole run.
        shards: the models of each shard.
    """

    def __init__(self, settings: Settings, shards: Sequence[Sequence[int]]) -> None:
        self._settings = settings
        self._shards = shards
        self._reports: dict[int, Report] = {}
        self._shares = [0.0] * len(shards)

    def on_message(self, i: int, message: Report | float) -> None:
        """Take a report of a shard, or the share of its steps that are done."""
        if isinstance(message, Report):
            self._reports[i] = message
            message = message.epoch / message.epochs
        self._shares[i] = message

    def known(self, i: int, front: Front) -> None:
        """Take a shard that was done before, as if it had reported."""
        self.on_message(
            i,
            Report(
                epoch=self._settings.epochs,
                epochs=self._settings.epochs,
                step=0,
                seconds=front.seconds,
                tasks=front.tasks,
                subproblems=front.subproblems,
                losses=front.history["losses"][-1],
                weights=front.history["weights"][-1],
                val_losses=front.losses.get("val"),
                val_metrics=dict(front.metrics.get("val", {})),
                hypervolume=None,
                reference=front.reference,
                frozen=[k for k, word in zip(front.subproblems, front.status, strict=True) if word == "non-finite"],
                scale=front.scale,
            ),
        )

    def share(self) -> float:
        """The share of all steps that are done."""
        done = sum(share * len(shard) for share, shard in zip(self._shares, self._shards, strict=True))
        return done / len(self._settings.subproblems)

    def epoch(self) -> int:
        """How many epochs are done, as the mean over all models."""
        done = sum(report.epoch * len(self._shards[i]) for i, report in self._reports.items())
        return done // len(self._settings.subproblems)

    def report(self, seconds: float, note: str) -> Report:
        """All models in one report."""
        settings = self._settings
        places = {k: row for row, k in enumerate(settings.subproblems)}
        shape = (len(places), len(settings.problem.tasks))
        reports = list(self._reports.values())

        def table(values: Mapping[int, Tensor], *sizes: int) -> Tensor:
            whole = torch.full((len(places), *sizes), torch.nan, dtype=torch.float64)
            for i, some in values.items():
                whole[[places[k] for k in self._shards[i]]] = some.double()
            return whole

        validated = {i: r.val_losses for i, r in self._reports.items() if r.val_losses is not None}
        scales = {i: r.scale for i, r in self._reports.items() if r.scale is not None}
        names = list(next((r.val_metrics for r in reports), {}))
        losses = table({i: r.losses for i, r in self._reports.items()}, shape[1])
        val = table(validated, shape[1]) if validated else None
        reference = _reference(settings, [r.reference for r in reports])
        return Report(
            epoch=max(self.epoch(), 1),
            epochs=settings.epochs,
            step=sum(r.step for r in reports),
            seconds=seconds,
            tasks=settings.problem.tasks,
            subproblems=settings.subproblems,
            losses=losses,
            weights=table({i: r.weights for i, r in self._reports.items()}, shape[1]),
            val_losses=val,
            val_metrics={n: table({i: r.val_metrics[n] for i, r in self._reports.items()}) for n in names},
            hypervolume=hypervolume_or_none(losses if val is None else val, reference),
            reference=reference,
            frozen=[k for r in reports for k in r.frozen],
            scale=table(scales, shape[1]) if scales else None,
            note=note,
        )
