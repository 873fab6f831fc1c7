"""The report of a run at the end of an epoch."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from paretomtl.engine.evaluate import Scores
from paretomtl.engine.history import EpochHistory
from paretomtl.engine.model_group import Group
from paretomtl.front.indicators import hypervolume_or_none
from paretomtl.training.progress.callbacks import Report
from paretomtl.training.results.snapshot import scale_now
from paretomtl.training.settings.settings import Settings


def make_report(
    settings: Settings,
    groups: Sequence[Group],
    history: EpochHistory,
    scores: Scores | None,
    epoch: int,
    step: int,
    seconds: float,
) -> Report:
    """Make the report of a run at the end of an epoch.

    Args:
        settings: of the run.
        groups: the models.
        history: losses and weights so far.
        scores: on the validation split; None without one.
        epoch: how many epochs are done.
        step: how many steps are done.
        seconds: how long they took.
    """
    seeds = len(settings.seeds)
    models = settings.subproblems * seeds
    alive = torch.cat([group.active for group in groups]).tolist()
    losses = history.last("losses")
    reference = history.reference(settings.problem)
    return Report(
        epoch=epoch,
        epochs=settings.epochs,
        step=step,
        seconds=seconds,
        tasks=settings.problem.tasks,
        subproblems=models,
        losses=losses,
        weights=history.last("weights"),
        val_losses=None if scores is None else scores.losses,
        val_metrics={} if scores is None else scores.metrics,
        hypervolume=mean_hypervolume(losses if scores is None else scores.losses, reference, seeds),
        reference=reference,
        frozen=[k for k in settings.subproblems if not all(a for m, a in zip(models, alive, strict=True) if m == k)],
        scale=scale_now(settings.method, groups),
        seeds=[seed for seed in settings.seeds for _ in settings.subproblems] if seeds > 1 else (),
    )


def mean_hypervolume(losses: Tensor, reference: Sequence[float] | None, seeds: int) -> float | None:
    """The hypervolume of each seed's losses, as a mean over seeds; None if one is unknown."""
    volumes = [hypervolume_or_none(part, reference) for part in losses.chunk(seeds)]
    known = [each for each in volumes if each is not None]
    return sum(known) / seeds if len(known) == seeds else None
