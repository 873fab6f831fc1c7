"""The time budget of a run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TimeBudget:
    """The time that a run may take.

    Attributes:
        began: when the clock started, by ``time.monotonic()``: before the run was planned.
        seconds: how long it may train from then on, so that it can still be evaluated in time.
        minutes: what the user asked for, in words.
        plan: the number of models and epochs that fit, in words.
    """

    began: float
    seconds: float
    minutes: str
    plan: str
