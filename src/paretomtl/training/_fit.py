"""``fit`` and ``fit_seeds``: from a problem and a method to a front."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from paretomtl._support.argument_checks import check_flag, is_number, quote
from paretomtl._support.files.paths import as_path
from paretomtl.engine.processes import Distributed
from paretomtl.engine.strategy import Strategy
from paretomtl.front import Front
from paretomtl.methods import Method
from paretomtl.problems import OptimizerFactory, Problem, SchedulerFactory
from paretomtl.runs.folder import RunFolder
from paretomtl.training.budget import plan_by_time
from paretomtl.training.options import TrainingOptions
from paretomtl.training.progress.callbacks import Callback, check_callbacks
from paretomtl.training.progress.display import ProgressStyle, choose_style, make_progress, say
from paretomtl.training.run.loop import train_fronts
from paretomtl.training.settings.option_checks import check_problem
from paretomtl.training.settings.preference_rows import leaves_count_open
from paretomtl.training.settings.settings import make_settings
from paretomtl.training.settings.time_budget import TimeBudget
from paretomtl.training.shards.executor import Executor, SerialExecutor
from paretomtl.training.shards.run import is_sharded_run, train_in_shards


def fit(
    problem: Problem,
    method: str | Method = "auto",
    preferences: int | str | Tensor | Sequence[Sequence[float]] | None = None,
    *,
    epochs: int | None = None,
    minutes: float | None = None,
    batch_size: int | None = None,
    seed: int = 0,
    optimizer: OptimizerFactory | None = None,
    scheduler: SchedulerFactory | None = None,
    schedule: str = "epoch",
    strategy: Strategy = "auto",
    device: torch.device | str | None = None,
    precision: str = "float32",
    clip_norm: float | None = None,
    compile: bool | Mapping[str, Any] = False,
    keep: str = "last",
    patience: int | None = None,
    start: Front | None = None,
    branch: float | None = None,
    average: float | None = None,
    only: Sequence[int] | None = None,
    weigh_every: int = 1,
    workers: int | None = None,
    accumulate: int = 1,
    distributed: Distributed = True,
    executor: Executor | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    checkpoint_seconds: float = 30.0,
    progress: ProgressStyle = "auto",
    callbacks: Sequence[Callback] = (),
) -> Front:
    """Train one model per preference (paper, algorithm 1).

    Model k starts from (seed, k). In each step, all models see the same batch. Each computes its losses, its task
    gradients and their Gramian, asks the method for weights, and steps along the weighted gradients. A step takes one
    forward pass and m backward passes, or one backward pass for methods that need no Gramian.

    Args:
        problem: models, losses and data; for a problem without data an epoch is one step.
        method: a name such as "pareto-mtl", or a configured :class:`~paretomtl.methods.Method`. "auto" measures the
            front in the first quarter of the run, and then takes the best method that is known for it:
            :class:`~paretomtl.Auto`. ``front.decisions`` says what it chose.
        preferences: how many, spread as the method does by default; or the rows ``[K, m]`` themselves: directions of
            the loss vector for Pareto MTL, importances for linear scalarization. If left out, 5 for two tasks, 15 for
            three and 25 for more; one per task for "single-task", and 5 for methods whose rows are starts.
            "reachable" or "reachable:10", for methods of directions: the first quarter of the run measures which
            directions models reach, and the rest asks for those; see :class:`~paretomtl.methods.Reachable`.
        epochs: how long to train. This, ``batch_size``, ``optimizer`` and ``scheduler`` come from the problem's recipe
            by default.
        minutes: the time that this call may take. A trial measures the pace of the run. The number of models and of
            epochs follow from it where they are not given, and are printed before the run begins. A run that is slower
            than its trial ends when the time is over, with a front of its models so far. Not for shards.
        batch_size: for tensors and Datasets; a DataLoader has its own.
        seed: of the starts, the order of the data, and dropout.
        optimizer: makes an optimizer from named parameters, such as ``lambda p: torch.optim.SGD(p, lr=0.1)``; Adam with
            its defaults if left out. See :data:`~paretomtl.problems.OptimizerFactory`.
        scheduler: makes a learning rate scheduler of ``torch.optim`` from ``(optimizer)``, or from ``(optimizer,
            total)``, where total is how many times it will step.
        schedule: whether the scheduler steps each "epoch" or each "step".
        strategy: "sequential" trains one model after another, batch by batch; "batched" stacks them and runs them under
            ``torch.vmap``, after checking that one step agrees with the models alone; "graphed" captures the whole step
            in a CUDA graph, for training data given as tensors, after checking that replays agree with launched steps.
            The capture freezes numbers that Python code changes from step to step. It captures a stack, or ordinary
            modules side by side if these cannot be stacked, or have wide convolutions and are measured to be faster.
            "auto" uses "graphed" if possible, and otherwise times the other two; models that can be neither captured
            nor stacked train one after another. The front says which strategy was used, and why. A stack that does not
            fit into the memory of a GPU is cut into stacks that do. If a stack fails in the middle of a run, its models
            go on one after another from the failed step, with a warning.
        device: where to train; the GPU if there is one.
        precision: of parameters and floating-point data, "float32" or "float64". On a GPU, "tf32" multiplies float32
            numbers with ten bits of mantissa, and "float32" with all, regardless of torch's own setting; "bfloat16"
            keeps float32 parameters and runs forward passes under autocast.
        clip_norm: the largest norm of each model's gradient, after its tasks were weighed.
        compile: run the models through ``torch.compile``; a mapping is passed on to it. Where compiled steps are not
            finite, or not like others, models train without it, with a warning.
        keep: "last", or "best": each model as it was at the end of its best epoch on validation. With directions that
            is the one in its own region with the lowest mean loss; if there is none, the one nearest to the region.
            With importances, it is the one with the lowest weighted mean. An epoch that another one dominates is never
            kept: even in its region, it is replaced by one that is better in every task. The test split is never used.
        patience: end the run when no model has improved on validation for this many epochs, by the rule of ``keep``;
            best together with ``keep="best"``. The front is complete, and its ``ended`` says why. Not for shards, which
            do not see each other's models.
        start: a front of the same tasks and model, whose weights the models begin with: model k with those of
            the model that had the same preference, or the nearest one by angle; for methods without preferences, with
            those of model k. Optimizer, schedule, steps, history and the state of the method start fresh. The
            default reference of the hypervolume is that of this front.
        branch: the share of the run that one model trains for all, with equal weights, such as 0.25. It is then copied
            for each preference, together with its optimizer, and the method begins there. With 0.25, five models take
            0.8 of the time. Not for methods whose models differ by their start alone. Shards of an executor repeat the
            shared part each.
        average: evaluate and store a running mean of each model's weights, which reaches back over this share of the
            steps so far, such as 0.1. It pays with a constant learning rate, and costs a little with one that decays.
            Statistics of batch normalisation are estimated anew for each evaluation; integer buffers are copied.
        only: train some of the models, against the regions of all.
        weigh_every: compute the task weights every N steps. Steps in between take one backward pass with the last
            weights, negative ones as zero. 1 is the method itself; more is faster, and an approximation.
        workers: how many models step side by side on a CPU, each in a thread with its share of torch's threads; as many
            graphs are in memory at a time. Models whose steps draw random numbers still take turns. None: with "auto",
            one for each thread of torch if that was measured to be faster; otherwise 1. Losses differ from those of
            another number of workers by rounding.
        accumulate: cut the batch of a step into this many micro-batches, to need less memory. Losses and task gradients
            are averaged over them before the Gramian is taken, so that the step is that of the whole batch (except for
            batch normalisation and dropout). With a DataLoader, a step takes this many batches. Methods that need no
            Gramian then take m backward passes, too.
        distributed: True shares each batch with all processes that torchrun started, or that ``torch.distributed``
            connects; a process group, with some of them; False trains in this process alone. ``batch_size`` is that
            of all processes together. Every process returns the front that one process would with the same batches. The
            first one writes and prints.
        executor: trains the models in shards elsewhere, such as :class:`~paretomtl.RayExecutor` on a
            cluster; None for all of them here, as one. Each shard trains as it would among all.
        out: a folder for configuration, log, checkpoints and the front, which one process writes at a time. If it can
            no longer be written, training goes on with a warning, and the front is still returned.
        resume: go on from the last checkpoint in ``out``, if there is one, to the same result as without the
            interruption: bit by bit on the same machine. With a DataLoader, it resumes from the last whole epoch. If
            that checkpoint is damaged, it resumes from the one before, with a warning. ``epochs`` and ``patience`` may
            be raised, also for a finished run, which is then trained longer.
        checkpoint_seconds: the least time between two checkpoints; with a DataLoader they come at the end of epochs.
        progress: "rich", "plain" or "quiet"; "auto" draws a bar on a terminal, and prints a line now and then
            elsewhere, on standard error.
        callbacks: functions of a :class:`~paretomtl.training.Report`, called at the end of epochs. One that returns
            True stops the run after this epoch, as Ctrl-C does, but without a warning. One that raises ends it: the
            front so far is the ``front`` of the exception, and with ``out`` there is a checkpoint to resume from.

    An interrupt (Ctrl-C, or SIGTERM) ends training after the current step, with a checkpoint, a warning, and a front of
    the models so far, whose ``complete`` is False.

    Example:
        >>> import torch, paretomtl as pm
        >>> sgd = lambda parameters: torch.optim.SGD(parameters, lr=0.1)
        >>> front = pm.fit(pm.problems.synthetic(), preferences=3, epochs=200, optimizer=sgd)
        >>> front.in_region()
        tensor([True, True, True])
    """
    options = TrainingOptions.of(locals())
    check_problem(problem)
    check_flag("resume", resume)
    folder, budget = _run_folder(options), None
    if minutes is not None:
        options, budget = _plan(problem, options, folder)
    settings = make_settings(problem, options if executor is None else replace(options, device="cpu"))
    settings = replace(settings, budget=budget)
    if resume and out is None:
        raise ValueError("'resume' must come with 'out', the folder of the run. Got None for 'out'.")
    if not is_number(checkpoint_seconds) or not checkpoint_seconds >= 0:
        raise ValueError(f"'checkpoint_seconds' must not be negative. Got {quote(checkpoint_seconds)} instead.")
    check_callbacks(callbacks)
    if executor is not None and not isinstance(executor, Executor):
        raise TypeError(f"'executor' must be one, such as RayExecutor(). Got {quote(executor)} instead.")
    listeners = [*make_progress(progress), *callbacks] if settings.shares.processes.is_main else []
    if executor is None and folder is not None and is_sharded_run(folder.path):
        executor = SerialExecutor()
    if executor is not None:
        return train_in_shards(settings, device, executor, folder, resume, checkpoint_seconds, listeners)
    return train_fronts(settings, folder, resume, checkpoint_seconds, listeners)[0]


def fit_seeds(
    problem: Problem,
    method: str | Method = "auto",
    preferences: int | str | Tensor | Sequence[Sequence[float]] | None = None,
    *,
    seeds: Sequence[int],
    epochs: int | None = None,
    batch_size: int | None = None,
    optimizer: OptimizerFactory | None = None,
    scheduler: SchedulerFactory | None = None,
    schedule: str = "epoch",
    strategy: Strategy = "auto",
    device: torch.device | str | None = None,
    precision: str = "float32",
    clip_norm: float | None = None,
    compile: bool | Mapping[str, Any] = False,
    keep: str = "last",
    patience: int | None = None,
    branch: float | None = None,
    average: float | None = None,
    only: Sequence[int] | None = None,
    weigh_every: int = 1,
    workers: int | None = None,
    accumulate: int = 1,
    distributed: Distributed = True,
    progress: ProgressStyle = "auto",
    callbacks: Sequence[Callback] = (),
) -> list[Front]:
    """:func:`fit` for several seeds at once, which makes one stack of all their models.

    The fronts are those of :func:`fit`, except that dropout and the order of the data are those of the first seed for
    all. ``preferences`` may have shape ``[len(seeds), K, m]``, with other rows for each seed. ``progress`` and
    ``callbacks`` are as in :func:`fit`; a :class:`~paretomtl.training.Report` then has a row for every model of every
    seed, and the display shows means over seeds. ``patience`` is over the models of all seeds. There is no ``start``,
    because all seeds would train alike from it.

    An interrupt (Ctrl-C, or SIGTERM) ends training after the current step, with a warning and a front for each seed,
    whose ``complete`` is False. Nothing is stored: there is no checkpoint to resume from.

    Example:
        >>> import paretomtl as pm
        >>> rows = []
        >>> options = {"epochs": 1, "device": "cpu", "callbacks": [lambda report: rows.extend(report.seeds)]}
        >>> fronts = pm.fit_seeds(pm.problems.quadratic(), preferences=2, seeds=[4, 7], **options)
        >>> rows
        [4, 4, 7, 7]
    """
    settings = make_settings(problem, TrainingOptions.of(locals()), seeds)
    check_callbacks(callbacks)
    listeners = [*make_progress(progress), *callbacks] if settings.shares.processes.is_main else []
    return train_fronts(settings, None, False, 0.0, listeners)


def _plan(problem: Problem, options: TrainingOptions, folder: RunFolder | None) -> tuple[TrainingOptions, TimeBudget]:
    """Plan a run by its time, and say how."""
    if options.executor is not None:
        raise ValueError(
            f"'minutes' must be None for a run in shards, whose workers differ. Got {options.minutes} instead: give "
            "'epochs'."
        )
    if options.epochs is not None and not leaves_count_open(options.preferences):
        raise ValueError(
            "'minutes' must leave the number of models or of epochs open, which follow from the time. Got "
            f"{quote(options.minutes)} together with 'preferences' and 'epochs': leave out one of the three."
        )
    stored = folder.peek() if folder is not None and options.resume else None
    options, budget = plan_by_time(problem, options, stored)
    if choose_style(options.progress) != "quiet":
        say(budget.plan)
    return options, budget


def _run_folder(options: TrainingOptions) -> RunFolder | None:
    """The folder of the run; None for a run that stores nothing."""
    if options.out is None or isinstance(options.out, RunFolder):  # the command line makes one, with its options
        return options.out
    return RunFolder(as_path("out", options.out))
