"""Indicators of fronts: hypervolume, share of the box, IGD+, spread, angles, Δm. The only place that calls moocore.

moocore is under the LGPL: it is imported, never copied.
The first functions take losses. Those that take a front also check the arguments of users.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from paretomtl._support.argument_checks import as_numbers, as_rows, quote
from paretomtl._support.imports.optional_packages import require
from paretomtl.core import nondominated
from paretomtl.front._data import FrontData, check_same_data, finite_losses, losses_on
from paretomtl.methods.registry import is_separate

_MOST_WORK = math.log(1e7)  # upper bound for a table or a page: a few seconds
_MARGIN = 0.1  # of a tight reference point beyond the worst loss


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


def box_share(losses: Tensor, reference: Sequence[float]) -> float:
    """The hypervolume of finite losses ``[K, m]`` in float64, divided by that of their ideal point.

    NaN if the ideal point is not better than the reference in every task: the box between them is empty.
    """
    point = torch.tensor(reference, dtype=torch.float64)
    ideal = losses.amin(0) if len(losses) else point
    sides = point - ideal
    if not bool(((sides > 0) & sides.isfinite()).all()):
        return math.nan
    inside = ((losses - ideal) / sides).clamp_max(2.0)  # in a box of sides 1, no product of sides overflows
    return min(1.0, hypervolume(inside, [1.0] * len(point)))


def tight_reference(losses: Tensor, within: Sequence[float] | None = None) -> list[float]:
    """A reference point just beyond the non-dominated rows of finite losses ``[K, m]`` in float64, K at least 1.

    Args:
        losses: those of all fronts that are compared.
        within: a looser reference point. Rows beyond it do not count, unless all are, and the answer is not beyond it.
    """
    bound = torch.full(losses.shape[1:], torch.inf, dtype=torch.float64)
    if within is not None:
        given = torch.tensor(within, dtype=torch.float64)
        near = losses[(losses < given).all(-1)]
        losses, bound = (near, given) if len(near) else (losses, bound)
    best = losses[nondominated(losses)]
    worst = best.amax(0)
    margin = _MARGIN * torch.maximum(worst.abs(), worst - best.amin(0))
    margin = torch.where(margin > 0, margin, _MARGIN)
    return torch.minimum(worst + margin, bound).clamp_max(torch.finfo(torch.float64).max).tolist()


def widen_reference(reference: Sequence[float], losses: Tensor) -> list[float]:
    """A reference point that does not cut off most of a front ``[K, m]``.

    The losses of untrained models bound what is useful, except in a task that begins at its best, such as a fairness
    gap: there, most models of the front are above them. In such tasks the point moves just beyond the front.
    """
    given = torch.tensor(reference, dtype=torch.float64)
    best = losses[finite_nondominated(losses)].double()
    if not len(best):
        return given.tolist()
    most = (best > given).double().mean(0) > 0.5
    return torch.where(most, torch.tensor(tight_reference(best), dtype=torch.float64), given).tolist()


def delta_m(values: Tensor, baseline: Tensor, higher: Tensor) -> Tensor:
    """Δm in percent of ``values [K, m]`` against ``baseline [m]``, ``[K]``; lower is better, NaN is not finite.

    ``higher [m]`` says for each column whether its higher values are better.
    """
    worse = torch.where(higher, -1.0, 1.0) * (values - baseline) / baseline
    return 100.0 * torch.where(values.isfinite(), worse, torch.nan).mean(-1)


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
    return hypervolume(*_measured(front, reference, split))


def front_box_share(front: FrontData, reference: Sequence[float] | None, split: str | None) -> float:
    """The share of the box of a front, as :meth:`paretomtl.Front.box_share` describes it."""
    return box_share(*_measured(front, reference, split))


def front_tight_reference(front: FrontData, others: Sequence[FrontData], split: str | None) -> tuple[float, ...]:
    """The tight reference point of fronts, as :meth:`paretomtl.Front.tight_reference` describes it."""
    split = front.ranking_split if split is None else split
    check_others(front, others, split)
    fronts = [each for each in (front, *others) if not is_separate(each.method)] or [front, *others]
    losses = torch.cat([finite_losses(each, split) for each in fronts])
    if not len(losses):
        raise ValueError(f"'split' must have a model with finite losses. Got none on {quote(split)}.")
    known = [each.reference for each in fronts if each.reference is not None]
    return tuple(tight_reference(losses, [max(column) for column in zip(*known, strict=True)] if known else None))


def front_delta_m(
    front: FrontData,
    baseline: FrontData | Sequence[float],
    metric: str | Sequence[str] | None,
    split: str | None,
) -> Tensor:
    """Δm of a front, as :meth:`paretomtl.Front.delta_m` describes it."""
    split = front.ranking_split if split is None else split
    values, higher = task_values(front, metric, split)
    if isinstance(baseline, FrontData):
        if baseline.tasks != front.tasks:
            raise ValueError(f"'baseline' must have the tasks {list(front.tasks)}. Got {list(baseline.tasks)} instead.")
        base = _separate_values(baseline, task_values(baseline, metric, split)[0])
    else:
        numbers = as_numbers(baseline)
        if numbers is None or len(numbers) != len(front.tasks):
            rule = f"a front, or one number per task ({len(front.tasks)})"
            raise (TypeError if numbers is None else ValueError)(
                f"'baseline' must be {rule}. Got {quote(baseline)} instead."
            )
        base = torch.tensor(numbers, dtype=torch.float64)
    for task, value in zip(front.tasks, base.tolist(), strict=True):
        if not 0.0 < value < math.inf:
            raise ValueError(
                f"'baseline' must be positive in every task, because a change is relative to it. Got {value} for "
                f"{task!r} instead."
            )
    return delta_m(values, base, higher)


def quick_hypervolume(
    front: FrontData, reference: Sequence[float] | None = None, split: str | None = None, *, times: int = 1
) -> float | None:
    """The hypervolume for a table or a page; None if it is undefined or would take more than seconds.

    The work grows as K to the power of m/2 - 1: a hundred models of ten tasks take a minute, of twelve tasks hours.

    Args:
        front: whose.
        reference: the reference point; that of the front by default.
        split: the split; :attr:`ranking_split` by default.
        times: how many such hypervolumes there are to compute in these seconds.
    """
    return _quick(front_hypervolume, front, reference, split, times)


def quick_box_share(front: FrontData, split: str | None = None) -> float | None:
    """The share of the box for a table; None if it is undefined or would take more than seconds."""
    return _quick(front_box_share, front, None, split)


def quick_tight_hypervolume(front: FrontData, split: str) -> tuple[list[float] | None, float | None]:
    """The tight reference point of one front and the hypervolume there, for a table; None where undefined."""
    if not len(finite_losses(front, split)):
        return None, None
    reference = list(front_tight_reference(front, (), split))
    return reference, quick_hypervolume(front, reference, split)


def takes_long(losses: Tensor, times: int = 1) -> bool:
    """Whether so many hypervolumes of finite losses ``[K, m]`` would take more than seconds."""
    work = math.log(max(1, int(nondominated(losses).sum()))) * (losses.shape[1] / 2 - 1)
    return work + math.log(times) > _MOST_WORK


def check_others(front: FrontData, others: Sequence[FrontData], *splits: str) -> None:
    """Refuse what is no front, and fronts of other tasks, or of other data on these splits."""
    for other in others:
        if not isinstance(other, FrontData):
            raise TypeError(f"'others' must be fronts. Got {type(other).__name__} instead.")
        if other.tasks != front.tasks:
            raise ValueError(f"'others' must have the tasks {list(front.tasks)}. Got {list(other.tasks)} instead.")
        check_same_data(front, other, splits)


def check_points(front: FrontData, points: Any) -> Tensor:
    """Convert points of the loss space to ``[n, m]`` in float64; refuse other shapes and infinite numbers."""
    rows = as_rows("points", points)
    if rows.ndim != 2 or rows.shape[1] != len(front.tasks) or not len(rows):
        raise ValueError(f"'points' must have shape [n, {len(front.tasks)}]. Got {list(rows.shape)} instead.")
    if not bool(rows.isfinite().all()):
        first = int((~rows.isfinite().all(-1)).nonzero()[0])
        raise ValueError(f"'points' must be finite. Got {quote(rows[first].tolist())} in row {first} instead.")
    return rows


def task_values(front: FrontData, metric: str | Sequence[str] | None, split: str) -> tuple[Tensor, Tensor]:
    """A column ``[K]`` for each task, ``[K, m]`` in float64, and whether higher values of it are better, ``[m]``."""
    losses, tasks = losses_on(front, split).double(), front.tasks
    if metric is None:
        return losses, torch.zeros(len(tasks), dtype=torch.bool)
    names = [f"{task} {metric}" for task in tasks] if isinstance(metric, str) else list(metric)
    if len(names) != len(tasks):
        raise ValueError(
            f"'metric' must be one name, or one for each task ({len(tasks)}). Got {quote(metric)} instead."
        )
    known = front.metrics.get(split, {})
    columns, higher = [], []
    for name in names:
        if name in tasks:  # a task stands for its loss, as in select
            columns.append(losses[:, tasks.index(name)])
        elif name in known:
            columns.append(known[name].double())
        else:
            raise ValueError(f"'metric' must name metrics on {split!r}, {list(known)}. Got {quote(name)} instead.")
        if name not in tasks and front.better.get(name) not in ("higher", "lower"):
            raise ValueError(f"'metric' must have a direction in 'better'. Got {quote(name)}, which has none.")
        higher.append(name not in tasks and front.better[name] == "higher")
    return torch.stack(columns, -1), torch.tensor(higher)


def _measured(front: FrontData, reference: Sequence[float] | None, split: str | None) -> tuple[Tensor, Sequence[float]]:
    """The finite losses on a split and the reference point, checked: some model is better in every task."""
    asked = front.reference if reference is None else reference
    if asked is None:
        point = _point_beyond(finite_losses(front, split))
        raise ValueError(f"'reference' must be given: this front has no default. Got None instead{point}.")
    reference = as_numbers(asked)
    if reference is None or len(reference) != len(front.tasks) or not all(map(math.isfinite, reference)):
        rule = f"one finite number per task ({len(front.tasks)})"
        raise ValueError(f"'reference' must have {rule}. Got {quote(asked)} instead.")
    split = front.ranking_split if split is None else split
    losses = finite_losses(front, split)
    if not bool((losses < torch.tensor(reference, dtype=torch.float64)).all(-1).any()):
        raise ValueError(
            f"'reference' must be above the losses of at least one model in every task. Got {list(reference)}; "
            f"the largest losses on '{split}' are {[round(v, 4) for v in losses.amax(0).tolist()]}."
            if len(losses)
            else f"'split' must have a model with finite losses. Got none on {quote(split)}."
        )
    return losses, reference


def _quick(
    measure: Callable[[FrontData, Sequence[float] | None, str | None], float],
    front: FrontData,
    reference: Sequence[float] | None,
    split: str | None,
    times: int = 1,
) -> float | None:
    try:
        return None if takes_long(finite_losses(front, split), times) else measure(front, reference, split)
    except (ValueError, ModuleNotFoundError):
        return None


def _separate_values(baseline: FrontData, values: Tensor) -> Tensor:
    """The value of each task in its own network, ``[m]``; of the only model if there is one."""
    if len(baseline) == 1:
        return values[0]
    rows = baseline.preferences[list(baseline.subproblems)]
    own = (
        (rows > 0).nonzero()[:, 1]
        if baseline.reading == "importance" and bool(((rows > 0).sum(-1) == 1).all())
        else None
    )
    tasks = len(baseline.tasks)
    if own is None or sorted(own.tolist()) != list(range(tasks)):
        raise ValueError(
            f"'baseline' must be a front of 'single-task' with a network for each of the {tasks} tasks, or have one "
            f"model. Got {len(baseline)} models of '{baseline.method}' instead: give one number per task."
        )
    return values[own.argsort(), torch.arange(tasks)]


def _point_beyond(losses: Tensor) -> str:
    """Suggest a reference point worse than all losses ``[K, m]``, for the end of an error; empty without losses."""
    if not len(losses):
        return ""
    point = [float(f"{value + 0.1 * abs(value):.3g}") for value in losses.amax(0).tolist()]
    return f": write hypervolume({point}), which is worse than every model"
