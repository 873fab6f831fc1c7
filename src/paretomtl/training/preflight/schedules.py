"""Learning rate schedules that are made for steps, and move once an epoch."""

from __future__ import annotations

import warnings
from typing import Any

from paretomtl.training.settings.settings import Settings

_FAR_LONGER = 2  # times as many steps as a scheduler is going to take


def warn_of_schedule(settings: Settings, scheduler: Any) -> None:
    """Warn of a scheduler whose length is far beyond the run: the learning rate hardly moves along it.

    Args:
        settings: of the run.
        scheduler: that of some model; None for a constant rate.
    """
    length = getattr(scheduler, "total_steps", None) or getattr(scheduler, "T_max", None)  # OneCycleLR; a cosine
    if settings.schedule == "step" or not isinstance(length, int) or length <= _FAR_LONGER * settings.epochs:
        return
    name = type(scheduler).__name__
    warnings.warn(
        f"'scheduler' is a {name} of {length:,} steps, and takes {settings.epochs:,}, one an epoch: the learning rate "
        'hardly moves along it. Write schedule="step" if it should step after each batch, or take its length from the '
        f"run: lambda optimizer, total: {name}(optimizer, ..., total).",
        stacklevel=5,
    )
