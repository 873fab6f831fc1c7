"""Budgets: how many models, and how many epochs, fit into a number of minutes.

A trial of the run measures its pace before it begins. If models are to be chosen, their number is the usual one, unless
training would be far from the epochs of the problem's recipe: then fewer models train for longer, or more of them for
not much longer. The epochs fill the time. A run that turns out to be slower ends when its time is over.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch

from paretomtl._support.argument_checks import check_positive
from paretomtl.front.limits import MAX_SOLUTIONS
from paretomtl.problems import Problem
from paretomtl.training.options import TrainingOptions
from paretomtl.training.run.training_run import TrainingRun
from paretomtl.training.run.trial_run import trial_run
from paretomtl.training.settings.preference_rows import REACHABLE, leaves_count_open
from paretomtl.training.settings.settings import Settings, make_settings
from paretomtl.training.settings.time_budget import TimeBudget

_WARM_UP = 3  # steps that are not timed
_FEWEST = 5  # timed steps
_SHARE, _LONGEST = 0.03, 15.0  # of the budget, and in seconds: how long steps are timed
_USED = 0.98  # of the time that is left, in case that steps get slower
_SHORT, _LONG = 0.5, 2.0  # of the recipe's epochs: beyond, the number of models changes
_MANY = 5  # times the usual number of models, at most
_LONG_RUN = 1_000  # epochs of a trial whose length is not known yet


@dataclass(frozen=True)
class Pace:
    """The measured pace of a run.

    Attributes:
        models: how many models it has.
        epoch: seconds of an epoch, with its evaluation on validation.
        start: seconds before the first step.
        end: seconds to evaluate all splits at the end.
    """

    models: int
    epoch: float
    start: float
    end: float


def plan_by_time(
    problem: Problem, options: TrainingOptions, stored: Mapping[str, Any] | None = None
) -> tuple[TrainingOptions, TimeBudget]:
    """The options with a number of models and of epochs that fit into ``options.minutes``.

    Args:
        problem: what is trained.
        options: as the user gave them; what they say of models and epochs stays.
        stored: the configuration of the run to resume, whose plan stays; None for a new run.
    """
    began = time.monotonic()
    assert options.minutes is not None
    check_positive("minutes", options.minutes)
    limit, asked = 60.0 * options.minutes, _minutes(options.minutes)
    if stored is not None:
        count, epochs = len(stored["preferences"]), int(stored["epochs"])
        plan = f"{asked}: {count} models for {epochs:,} epochs, as planned when the run began"
        return _planned(options, count, epochs), TimeBudget(began, limit, asked, plan)
    recipe = options.epochs or problem.recipe.epochs
    seconds = min(_SHARE * limit, _LONGEST)
    trial = replace(options, epochs=recipe or _LONG_RUN, branch=None, patience=None)
    settings = make_settings(problem, trial)
    pace = measure_pace(settings, seconds)

    def affordable(pace: Pace) -> float:
        """Epochs that fit into the rest of the time."""
        left = _USED * (limit - (time.monotonic() - began) - pace.start - pace.end)
        shared = options.branch or 0.0
        return left / (pace.epoch * (1.0 - shared + shared / pace.models))

    count = pace.models
    if recipe is not None and leaves_count_open(options.preferences):
        fixed = options.epochs is not None
        count = choose_count(pace.models, len(problem.tasks), affordable(pace), recipe, fixed=fixed)
        count = settings.shares.processes.broadcast(lambda: count)
    if count != pace.models:
        settings = make_settings(problem, _planned(trial, count, trial.epochs))
        pace = measure_pace(settings, seconds)
    fitting = affordable(pace)
    epochs = options.epochs or max(1, math.floor(fitting))
    epochs = settings.shares.processes.broadcast(lambda: epochs)
    plan = f"{asked}: {count} models for {epochs:,} epochs of {_seconds(pace.epoch)}, measured"
    if fitting < 1.0:
        plan += "; that is too short for one epoch, in which the run is going to end"
    elif fitting < epochs:
        plan += f"; that is time for {math.floor(fitting):,} of them, and the run is going to end there"
    return _planned(options, count, epochs), TimeBudget(began, limit - pace.end, asked, plan)


def _planned(options: TrainingOptions, count: int, epochs: int | None) -> TrainingOptions:
    """Options with the planned number of models, unless these are given, and of epochs."""
    if not leaves_count_open(options.preferences):
        return replace(options, epochs=epochs)
    return replace(options, epochs=epochs, preferences=count if options.preferences is None else f"{REACHABLE}:{count}")


def choose_count(usual: int, tasks: int, affordable: float, recipe: int, *, fixed: bool) -> int:
    """The number of models of a budget: the usual one, unless their training would be much too short or too long.

    Args:
        usual: how many models a front has if nothing limits it.
        tasks: how many tasks there are; a front has one model more, at least, for a trade-off between its ends.
        affordable: epochs that the usual number could train for.
        recipe: epochs of the problem's recipe, or those that the user asked for.
        fixed: whether the user asked for exactly these epochs.
    """
    short, long = (1.0, 1.0) if fixed else (_SHORT, _LONG)
    work = usual * affordable  # epochs of single models
    count = usual
    if affordable < short * recipe:
        count = math.floor(work / (short * recipe))
    elif affordable > long * recipe:
        count = math.floor(work / (long * recipe))
    fewest = min(usual, tasks + 1)
    return min(max(count, fewest), _MANY * usual, MAX_SOLUTIONS)


def measure_pace(settings: Settings, seconds: float) -> Pace:
    """Measure the steps of a run for some seconds, and one evaluation of each split."""
    began = time.monotonic()
    with trial_run(settings) as run:
        start = time.monotonic() - began
        step, steps = _time_steps(run, settings, seconds)
        evaluations = {}
        for split in run.splits:
            began = _now(settings)
            run.evaluate(split)
            evaluations[split] = _now(settings) - began
    epoch = steps * step + evaluations.get("val", 0.0)
    return Pace(len(settings.subproblems), epoch, start, sum(evaluations.values()))


def _time_steps(run: TrainingRun, settings: Settings, seconds: float) -> tuple[float, int]:
    """The seconds of a step, with the time to fetch its batch; and the steps of an epoch, which may have to end."""
    count, since = 0, 0.0
    while True:
        in_epoch = 0
        for batch in run.batches():
            run.take_step(batch)
            count += 1
            in_epoch += 1
            now = _now(settings)
            since = now if count == _WARM_UP else since
            timed = count - _WARM_UP
            if run.steps is not None and timed >= _FEWEST and now - since >= seconds:
                return (now - since) / timed, run.steps
        if run.steps is None and count > _WARM_UP:
            return (_now(settings) - since) / (count - _WARM_UP), in_epoch
        paused = _now(settings)
        run.after_epoch()
        since += _now(settings) - paused


def _now(settings: Settings) -> float:
    """The time when everything on the device is done."""
    if settings.device.type == "cuda":
        torch.cuda.synchronize(settings.device)
    return time.monotonic()


def _minutes(count: float) -> str:
    return "1 minute" if count == 1 else f"{count:g} minutes"


def _seconds(count: float) -> str:
    return f"{1000 * count:.2g} ms" if count < 0.1 else f"{count:.2g} s"
