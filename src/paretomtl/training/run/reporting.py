"""Reports of a run while it trains: to its listeners and to its log."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from torch import Tensor

from paretomtl._support.tensor_json import to_lists
from paretomtl.engine.evaluate import Scores
from paretomtl.front.indicators import hypervolume_or_none
from paretomtl.runs.folder import RunFolder
from paretomtl.training.progress.callbacks import Callback, Report, notify, tick
from paretomtl.training.results.snapshot import scale_now
from paretomtl.training.run.state import RunState
from paretomtl.training.settings.settings import Settings

_REPORT_SECONDS = 0.5  # between reports of a problem without data, whose epochs are single steps
_TICK_SECONDS = 1.0  # between ticks inside an epoch


def settled_rows(settings: Settings, state: RunState) -> dict[str, Any]:
    """The directions that the method chose during the run, for a log; empty if the rows are those of the settings."""
    rows = settings.method.directions_of(state.models.state)
    if rows is None or not bool(rows.isfinite().all()):
        return {}
    return {"reading": "direction", "directions": to_lists(rows.cpu())}


class Reporting:
    """Reports to the listeners of a run, and to its log.

    Args:
        settings: of the run.
        state: of the run.
        listeners: called with reports.
        folder: with the log; None for a run without one.
    """

    def __init__(
        self, settings: Settings, state: RunState, listeners: Sequence[Callback], folder: RunFolder | None
    ) -> None:
        self._settings, self._state, self.listeners, self._folder = settings, state, listeners, folder
        self._reported = self._ticked = time.monotonic()

    def tick_due(self) -> bool:
        """Whether the next tick is due."""
        return time.monotonic() - self._ticked >= _TICK_SECONDS

    def tick(self, share: float) -> None:
        """Tick the listeners inside an epoch; ``share`` of all steps are done."""
        self._ticked = time.monotonic()
        tick(self.listeners, share, self._state.seconds)

    def report(self, scores: Scores | None, *, last: bool) -> bool:
        """Report the end of an epoch; for a problem without data, not of every one.

        Args:
            scores: on the validation split; None without one.
            last: whether the run is at its end.

        Returns:
            Whether a listener stops the run.
        """
        if not self.listeners and self._folder is None:
            return False
        if self._settings.problem.train is None and not last and time.monotonic() - self._reported < _REPORT_SECONDS:
            return False
        self._reported = time.monotonic()
        report = self._report(scores)
        if self._folder is not None:
            self._folder.log("epoch", **report.numbers())
        return notify(self.listeners, report)

    def _report(self, scores: Scores | None) -> Report:
        settings, state = self._settings, self._state
        seeds = len(settings.seeds)
        models = settings.subproblems * seeds
        alive = state.models.active.tolist()
        losses = state.history.last("losses")
        reference = state.history.reference(settings.problem)
        return Report(
            epoch=state.epoch,
            epochs=settings.epochs,
            step=state.number,
            seconds=state.seconds,
            tasks=settings.problem.tasks,
            subproblems=models,
            losses=losses,
            weights=state.history.last("weights"),
            val_losses=None if scores is None else scores.losses,
            val_metrics={} if scores is None else scores.metrics,
            hypervolume=mean_hypervolume(losses if scores is None else scores.losses, reference, seeds),
            reference=reference,
            frozen=[
                k for k in settings.subproblems if not all(a for m, a in zip(models, alive, strict=True) if m == k)
            ],
            scale=scale_now(settings.method, state.models.state),
            seeds=[seed for seed in settings.seeds for _ in settings.subproblems] if seeds > 1 else (),
        )

    def fallback(self, failed: str, reason: str) -> None:
        """Log the failure of a stack."""
        if self._folder is not None:
            state = self._state
            self._folder.log("fallback", epoch=state.epoch, step=state.number, what=failed, reason=reason)

    def branched(self) -> None:
        """Log that the models branched."""
        if self._folder is not None:
            self._folder.log("branched", epoch=self._state.epoch, step=self._state.number)

    def settled(self, decisions: Sequence[tuple[str, ...]]) -> None:
        """Log the decisions of the method at the end of its probe, and the directions that it chose."""
        if self._folder is None:
            return
        state = self._state
        rows = settled_rows(self._settings, state)
        self._folder.log("settled", epoch=state.epoch, step=state.number, decisions=list(decisions[0]), **rows)

    def end(self, ended: str, *, complete: bool) -> None:
        """Log the end of the run, and why it ended."""
        if self._folder is not None:
            seconds = round(self._state.seconds, 3)
            self._folder.log("end" if complete else "stopped", epoch=self._state.epoch, seconds=seconds, ended=ended)


def mean_hypervolume(losses: Tensor, reference: Sequence[float] | None, seeds: int) -> float | None:
    """The hypervolume of each seed's losses, as a mean over seeds; None if one is unknown."""
    volumes = [hypervolume_or_none(part, reference) for part in losses.chunk(seeds)]
    known = [each for each in volumes if each is not None]
    return sum(known) / seeds if len(known) == seeds else None
