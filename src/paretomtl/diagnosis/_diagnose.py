"""The short runs behind a diagnosis: joint training with equal weights, and a network for each task."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from paretomtl._support.argument_checks import as_whole, check_count, quote
from paretomtl._support.error_notes import note_kept
from paretomtl._support.splits import ranking_split
from paretomtl.diagnosis._measurements import usual_length
from paretomtl.diagnosis._preferences import end_weights
from paretomtl.diagnosis._result import Diagnosis
from paretomtl.diagnosis.units import weight_factors
from paretomtl.front import Front
from paretomtl.methods import Method
from paretomtl.methods.loss_scaling import as_scale
from paretomtl.problems import OptimizerFactory, Problem
from paretomtl.training import Strategy
from paretomtl.training.fit_to_end import fit_seeds_to_end
from paretomtl.training.probe import Measure, Plain
from paretomtl.training.progress.display import ProgressStyle
from paretomtl.training.progress.study import StudyProgress
from paretomtl.training.progress.time_left import Tally
from paretomtl.training.untrained import mean_untrained_losses


def diagnose(
    problem: Problem,
    *,
    epochs: int | None = None,
    seeds: int | Sequence[int] = 3,
    split: str | None = None,
    batch_size: int | None = None,
    optimizer: OptimizerFactory | None = None,
    strategy: Strategy = "auto",
    device: torch.device | str | None = None,
    precision: str = "float32",
    scale: Any = None,
    log: Callable[[str], None] | None = None,
    progress: ProgressStyle = "auto",
) -> Diagnosis:
    """Measure in a short run whether a front is worth it, which preferences to try, and whether losses need scaling.

    For each seed, it trains one model with equal weights, and one network for each task. The joint model gives the
    cosines and norms of the task gradients. The difference between its losses and those of the separate networks is the
    cost of joint training. If a front is worth it, models near its ends are trained, too, and preferences are proposed
    between them. The rules of the verdict, and their limits, are in docs/start/do-i-need-it.md.

    Args:
        problem: models, losses and data.
        epochs: how long each model is trained; by default a tenth of the recipe's epochs, at least 3, or 5 without a
            recipe; 1000 steps for a problem without data.
        seeds: how many, or which ones. A verdict needs at least two, and more if results vary.
        split: the split on which joint training and separate networks are compared. By default it is validation, or
            training if there is no validation; "test" must be requested.
        batch_size: this, ``optimizer``, ``strategy``, ``device`` and ``precision`` are as in :func:`paretomtl.fit`.
        optimizer: the recipe's if left out.
        strategy: how models are trained together.
        device: the GPU if there is one.
        precision: the precision of parameters and data.
        scale: multiplies the losses in all runs: "auto", "first", one factor per task, or an ideal and a worst point.
            Gradients, weights and proposed directions are then those of scaled losses; losses are shown unscaled.
        log: called with a line before each run.
        progress: the display of all runs together, with the time left: "rich", "plain" or "quiet"; "auto" as in
            :func:`paretomtl.fit`. The time left includes models near the ends of a front, which may not be needed.

    It stores nothing: Ctrl-C or SIGTERM raises KeyboardInterrupt, and the next call starts over.

    Example:
        >>> import paretomtl as pm
        >>> diagnosis = pm.diagnose(pm.problems.quadratic(), device="cpu")
        >>> diagnosis.verdict.word, diagnosis.verdict.preferences
        ('front', 5)
        >>> [round(part, 1) for part in diagnosis.verdict.directions[0]]  # nearly all of the loss in the first task
        [1.0, 0.0]
    """
    if not isinstance(problem, Problem):
        raise TypeError(f"'problem' must be a Problem. Got {type(problem).__name__} instead.")
    seeds = as_whole(seeds)
    if not isinstance(seeds, Iterable) or isinstance(seeds, str):
        seeds = check_count("seeds", seeds)
        seeds = range(seeds)
    splits = ["train", *(name for name in ("val", "test") if getattr(problem, name) is not None)]
    split = split or ranking_split(splits)
    if split not in splits:
        raise ValueError(f"'split' must be one that the problem has: {', '.join(splits)}. Got {quote(split)} instead.")
    epochs = usual_epochs(problem) if epochs is None else epochs
    epochs = check_count("epochs", epochs)
    options: dict[str, Any] = {
        "seeds": list(seeds),
        "epochs": epochs,
        "batch_size": batch_size,
        "optimizer": optimizer,
        "strategy": strategy,
        "device": device,
        "precision": precision,
    }
    scale = as_scale(scale, ("auto", "first"), "diagnose")
    tasks = len(problem.tasks)
    models = {"joint training": 1, "separate networks": tasks, "near the ends of the front": tasks}
    unit = "steps" if problem.train is None else "epochs"
    long = f"{epochs} {unit if epochs != 1 else unit[:-1]}"
    names = [f"{name}: {len(options['seeds']) * each} models, {long}" for name, each in models.items()]
    tally = Tally(names, ["joint", "separate", "separate"])
    try:
        with StudyProgress(tally, progress) as display:
            return _diagnose(problem, split, scale, options, log or (lambda text: None), display)
    except KeyboardInterrupt as error:
        note_kept(error, "A diagnosis stores nothing: it starts over. Fewer epochs or seeds make it shorter.", "none")
        raise


def _diagnose(
    problem: Problem,
    split: str,
    scale: Any,
    options: dict[str, Any],
    log: Callable[[str], None],
    display: StudyProgress,
) -> Diagnosis:
    """Train the short runs and collect their measurements."""

    def train(i: int, method: Method, preferences: int | Tensor) -> list[Front]:
        log(display.tally.names[i])
        display.begin(i)
        fronts = fit_seeds_to_end(problem, method, preferences, **options)
        display.end(i)
        return fronts

    tasks, began = len(problem.tasks), time.monotonic()
    with warnings.catch_warnings():
        # The verdict reports these.
        warnings.filterwarnings("ignore", "'.*' has no labels for tasks")
        warnings.filterwarnings("ignore", "tasks .* had no labels in any batch")
        warnings.filterwarnings("ignore", "losses or gradients of models .* were not finite")
        joint = train(0, Measure(scale=scale), 1)
        factors = _factors(joint)
        plain = Plain(scale=factors)
        alone = train(1, plain, torch.eye(tasks))
    measured = {name: torch.cat([front.measured[name] for front in joint]) for name in joint[0].measured}
    if joint[0].scale is not None:
        c = torch.cat([front.scale for front in joint if front.scale is not None])
        ideal = c.new_zeros(tasks) if joint[0].ideal is None else c.new_tensor(joint[0].ideal)
        measured |= {"first": measured["first"] / c + ideal, "norms": measured["norms"] / c[:, None]}
    first = _over_seeds(measured["first"], measured["steps"].sum(1) > 0)
    before = mean_untrained_losses(problem, options["seeds"], options["batch_size"], options["device"])
    start = first if before is None else torch.where(before.isfinite(), before, first)
    fronts = [*joint, *alone]
    diagnosis = Diagnosis(
        problem=problem.name,
        tasks=tuple(problem.tasks),
        epochs=options["epochs"],
        seeds=tuple(options["seeds"]),
        split=split,
        cosines=measured["cosines"].sum(0) / measured["pairs"].sum(0),
        cosines_by_seed=measured["cosines"] / measured["pairs"],
        negative=measured["negative"].sum(0) / measured["pairs"].sum(0),
        norms=measured["norms"].sum((0, 1)) / measured["steps"].sum((0, 1)),
        first=first,
        last=_joint(joint, "train").mean(0),
        learnt=(start - _own(alone, "train").mean(0)) / start.abs(),
        joint=_joint(joint, split),
        alone=_own(alone, split),
        models=sum(map(len, fronts)),
        broken=sum(list(front.status).count("non-finite") for front in fronts),
        seconds=time.monotonic() - began,
        without_data=problem.train is None,
        planned=problem.recipe.epochs,
        factors=factors,
    )
    if diagnosis.verdict.word != "front":
        return diagnosis
    weights = end_weights(weight_factors(diagnosis))
    with warnings.catch_warnings():
        # Then no directions are proposed.
        warnings.filterwarnings("ignore", "losses or gradients of models .* were not finite")
        near = train(2, plain, weights / diagnosis.units)
    ends = torch.stack([front.losses["train"].double() for front in near])
    return replace(diagnosis, ends=ends, seconds=time.monotonic() - began)


def usual_epochs(problem: Problem) -> int:
    """The default number of epochs."""
    return usual_length(problem.recipe.epochs, without_data=problem.train is None)


def _factors(fronts: Sequence[Front]) -> tuple[float, ...] | None:
    """The factors of the losses, their mean over seeds rounded to six digits; None if losses are not scaled."""
    scales = [front.scale for front in fronts if front.scale is not None]
    return tuple(float(f"{value:.6g}") for value in torch.cat(scales).mean(0).tolist()) if scales else None


def _joint(fronts: Sequence[Front], split: str) -> Tensor:
    return torch.stack([front.losses[split][0].double() for front in fronts])


def _own(fronts: Sequence[Front], split: str) -> Tensor:
    """The loss of each network in its own task, ``[S, m]``."""
    return torch.stack([front.losses[split].double().diagonal() for front in fronts])


def _over_seeds(values: Tensor, known: Tensor) -> Tensor:
    return torch.where(known, values, 0.0).sum(0) / known.sum(0)
