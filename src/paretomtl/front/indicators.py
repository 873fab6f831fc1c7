"""Indicators of fronts: hypervolume, IGD+, spread, angles, non-dominated rows. The only place that calls moocore.

moocore is under the LGPL: it is imported, never copied.
The first functions take losses. Those that take a front also check the arguments of users.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from paretomtl._support.argument_checks import as_numbers, as_rows
from paretomtl._support.imports.optional_packages import require
from paretomtl.core import nondominated
from paretomtl.front._data import FrontData, finite_losses

_MOST_WORK = math.log(1e7)  # upper bound for a table or a page: a few seconds


def hypervolume(losses: Tensor, reference: Sequence[float]) -> float:
    """The volume between finite losses ``[K, m]`` in float64 and a reference point (extra ``indicators``)."""
    return float(require("moocore", "indicators").hypervolume(losses.numpy(), ref=list(reference)))


def hypervolume_or_none(losses: Tensor, reference: Sequence[float] | None) -> float | None:
    """The hypervolume of the rows ``[K, m]`` with finite losses, for a report during training.

    None without moocore, without a finite reference point or finite losses, and if it would take seconds.
    """
    try:
        require("moocore", "indicators")
    except ModuleNotFoundError:
        return None
    finite = losses[losses.isfinite().all(-1)].double()
    tasks = losses.shape[-1]
    if tasks > 4 and len(finite) > (100 if tasks <= 6 else 20):  # 50 points of ten tasks take seconds
        return None
    if reference is None or not len(finite) or not all(value - value == 0.0 for value in reference):
        return None
    return hypervolume(finite, reference)


def igd_plus(losses: Tensor, points: Tensor) -> float:
    """IGD+ of finite losses ``[K, m]`` in float64 and points ``[n, m]`` of a front (extra ``indicators``)."""
    return float(require("moocore", "indicators").igd_plus(losses.numpy(), ref=points.numpy()))


def spread(losses: Tensor) -> float:
    """The diagonal of the smallest box around the non-dominated rows of ``losses [K, m]``."""
    best = losses[nondominated(losses)]
    return float((best.amax(0) - best.amin(0)).norm()) if len(best) else 0.0


def finite_nondominated(losses: Tensor) -> Tensor:
    """Whether each row of ``losses [K, m]`` is finite and dominated by no other finite row, ``[K]`` bool."""
    finite = losses.isfinite().all(-1)
    return nondominated(torch.where(finite[:, None], losses.double(), torch.inf)) & finite


def angles(losses: Tensor, directions: Tensor) -> Tensor:
    """The angle between rows in degrees; NaN where a row is zero."""
    u, v = (rows.double() / rows.double().norm(dim=-1, keepdim=True) for rows in (losses, directions))
    return torch.rad2deg(2.0 * torch.atan2((u - v).norm(dim=-1), (u + v).norm(dim=-1)))


def front_hypervolume(front: FrontData, reference: Sequence[float] | None, split: str | None) -> float:
    """The hypervolume of a front, as :meth:`paretomtl.Front.hypervolume` describes it."""
    asked = front.reference if reference is None else reference
    if asked is None:
        point = _point_beyond(finite_losses(front, split))
        raise ValueError(f"'reference' must be given: this front has no default. Got None instead{point}.")
    reference = as_numbers(asked)
    if reference is None or len(reference) != len(front.tasks) or not all(map(math.isfinite, reference)):
        rule = f"one finite number per task ({len(front.tasks)})"
        raise ValueError(f"'reference' must have {rule}. Got {asked} instead.")
    split = front.ranking_split if split is None else split
    losses = finite_losses(front, split)
    if not bool((losses < torch.tensor(reference, dtype=torch.float64)).all(-1).any()):
        raise ValueError(
            f"'reference' must be above the losses of at least one solution in every task. Got {list(reference)}; "
            f"the largest losses on '{split}' are {[round(v, 4) for v in losses.amax(0).tolist()]}."
            if len(losses)
            else f"'split' must have a solution with finite losses. Got none on {split!r}."
        )
    return hypervolume(losses, reference)


def quick_hypervolume(
    front: FrontData, reference: Sequence[float] | None = None, split: str | None = None
) -> float | None:
    """The hypervolume for a table or a page; None if it is undefined or would take more than seconds.

    The work grows as K to the power of m/2 - 1: a hundred solutions of ten tasks take a minute, of twelve tasks hours.
    """
    losses = finite_losses(front, split)
    work = math.log(max(1, int(nondominated(losses).sum()))) * (len(front.tasks) / 2 - 1)
    try:
        return None if work > _MOST_WORK else front_hypervolume(front, reference, split)
    except (ValueError, ModuleNotFoundError):
        return None


def front_igd_plus(front: FrontData, points: Tensor, split: str | None) -> float:
    """IGD+ of a front, as :meth:`paretomtl.Front.igd_plus` describes it."""
    points = as_rows("points", points)
    if points.ndim != 2 or points.shape[1] != len(front.tasks) or not len(points):
        raise ValueError(f"'points' must have shape [n, {len(front.tasks)}]. Got {list(points.shape)} instead.")
    if not bool(points.isfinite().all()):
        row = int((~points.isfinite().all(-1)).nonzero()[0])
        raise ValueError(f"'points' must be finite. Got {points[row].tolist()} in row {row} instead.")
    return igd_plus(finite_losses(front, split), points)


def _point_beyond(losses: Tensor) -> str:
    """Suggest a reference point worse than all losses ``[K, m]``, for the end of an error; empty without losses."""
    if not len(losses):
        return ""
    point = [float(f"{value + 0.1 * abs(value):.3g}") for value in losses.amax(0).tolist()]
    return f": write hypervolume({point}), which is worse than every solution"
