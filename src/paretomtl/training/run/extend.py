"""Extension of a stored run: the options that may grow, and their effect on phases and schedules.

Methods keep the total of the first plan. Phases only move forward: a fifth of the new total would not return a model to
its initial phase, but would hold a model in it that was stopped there.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from paretomtl.engine.model_group import Group
from paretomtl.training.settings.fingerprint import describe_schedule
from paretomtl.training.settings.settings import Settings

FIRST = "first_epochs"
"""In a configuration: the epochs that a run began with, if it was extended since."""

COUNTED = "patience_from"
"""In a configuration: the epoch from which the epochs of patience are counted."""


def stored_plan(stored: Mapping[str, Any] | None, settings: Settings) -> Settings:
    """The settings with the stored epochs and patience if they ask for more; otherwise unchanged.

    ``epochs`` may be raised, and ``patience`` may be raised or left out; everything else is compared as it is.

    Args:
        stored: the configuration of the run; None for a new one.
        settings: the current settings.
    """
    if stored is None:
        return settings
    epochs, patience = _count(stored.get("epochs")), _count(stored.get("patience"))
    if epochs is not None and epochs < settings.epochs:
        settings = replace(settings, epochs=epochs)
    if patience is not None and (settings.patience is None or patience < settings.patience):
        settings = replace(settings, patience=patience)
    return settings


def follow_first_plan(stored: Mapping[str, Any] | None, settings: Settings, path: Path | None) -> Settings:
    """The settings with the epochs that the run began with, by which methods plan their phases.

    Args:
        stored: the configuration of the run; None for a new one.
        settings: what is asked for now.
        path: of the run's folder.
    """
    if stored is None:
        return settings
    before = stored_plan(stored, settings).epochs
    if before < settings.epochs and settings.method.ends_with_plan:
        raise ValueError(
            f"'epochs' must be that of the run in '{path}' to resume it: {before}. Got {settings.epochs} instead: "
            f"the last steps of '{settings.method.name}' with these options are special, and were placed by that end."
        )
    return replace(settings, first_epochs=_count(stored.get(FIRST)) or before)


def asks_for_more(stored: Mapping[str, Any], settings: Settings) -> bool:
    """Whether the settings ask a stored run for more epochs, or for more patience."""
    before = stored_plan(stored, settings)
    return (before.epochs, before.patience) != (settings.epochs, settings.patience)


def longer_config(
    stored: Mapping[str, Any], config: Mapping[str, Any], settings: Settings, counted: int
) -> dict[str, Any]:
    """The configuration of an extended run: the stored one, updated by the current one.

    Args:
        stored: the configuration so far.
        config: that of the current settings.
        settings: the current settings.
        counted: the epoch from which the epochs of patience are counted; 0 for the first.
    """
    own = {name: value for name, value in config.items() if name != "start"}
    first = {FIRST: settings.plan} if settings.plan != settings.epochs else {}
    return {**stored, **own, **first, **({COUNTED: counted} if counted else {})}


def counted_from(stored: Mapping[str, Any]) -> int:
    """The epoch from which the epochs of patience are counted."""
    return _count(stored.get(COUNTED)) or 0


def plan_differs(settings: Settings, module: nn.Module, planned: int, steps: int | None) -> bool:
    """Whether a schedule for ``planned`` epochs differs from one for the epochs of the settings.

    Args:
        settings: of the run.
        module: a model, which is not changed.
        planned: the epochs that the schedule was planned for.
        steps: of an epoch; None if unknown.
    """
    if settings.scheduler is None or planned == settings.epochs:
        return False
    before = replace(settings, epochs=planned)
    count = planned * (steps or 0) if settings.schedule == "step" else planned
    one, other = (
        describe_schedule(each.scheduler_for(each.epochs * (steps or 0)), each.optimizer, module, count)
        for each in (before, settings)
    )
    return one != other


def plan_again(group: Group, make: Any, times: int) -> None:
    """Schedule a group by a new plan, from the group's current step on."""
    for part in group.optimizer.param_groups:
        rate = part.get("initial_lr", part["lr"])
        part["lr"] = rate.clone() if isinstance(rate, Tensor) else rate
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # no optimizer steps in between
        group.scheduler = make(group.optimizer)
        for _ in range(times):
            group.scheduler.step()


def _count(value: Any) -> int | None:
    """A positive integer from a file; None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
