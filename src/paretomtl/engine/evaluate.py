"""Evaluation: losses and metrics of all models on a whole split."""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from paretomtl._support.argument_checks import quote
from paretomtl.engine.batches.base import Batches
from paretomtl.engine.batches.structure import ChangedBatchError, count_samples, map_tensors, samples_by_task, unchanged
from paretomtl.engine.error_hints import came_from
from paretomtl.engine.models.base import Models
from paretomtl.engine.models.single import Single
from paretomtl.engine.processes import ProcessGroup
from paretomtl.problems import Problem
from paretomtl.problems.metrics import measure
from paretomtl.problems.per_task import TaskBatch


@dataclass(frozen=True)
class Scores:
    """Losses ``[K, m]`` and metrics ``[K]`` each, on the CPU."""

    losses: Tensor
    metrics: dict[str, Tensor]


class Evaluated(Protocol):
    """Models that can be evaluated, such as a group in training."""

    @property
    def models(self) -> Models: ...

    @property
    def active(self) -> Tensor:
        """``[K]``, on the device of the models."""

    def precision(self) -> contextlib.AbstractContextManager[Any]:
        """The context of a forward pass."""


@torch.no_grad()
def evaluate(
    problem: Problem,
    groups: Sequence[Evaluated],
    batches: Batches,
    *,
    at_once: bool = True,
    processes: ProcessGroup | None = None,
    split: str = "a split",
) -> Scores:
    """Evaluate every model in eval mode, once on every sample.

    The loss of a task is the mean over the batches in which it has labels, weighted by samples. It is NaN if there is
    no such batch, and for a model without a loss in one of them. ``at_once`` takes more samples at a time than training
    does, if the data are on a GPU. Several processes take a share of the samples each, and get the scores of all.
    """
    processes = processes or ProcessGroup()
    tallies = [_Tally(problem, group) for group in groups]
    targets: list[Any] = []
    with contextlib.ExitStack() as modes:
        for group in groups:
            modes.enter_context(group.models.evaluating())
        models = max(group.models.count for group in groups) if at_once else 2**62
        for number, batch in enumerate(batches.in_order(models, shared=True), 1):
            with came_from(f"batch {number} of {split}, on which losses are measured", batch):
                measured = [tally.forward(batch) for tally in tallies]
            labels = _labels(problem, batch, measured)
            for tally, losses in zip(tallies, measured, strict=True):
                tally.add(losses, labels)
            if tallies[0].collects:
                targets.append(problem.split_batch(batch)[1])
        rest = _all_of(batches) if problem.metrics and problem.takes_model else targets
        if tallies[0].collects:
            rest = _gather_parts(processes, rest, groups[0].active.device)
        for tally in tallies:
            tally.all_reduce(processes)
        parts = [tally.metrics(rest, lambda: _all_of(batches)) for tally in tallies]
    losses = torch.cat([tally.losses() for tally in tallies])
    metrics = {name: torch.cat([values[name] for values in parts]) for name in problem.metrics}
    raised = {name for tally in tallies for name in tally.raised}
    if processes.is_main:
        _warn_of_unknown(losses, {name: values for name, values in metrics.items() if name not in raised}, split)
    return Scores(losses, metrics)


def _warn_of_unknown(losses: Tensor, metrics: Mapping[str, Tensor], split: str) -> None:
    """Warn of metrics that are NaN in all models with finite losses: often they forget that labels are missing."""
    healthy = losses.isfinite().all(-1)
    names = [name for name, values in metrics.items() if bool(healthy.any()) and bool(values[healthy].isnan().all())]
    if names:
        warnings.warn(
            f"metrics {names} are NaN on {split} for all models. If labels are missing, a metric must leave out "
            "samples without one, as its loss does; otherwise it is not defined there.",
            stacklevel=2,
        )


