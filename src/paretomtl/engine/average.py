"""Weight averaging: a running mean of each model's weights, which is evaluated and stored in their place.

Averages are often better than the last weights where the learning rate does not decay (Polyak and Juditsky 1992,
Izmailov et al. 2018). Recent steps count most, by polynomial decay (Shamir and Zhang 2013): the reach of the mean is a
share of the run so far. It needs neither the length of the run nor a decay rate that suits it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.nn.modules.batchnorm import _BatchNorm

from paretomtl.engine.batches.partition import first_part
from paretomtl.engine.models.base import Models
from paretomtl.engine.models.flat_memory import ModelState
from paretomtl.engine.processes import ProcessGroup

_BATCHES = 64  # for the statistics of batch normalisation


class WeightAverage:
    """The running mean of the values of a group's models.

    After t steps, the values of a step count by its number to the power of ``1 / share - 1``. Their mean age is
    ``t · share / (1 + share)`` steps. Integer buffers are copied.

    The newest values may be broken, which the losses of the next step show. So they are not in the stored mean: they
    join it when it is evaluated.

    Args:
        share: the reach, as a share of the steps so far.
        values: of the models before the first step.

    Attributes:
        values: the mean without the newest values.
        statistics: of batch normalisation, for the mean that was evaluated last.
    """

    def __init__(self, share: float, values: ModelState) -> None:
        self._share = share
        self.values = values
        self.statistics: dict[str, Tensor] = {}
        device = next(iter(values.values())).device
        self._steps = torch.zeros((), dtype=torch.float64, device=device)

    def add(self, values: ModelState) -> None:
        """Add the values after one more step, the first of which are those before any, and count for nothing.

        Everything is written in place, as captured steps need it.
        """
        self._move(self.values, values)
        self._steps += 1.0

    def up_to(self, newest: ModelState) -> ModelState:
        """The mean with the newest values, and the statistics that belong to it."""
        mean = self.values.copy()
        self._move(mean, newest)
        mean.write(self.statistics)
        return mean

    def _move(self, mean: ModelState, values: ModelState) -> None:
        mean.move_towards(values, (self._share * self._steps).reciprocal().clamp_max(1.0))

    def stored(self) -> dict[str, Any]:
        """The mean, for a checkpoint."""
        return {"values": self.values, "steps": self._steps}

    def load(self, stored: Mapping[str, Any]) -> None:
        """Restore what :meth:`stored` returned."""
        self.values.follow(ModelState([], {name: t.to(self._steps.device) for name, t in stored["values"].items()}))
        self._steps.copy_(stored["steps"])


class Averaged(Protocol):
    """Models with averages, such as a group in training."""

    @property
    def models(self) -> Models: ...

    @property
    def average(self) -> WeightAverage | None: ...

    def solution(self) -> ModelState:
        """The values to evaluate."""

    @property
    def active(self) -> Tensor:
        """``[K]``, on the device of the models."""

    def precision(self) -> AbstractContextManager[Any]:
        """The context of a forward pass."""


@contextmanager
def averages_in_place(
    groups: Sequence[Averaged], batches: Callable[[], Iterator[Any]], processes: ProcessGroup
) -> Iterator[None]:
    """Give models the averages of their weights within; afterwards they have their own again.

    Statistics of batch normalisation are estimated anew, because those of the steps belong to other weights.

    Args:
        groups: of the models; nothing happens to those without averages.
        batches: makes the training batches from which statistics are estimated.
        processes: those that train the same models, which get the statistics of the first.
    """
    averaged = [(group, group.average) for group in groups if group.average is not None]
    own = [group.models.copy() for group, _ in averaged]
    try:
        for group, average in averaged:
            average.statistics = {}
            group.models.restore(torch.ones_like(group.active), group.solution())
        if any(_norms(group.models) for group, _ in averaged):
            _estimate_statistics([group for group, _ in averaged], batches())
            for group, average in averaged:
                statistics = _statistics(group.models)
                processes.broadcast_tensors(list(statistics.values()))
                average.statistics = {name: tensor.clone() for name, tensor in statistics.items()}
        yield
    finally:
        for (group, _), values in zip(averaged, own, strict=True):
            group.models.restore(torch.ones_like(group.active), values)


@torch.no_grad()
def _estimate_statistics(groups: Sequence[Averaged], batches: Iterator[Any]) -> None:
    """Estimate the statistics of batch normalisation as means over some batches, with the current weights."""
    norms = [norm for group in groups for norm in _norms(group.models).values()]
    before = [norm.momentum for norm in norms]
    try:
        for number, batch in enumerate(itertools.islice(batches, _BATCHES), 1):
            for norm in norms:
                norm.momentum = 1.0 / number
            for group in groups:
                with group.precision():
                    group.models.forward(first_part(batch))
    finally:
        for norm, momentum in zip(norms, before, strict=True):
            norm.momentum = momentum


def _norms(models: Models) -> dict[str, _BatchNorm]:
    """The layers with statistics that training moves, by name; a frozen layer keeps its own."""
    return {
        name: part
        for name, part in models.module.named_modules()
        if isinstance(part, _BatchNorm) and part.training and part.running_mean is not None
    }


def _statistics(models: Models) -> dict[str, Tensor]:
    """The statistics of the layers with batch normalisation, ``[K, ...]``, by the names of their buffers."""
    tensors = models.tensors()
    names = [f"{name}.{of}".lstrip(".") for name in _norms(models) for of in ("running_mean", "running_var")]
    return {name: tensors[name] for name in names}
