"""The hypervolume of losses in a report."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from paretomtl._support.optional import require


def mean_hypervolume(losses: Tensor, reference: Sequence[float] | None, seeds: int) -> float | None:
    """The hypervolume of each seed's losses, as a mean over seeds; None where one cannot be known."""
    volumes = [hypervolume_or_none(part, reference) for part in losses.chunk(seeds)]
    known = [each for each in volumes if each is not None]
    return sum(known) / seeds if len(known) == seeds else None


def hypervolume_or_none(losses: Tensor, reference: Sequence[float] | None) -> float | None:
    """The hypervolume of finite losses, for a report; None where it cannot be known, or only slowly."""
    try:
        moocore = require("moocore", "indicators")
    except ModuleNotFoundError:
        return None
    finite = losses[losses.isfinite().all(-1)].double()
    tasks = losses.shape[-1]
    if tasks > 4 and len(finite) > (100 if tasks <= 6 else 20):  # 50 points of ten tasks take seconds
        return None
    if reference is None or not len(finite) or not all(value - value == 0.0 for value in reference):
        return None
    return float(moocore.hypervolume(finite.numpy(), ref=list(reference)))
