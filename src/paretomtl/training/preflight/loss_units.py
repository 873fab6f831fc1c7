"""Losses of untrained models on the first batch: whether they have different units, and what ``scale="auto"`` does."""

from __future__ import annotations

import contextlib
import copy
import itertools
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from paretomtl._support.random_state import isolated_randomness, model_seed
from paretomtl.engine.accumulate import Sums, count_labels
from paretomtl.engine.batches.partition import MicroBatches
from paretomtl.engine.models.modules import make_modules, named_tensors
from paretomtl.engine.models.single import Single
from paretomtl.methods import Method, State, slice_state
from paretomtl.methods.loss_scaling import UNITS_DIFFER, auto_factors, format_ratio, largest_ratio
from paretomtl.training.settings.settings import Settings

FirstLosses: TypeAlias = list[list[list[float]]]
"""By seed, model and task."""

UNITS_WARNING = "first losses differ by a factor of "
"""How the warning about units begins."""

_UNLESS = "A loss that begins at its best, such as a fairness gap, is better left as it is."
_MODELS = 3  # of each seed, trained or not: one start may be a chance, three hardly are
_MORE_BATCHES = 10  # that are searched for tasks without labels in the first


def settles_scale(method: Method) -> bool:
    """Whether a method's scale follows from the first losses of a run."""
    return getattr(method, "scale", None) == "auto"


def measure_first_losses(settings: Settings, modules: Sequence[nn.Module], batches: Iterator[Any]) -> FirstLosses:
    """For each seed the absolute losses ``[n, m]`` of its first models, untrained; empty if they are not needed.

    Every shard of a run, and every process, measures the same models and batches.

    Args:
        settings: of the run.
        modules: those to be trained, which are not changed.
        batches: of the first epoch, from the first one on.
    """
    wanted = settles_scale(settings.method)
    seeds = settings.seeds if wanted else settings.seeds[:1] if settings.method.minds_units else []
    losses_of = [[torch.full((len(settings.problem.tasks),), torch.nan).double()] * _MODELS for _ in seeds]
    for batch in itertools.islice(batches, 1 + _MORE_BATCHES) if seeds else ():
        for s, seed in enumerate(seeds):
            for k, known in enumerate(losses_of[s]):
                losses = _losses(settings, _model(settings, modules, seed, k), batch)
                losses_of[s][k] = torch.where(known.isnan(), losses, known)
        if not any(bool(row.isnan().any()) for rows in losses_of for row in rows):
            break
    return [[row.abs().nan_to_num(0.0, 0.0, 0.0).tolist() for row in rows] for rows in losses_of]


def initial_state(settings: Settings, first: FirstLosses) -> State:
    """The state of the method before the first step, of all models, with a scale that follows from first losses."""
    methods = [settings.method] * len(settings.seeds)
    if settles_scale(settings.method):
        methods = [settings.method.with_first_losses(rows) for rows in first]
    parts = [
        slice_state(method.init(rows), settings.subproblems)
        for method, rows in zip(methods, settings.vectors, strict=True)
    ]
    return {name: torch.cat([part[name] for part in parts]).to(settings.device) for name in parts[0]}


def warn_of_units(settings: Settings, first: Sequence[Sequence[Sequence[float]]]) -> None:
    """Warn before training that losses have different units, if the method does nothing about it."""
    if not settings.method.minds_units or not first or not settings.shares.processes.is_main:
        return
    large, small, ratio = largest_ratio(first[0])
    if ratio <= UNITS_DIFFER:
        return
    values = ", ".join(f"{settings.problem.tasks[i]} {first[0][0][i]:.3g}" for i in (large, small))
    warnings.warn(
        f"{UNITS_WARNING}{format_ratio(ratio)} ({values}): the larger one decides directions and weights. "
        f"{_remedy(settings.method)}",
        stacklevel=5,
    )


def scale_in_words(first: Sequence[Sequence[float]]) -> str:
    """The effect of ``scale="auto"`` on the losses of a seed, in words."""
    means = [sum(column) / len(first) for column in zip(*first, strict=True)]
    values, ratio = ", ".join(f"{mean:.3g}" for mean in means), format_ratio(largest_ratio(first)[2])
    if auto_factors(first) == (1.0,) * len(means):
        return f"losses were left as they are: first values ({values}) differed by a factor of {ratio} at most"
    return f"losses were divided by their first values ({values}): they differed by a factor of {ratio}"


def _remedy(method: Method) -> str:
    if hasattr(method, "scale"):
        name = type(method).__name__
        made = f'{name}("{method.source}", scale="auto")' if hasattr(method, "source") else f'{name}(scale="auto")'
        return f"Divide each by its first value: {made}, or --set scale=auto. {_UNLESS}"
    return f"Divide each by its first value in 'losses'. {_UNLESS}"


def _model(settings: Settings, modules: Sequence[nn.Module], seed: int, k: int) -> nn.Module:
    """Model k of a seed, untrained, even if another shard trains it, no run does, or it has another start."""
    if k in settings.subproblems and settings.start is None and settings.branch is None:
        at = settings.seeds.index(seed) * len(settings.subproblems) + settings.subproblems.index(k)
        return copy.deepcopy(modules[at])
    (made,) = make_modules(settings.problem, [model_seed(seed, k)], settings.device, settings.dtype)
    settings.shares.processes.broadcast_tensors([tensor.detach() for tensor in named_tensors(made).values()])
    return made


def _losses(settings: Settings, module: nn.Module, batch: Any) -> Tensor:
    """Losses ``[m]`` of a batch, or of all its parts in all processes; NaN without labels."""
    models = Single(settings.problem, module)
    cut = batch if isinstance(batch, MicroBatches) else MicroBatches((batch,), (1,))
    precision: Any = contextlib.nullcontext()
    if settings.autocast is not None:
        precision = torch.autocast(settings.device.type, dtype=settings.autocast)
    parts = []
    with isolated_randomness(), torch.no_grad(), precision:
        for part, samples in zip(cut.parts, cut.samples, strict=True):
            losses = models.losses(part).detach()
            parts.append(Sums.of(losses, *count_labels(models, losses, part, samples), []))
    summed = parts[0]
    for part in parts[1:]:
        summed = summed.plus(part)
    return summed.all_reduce(settings.shares.processes).means().double().cpu()
