"""The hypervolume of a run by epoch, for its curve on the page."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from paretomtl.front.indicators import hypervolume, takes_long


def hypervolume_curve(losses: Tensor, reference: Sequence[float] | None, *, times: int = 1) -> list[float] | None:
    """The hypervolume of the finite models at each epoch; None if it is undefined or would take long.

    Args:
        losses: ``[T, K, m]``.
        reference: the point that models should beat; None gives no curve.
        times: how many such curves there are on the page.

    Example:
        >>> import torch
        >>> hypervolume_curve(torch.tensor([[[1.0, 1.0]], [[0.5, 0.5]]]), [1.0, 1.0])
        [0.0, 0.25]
    """
    if reference is None or not len(losses):
        return None
    tables = [table[table.isfinite().all(-1)].double() for table in losses]
    if takes_long(tables[-1], times * len(tables)):
        return None
    try:
        return [hypervolume(table, reference) if len(table) else 0.0 for table in tables]
    except ModuleNotFoundError:  # without the extra for indicators
        return None