class _Tally:
    """Sums over the batches for the models of one group."""

    def __init__(self, problem: Problem, group: Evaluated) -> None:
        self.collects = bool(problem.metrics) and not problem.takes_model
        self.raised: set[str] = set()
        self._problem = problem
        self._group = group
        self._models = group.models
        shape = (group.models.count, len(problem.tasks))
        self._sums = torch.zeros(shape, dtype=torch.float64, device=group.active.device)
        self._counts = self._sums.clone()
        self._outputs: list[Any] = []

    def forward(self, batch: Any) -> Tensor:
        """The losses ``[K, m]`` of a batch, whose outputs are kept for metrics."""
        with self._group.precision():
            losses, outputs = self._models.forward(batch)
        if self.collects:
            self._outputs.append(map_tensors(Tensor.detach, outputs))
        return losses.detach().double().reshape(self._models.count, -1)

    def add(self, losses: Tensor, labels: Tensor) -> None:
        """Add losses ``[K, m]``, weighted by the samples that have labels, ``[m]``."""
        self._sums = self._sums + torch.where(labels > 0, losses * labels, 0.0)
        self._counts = self._counts + labels

    def all_reduce(self, processes: ProcessGroup) -> None:
        """Sum over all processes."""
        if not processes.is_distributed:
            return
        self._sums, self._counts = processes.all_reduce_tensor(torch.stack([self._sums, self._counts]))
        if self.collects:
            self._outputs = _gather_parts(processes, self._outputs, self._sums.device)

    def losses(self) -> Tensor:
        tensors = [*self._models.trained.values(), *self._models.tensors().values()]  # all may be frozen
        dtype = next((tensor.dtype for tensor in tensors if tensor.is_floating_point()), torch.float32)
        return (self._sums / self._counts).to("cpu", dtype)

    def metrics(self, rest: list[Any], read_again: Callable[[], list[Any]]) -> dict[str, Tensor]:
        """All metrics of all models; ``rest`` are the batches, or their targets."""
        count = self._models.count
        values = {name: torch.full((count,), torch.nan, dtype=torch.float64) for name in self._problem.metrics}
        for k in range(count if values else 0):
            for name, metric in self._problem.metrics.items():
                try:
                    with unchanged(rest, "metrics"):
                        value = _one_number(measure(self._problem, metric, *self._seen_by_metrics(k, rest)))
                    values[name][k] = value
                except Exception as error:  # a metric must not cost the models
                    if isinstance(error, ChangedBatchError) and self._problem.takes_model:
                        rest[:] = read_again()
                    text = f"metric '{name}' raised {type(error).__name__}: {str(error).rstrip('.')}. Its value is NaN."
                    warnings.warn(text, stacklevel=2)
                    self.raised.add(name)
        return values

    def _seen_by_metrics(self, k: int, rest: list[Any]) -> tuple[Any, Any]:
        if self._problem.takes_model:
            return self._models.extract(k, frozen=True), rest  # a metric may change it
        outputs = [_one_output(self._models, part, k) for part in self._outputs]
        return concatenate(outputs), concatenate(rest)


def _labels(problem: Problem, batch: Any, losses: Sequence[Tensor]) -> Tensor:
    """How many samples of a batch have a label for each task, ``[m]``: none where no model has a loss."""
    labels, device = problem.labels_in(batch), losses[0].device
    samples = samples_by_task(batch).to(device) if isinstance(batch, TaskBatch) else count_samples(batch)
    if labels is not None:
        labels = labels.to(device, torch.float64)
        return torch.where(samples > 0, labels, 0.0) if isinstance(samples, Tensor) else labels
    present = torch.cat([losses.isnan().logical_not() for losses in losses]).any(0).double()
    return present * samples * problem.labelled_share(batch)


def _all_of(batches: Batches) -> list[Any]:
    """All batches of a split, without the tasks for which a batch only has stand-ins."""
    return [batch.without_stand_ins() if isinstance(batch, TaskBatch) else batch for batch in batches.in_order()]


def _gather_parts(processes: ProcessGroup, parts: list[Any], device: torch.device) -> list[Any]:
    """The parts of all processes, in their order."""
    if not processes.is_distributed:
        return parts
    gathered = [part for others in processes.gather(parts) for part in others]
    return [map_tensors(lambda tensor: tensor.to(device), part) for part in gathered]


def _one_output(models: Models, outputs: Any, k: int) -> Any:
    return outputs if isinstance(models, Single) else map_tensors(lambda tensor: tensor[k], outputs)


def concatenate(parts: Sequence[Any]) -> Any:
    """The batches' tensors, one after another, in the structure of a batch."""
    first = parts[0]
    if isinstance(first, Tensor):
        return torch.cat([part if part.ndim else part[None] for part in parts])
    if isinstance(first, Mapping):
        return {name: concatenate([part[name] for part in parts]) for name in first}
    if isinstance(first, (tuple, list)):
        return tuple(concatenate(list(column)) for column in zip(*parts, strict=True))
    return list(parts)


def _one_number(value: Any) -> float:
    """The value of a metric, which must be one number."""
    shape = list(getattr(value, "shape", ()))
    if math.prod(shape) != 1:
        raise ValueError(f"it must return one number. Got shape {shape} instead")
    try:
        return float(value)
    except (TypeError, ValueError):
        raise TypeError(f"it must return one number. Got {quote(value)} instead") from None
