"""Checkpoints of a run: when they are stored, and how a run is resumed from them, perhaps for more epochs.

The strategy of a run is in its configuration, and is not measured again when the run is resumed. Each checkpoint says
how many epochs were planned, because only that shows whether its schedule still follows the old plan.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from typing import Any

from paretomtl.front import Front
from paretomtl.runs.checkpoint_file import explain_mismatch
from paretomtl.runs.folder import RunFolder
from paretomtl.training.run import extend
from paretomtl.training.run.reporting import settled_rows
from paretomtl.training.run.state import RunState
from paretomtl.training.settings.fingerprint import differing_start
from paretomtl.training.settings.identity import RunIdentity
from paretomtl.training.settings.settings import Settings


class Checkpoints:
    """The checkpoints of a run.

    Args:
        folder: of the run; None for a run that stores nothing, and in all processes but the first.
        settings: of the run.
        state: of the run.
        pause: seconds between checkpoints.
        resumes_inside: whether a run can be resumed inside of an epoch.

    Attributes:
        folder: as above.
        epoch: of the last checkpoint.
    """

    def __init__(
        self, folder: RunFolder | None, settings: Settings, state: RunState, pause: float, *, resumes_inside: bool
    ) -> None:
        self.folder, self._settings, self._state = folder, settings, state
        self._pause = pause
        self._resumes_inside = resumes_inside
        self._saved = time.monotonic()
        self._failed = ""
        self.epoch = 0

    def due(self) -> bool:
        """Whether the next checkpoint is due."""
        return time.monotonic() - self._saved >= self._pause

    def save(self) -> None:
        """Store a checkpoint; if that fails, go on, and warn once of each cause: the last one is still there."""
        if self._state.step and not self._resumes_inside:
            return
        if self.folder is None and not self._settings.shares.processes.is_distributed:
            return
        try:
            stored = self._state.stored()
            if self.folder is not None:
                self.folder.save_checkpoint(stored)
                self.epoch = self._state.epoch
            self._failed = ""
        except Exception as error:  # a full disk, a device that is gone, or an optimizer whose state no file can hold
            self._warn(error)
        self._saved = time.monotonic()

    def _warn(self, error: Exception) -> None:
        before, self._failed = self._failed, (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
        if self._failed != before:
            warnings.warn(
                f"no checkpoint could be stored: {self._failed}. Training goes on, and the front is stored at its end; "
                f"resume=True would go on from epoch {self.epoch}.",
                stacklevel=3,
            )

    def begin(self, folder: RunFolder, config: Mapping[str, Any], scaling: Mapping[str, str]) -> None:
        """Start the folder of a new run; ``scaling`` is for its log."""
        stored, choice = self._state.stored(), self._state.models.choice.stored()

        def write() -> None:
            try:
                try:
                    folder.save_checkpoint(stored)
                except TypeError as error:  # it may have such a state before the first step
                    self._warn(error)
                folder.begin({**config, "taken": choice})
            except OSError as error:
                raise ValueError(f"'out' must have room for a run. {error}.") from None
            folder.log("start", **self._settings.legend(), **choice, **scaling)

        self._settings.shares.processes.broadcast(write)

    def resume(
        self, folder: RunFolder, stored: Mapping[str, Any], config: Mapping[str, Any], identity: RunIdentity
    ) -> Front | None:
        """Go on from the last checkpoint in a folder.

        Args:
            folder: of the run, in all processes.
            stored: its configuration.
            config: the current configuration.
            identity: of the current run.

        Returns:
            The front of a run that is complete already; None otherwise.
        """
        settings, state, ranks = self._settings, self._state, self._settings.shares.processes
        longer = extend.asks_for_more(stored, settings)
        before = (
            {**identity.config(extend.stored_plan(stored, settings)), "start": config["start"]} if longer else config
        )
        folder.check(stored, before, differing_start(stored.get("start"), config["start"], settings.precision))
        front = None if ranks.is_distributed else folder.load_front(settings.problem)
        if front is not None and front.complete and not longer:
            return front
        checkpoint = ranks.broadcast(folder.load_checkpoint)
        if checkpoint is not None:
            with explain_mismatch(folder.checkpoint_path):
                state.load(checkpoint, settings.plan, identity.module)
            self.epoch = state.epoch
        state.patience_from = extend.counted_from(stored)
        if longer and state.planned_end() is not None and state.epoch < settings.epochs:
            state.patience_from = state.epoch  # patience ended the run, which is now extended
        if longer:
            extended = extend.longer_config(stored, config, settings, state.patience_from)
            ranks.broadcast(lambda: folder.extend(extended, settings.problem))
        if self.folder is not None:
            legend = {**settings.legend(), **settled_rows(settings, state)}
            folder.log("resume", epoch=state.epoch, step=state.number, epochs=settings.epochs, **legend)
        return None
