"""The hypervolume of losses in a report."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from paretomtl.front.indicators import hypervolume_or_none


def mean_hypervolume(losses: Tensor, reference: Sequence[float] | None, seeds: int) -> float | None:
    """The hypervolume of each seed's losses, as a mean over seeds; None where one cannot be known."""
    volumes = [hypervolume_or_none(part, reference) for part in losses.chunk(seeds)]
    known = [each for each in volumes if each is not None]
    return sum(known) / seeds if len(known) == seeds else None
