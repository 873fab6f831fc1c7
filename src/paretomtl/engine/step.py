"""One step (paper, algorithm 1): measure the batch, weigh the tasks, update the models.

Nothing in a step waits for the device: there is no ``.item()`` and no Python branch on a tensor. Tests prove it by
``torch.compile(fullgraph=True)`` and by CUDA's sync debug mode. The same function serves one model and a stack,
launched and captured, so that strategies differ in nothing else.

A task without labels is NaN for all models, and is left out of the step. A model that broke is the only one with NaN.
It goes back to its parameters one step ago and stays there. Within a stack, a step sees the difference. For models one
after another, both look the same until all have stepped. Then all models are compared. Those that differ go back to
their values two steps ago, for which a second copy is kept, and are frozen. For a problem without data, every NaN is a
break.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import torch
from torch import Tensor

from paretomtl.engine.accumulate import measure_micro_batches
from paretomtl.engine.batches.partition import MicroBatches
from paretomtl.engine.coupling import weigh_fronts
from paretomtl.engine.gradients import zero
from paretomtl.engine.measure import Measurement, find_healthy, matches_majority, measure_batch
from paretomtl.engine.model_group import Group, split_by_group
from paretomtl.engine.rollback import rollback_on_failure
from paretomtl.methods import Step

T = TypeVar("T")


class Run(Protocol):
    """Calls a function with 0, 1, ... up to a count, adds the results to a list in that order, and returns it."""

    def __call__(self, function: Callable[[int], T], count: int, results: list[T], /) -> list[T]: ...


def run_in_order(function: Callable[[int], T], count: int, results: list[T]) -> list[T]:
    """Make one call after another; results before an error stay in the list."""
    results.extend(map(function, range(count)))
    return results


def train_step(
    groups: Sequence[Group], given: StepInput, run: Run = run_in_order, done: list[StepRecord] | None = None
) -> list[StepRecord]:
    """Advance every active model by one step (paper, algorithm 1), and freeze those that broke.

    Groups step one after another. Under a coupled method they step together: it weighs all rows of a front at once, so
    that all groups are measured, and all gradients held, before any is weighed.

    Args:
        groups: all models, in order.
        given: the batch, and the place of the step in the run.
        run: how a function of each group is called: one after another, in threads, or on streams.
        done: records of the first models, which have taken this step already; it grows by those of the others.
    """
    records = [] if done is None else done
    rest = groups[sum(len(record.losses) for record in records) :]
    if groups[0].method.coupled:
        records += advance(rest, given, run)
    else:
        run(lambda k: advance(rest[k : k + 1], given)[0], len(rest), records)
    if given.batch is not None and len(groups) > 1:
        _freeze_broken(groups, records)
    for group in groups:
        if group.average is not None:  # the values before this step, which all groups now know to be finite
            group.average.add(group.previous)
    return records


def advance(groups: Sequence[Group], given: StepInput, run: Run = run_in_order) -> list[StepRecord]:
    """Measure, weigh, update: one step of groups that are weighed together."""
    count = len(groups)
    with rollback_on_failure(groups):
        measured = run(lambda k: measure(groups[k], given), count, [])
        weights = weigh(groups, measured, given)
        changes = run(lambda k: measured[k].combine(weights[k]), count, [])
    return run(lambda k: update(groups[k], measured[k], weights[k], changes[k], given), count, [])


def measure(group: Group, given: StepInput) -> Measurement:
    """Losses, task gradients and Gramian: one forward pass, and m backward passes where the method needs them."""
    if isinstance(given.batch, MicroBatches):
        return measure_micro_batches(group, given.batch, weigh=given.weigh)
    return measure_batch(group, given.batch, weigh=given.weigh, labelled=given.labelled)


def weigh(groups: Sequence[Group], measured: Sequence[Measurement], given: StepInput) -> list[Tensor]:
    """The weights of each group, from the method or the last step that weighed; only this advances the method's state.

    Negative weights raise a loss until its constraint is met. Kept for steps that do not weigh, they would keep raising
    it, and models would diverge. There they count as zero.
    """
    if not given.weigh and groups[0].weights is not None:
        return [_kept_weights(group, each) for group, each in zip(groups, measured, strict=True)]
    if groups[0].method.coupled:
        alone = given.batch is None
        return weigh_fronts(groups, measured, number=given.number, total=given.total, alone=alone)
    weights = []
    for group, each in zip(groups, measured, strict=True):
        step = Step(each.losses, each.gramian, each.present, given.number, given.total)
        alpha, group.state = group.method.weigh(step, group.state)
        weights.append(alpha)
    return weights


def update(
    group: Group, measured: Measurement, weights: Tensor, changes: list[Tensor | None], given: StepInput
) -> StepRecord:
    """Take one step of the optimizer along the weighted gradients; models that are not finite are frozen before it."""
    group.keep_weights(weights, measured.present, weighed=given.weigh)
    if not measured.known:
        group.active = group.active & find_healthy(measured, group.active, alone=given.batch is None)
    group.take_step(changes, known=measured.known)
    weights = torch.where(group.active[:, None], weights, zero(weights.device))
    return StepRecord(measured.losses, weights, measured.present, measured.counts)


@dataclass(frozen=True)
class StepInput:
    """The batch of a step, and the place of the step in the run.

    Attributes:
        batch: what all models see; None for a problem without data.
        number: how many steps came before; a tensor without dimensions in a captured graph.
        total: how many steps are planned.
        weigh: ask the method for weights; otherwise use those of the last step that did, with one backward pass.
        labelled: whether all tasks have labels in every batch. A step of one backward pass needs to know. None checks
            the batch, and so waits for the device. With True, a batch that proves it wrong is left out. False takes m
            passes.
    """

    batch: Any
    number: int | Tensor
    total: int
    weigh: bool = True
    labelled: bool | None = None


@dataclass(frozen=True)
class StepRecord:
    """Record of one step, ``[K, m]`` each.

    Attributes:
        losses: before the update.
        weights: of the update.
        present: which tasks had labels.
        counts: how many samples had labels, of all micro-batches and processes; :attr:`present` for one batch.
    """

    losses: Tensor
    weights: Tensor
    present: Tensor
    counts: Tensor


def _kept_weights(group: Group, measured: Measurement) -> Tensor:
    """The weights of the last step that weighed, for tasks with labels; negative ones as zero."""
    assert group.weights is not None
    return torch.where(measured.present, group.weights.clamp_min(0.0), zero(measured.present.device))


def _freeze_broken(groups: Sequence[Group], records: Sequence[StepRecord]) -> None:
    """Freeze models that have NaN in a task in which other active models have none: such a task has labels."""
    counts = torch.cat([record.counts for record in records])
    healthy = matches_majority(counts, torch.cat([group.active for group in groups]))
    for group, own in zip(groups, split_by_group(healthy, groups), strict=True):
        group.freeze(own, last_step=True)
