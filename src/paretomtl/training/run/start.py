"""The start of a run: its folder, its data, its models, the checks, the strategy; and the checkpoint to resume from."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from paretomtl._support.random_state import own_states, rank_seed, seed_everything, set_own_states
from paretomtl._support.splits import ranking_split
from paretomtl._support.version import made_by
from paretomtl.engine.autotune.choose import choose
from paretomtl.engine.batches.base import Batches
from paretomtl.engine.batches.make import make_batches
from paretomtl.engine.batches.partition import first_part
from paretomtl.engine.history import EpochHistory
from paretomtl.engine.strategy import ExecutionPlan, Plan
from paretomtl.runs.checkpoint_file import explain_mismatch
from paretomtl.runs.folder import CONFIG, RunFolder
from paretomtl.training.preflight.checks import check_problem, first_batch
from paretomtl.training.preflight.loss_units import initial_state, measure_first_losses, warn_of_units
from paretomtl.training.preflight.schedules import warn_of_schedule
from paretomtl.training.progress.callbacks import Callback
from paretomtl.training.run.checkpoint import Checkpoints
from paretomtl.training.run.execution import Execution
from paretomtl.training.run.extend import follow_first_plan
from paretomtl.training.run.milestones import Milestones
from paretomtl.training.run.models import SharedStart, make_models
from paretomtl.training.run.reporting import Reporting
from paretomtl.training.run.state import RunState
from paretomtl.training.run.training_run import TrainingRun
from paretomtl.training.settings.identity import RunIdentity, check_asked
from paretomtl.training.settings.settings import Settings
from paretomtl.training.untrained import measure_untrained, warn_of_missing_labels


def start_run(
    settings: Settings,
    folder: RunFolder | None = None,
    resume: bool = False,
    checkpoint_seconds: float = 0.0,
    listeners: list[Callback] | None = None,
) -> TrainingRun:
    """Start a run, or resume the one in a folder, up to its next step.

    Settings that differ from those of the run in the folder are refused before anything is built. Data and models are
    compared after they are made.

    Args:
        settings: of the run.
        folder: of the run; None for one that stores nothing.
        resume: whether to go on with the run in the folder.
        checkpoint_seconds: the time between checkpoints.
        listeners: called with reports, and closed at the end.
    """
    made_by()  # cached before the source changes during a long run
    processes, problem = settings.shares.processes, settings.problem

    stored = None if folder is None else processes.broadcast(lambda: folder.open(resume=resume))
    settings = follow_first_plan(stored, settings, None if folder is None else folder.path)
    choice = None
    if folder is not None and stored is not None:
        processes.broadcast(lambda: check_asked(folder, stored, settings))
        choice = _stored_choice(folder, stored)

    untouched = own_states(settings.sources)
    splits = _make_splits(settings)
    train = splits["train"]
    planned = train.count_steps(settings.plan)
    milestones = Milestones.of(settings.method, settings.branch, planned, settings.plan)
    modules = make_models(settings)
    source = iter(train.epoch(settings.seeds[0], 0))
    first = first_batch("train", source)
    separate_graphs = check_problem(settings, modules, splits, first_part(first))
    first_losses = measure_first_losses(settings, modules, itertools.chain([first], source))
    del source  # processes of a DataLoader end
    warn_of_units(settings, first_losses)
    untrained = copy.deepcopy(modules[0])

    total = train.count_steps(settings.epochs)
    plan, state = _make_plan(settings, total), initial_state(settings, first_losses)
    if choice is None:
        choice = choose(plan, (settings.strategy, settings.workers), modules, state, train, first, total)
    plan = plan if choice.compiled else replace(plan, compiler=None)
    losses = None
    if stored is None and settings.start is None:
        losses = measure_untrained(plan, choice, modules, state, splits, settings)
        warn_of_missing_labels(settings, ranking_split(list(splits)), losses)
    shared = SharedStart.of(settings, plan, state, first_losses)
    if shared is None:
        groups = choice.groups(plan, modules, state)
    else:
        groups = choice.groups(shared.plan, modules[:: len(settings.subproblems)], shared.state)
    if stored is None and processes.is_main:
        warn_of_schedule(settings, groups[0].scheduler)
    reference = None if settings.start is None else settings.start.reference
    history = EpochHistory(len(modules), len(problem.tasks), settings.device, reference)
    models = Execution(settings, splits, plan, choice, groups, history, losses, shared)

    run_state = RunState(settings, train, models, history)
    own_folder = folder if processes.is_main else None
    checkpoints = Checkpoints(own_folder, settings, run_state, checkpoint_seconds, resumes_inside=train.resumes_inside)
    reporting = Reporting(settings, run_state, listeners or [], own_folder)
    identity = RunIdentity(settings, splits, untrained, groups[0], first_losses)
    part = processes.rank if problem.train is not None else 0  # without data, all do the same
    seed_everything(rank_seed(settings.seeds[0], part))
    finished = None
    if folder is not None or processes.is_distributed:
        config = identity.config(settings)
        processes.check_same(config)
        if folder is not None:
            config = {**config, "start": processes.broadcast(lambda: identity.start(config))}
            if not processes.is_distributed:  # otherwise data have no checksum
                _check_workers(splits, config)
    set_own_states(settings.sources, untouched)  # checks and trials drew from them
    if folder is not None and stored is None:
        checkpoints.begin(folder, config, identity.scaling())
    elif folder is not None and stored is not None:
        finished = checkpoints.resume(folder, stored, config, identity)
    return TrainingRun(
        settings,
        splits,
        run_state,
        checkpoints,
        reporting,
        identity,
        milestones,
        separate_graphs=separate_graphs,
        finished=finished,
    )


def _stored_choice(folder: RunFolder, stored: Mapping[str, Any]) -> ExecutionPlan | None:
    """The strategy of a stored run, which is not measured again; None if it has none."""
    if "taken" not in stored:
        return None
    with explain_mismatch(folder.path / CONFIG):
        return ExecutionPlan.of(stored["taken"])


def _check_workers(splits: Mapping[str, Batches], config: Mapping[str, Any]) -> None:
    """Refuse random samples of workers whose random states no checkpoint has."""
    for name, batches in splits.items():
        if batches.keeps_workers and config["data"][name] is None:
            raise ValueError(
                f"'{name}' must be a DataLoader with persistent_workers=False for a run that is stored, as its samples "
                "are random: workers that live longer than an epoch would draw others after a resume. Got "
                "persistent_workers=True."
            )


def _make_splits(settings: Settings) -> dict[str, Batches]:
    """The data of each split that the problem has; "train" also for a problem without any."""
    problem = settings.problem
    return {
        name: make_batches(
            name,
            getattr(problem, name),
            batch_size=settings.batch_size,
            device=settings.device,
            dtype=settings.dtype,
            partition=settings.shares,
        )
        for name in ("train", "val", "test")
        if name == "train" or getattr(problem, name) is not None
    }


def _make_plan(settings: Settings, total: int) -> Plan:
    """What all groups of models have in common."""
    return Plan(
        settings.problem,
        settings.method,
        settings.optimizer,
        settings.scheduler_for(total),
        settings.clip_norm,
        settings.autocast,
        settings.compiler,
        settings.schedule,
        settings.shares,
        len(settings.subproblems),
        settings.average,
    )
