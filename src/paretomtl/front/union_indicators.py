"""Indicators that measure a front against the union of all fronts that are compared: regret, R2, IGD+.

The classes take losses in float64 whose rows are finite. The functions take fronts, and check the arguments of users.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from paretomtl._support.argument_checks import check_count, check_flag, quote
from paretomtl.core import nondominated
from paretomtl.core.preferences import lattice
from paretomtl.front._data import FrontData, finite_losses
from paretomtl.front.indicators import check_others, check_points, igd_plus, task_values
from paretomtl.front.utilities import UTILITIES, Kind, Utilities, draw_utilities, scale_of
from paretomtl.methods.registry import is_separate

R2_WEIGHTS = 100
"""The least number of weights of R2 by default."""

_TIE = 1e-9  # utilities that differ by less are equal, so that rounding chooses nothing


class UnionRegret:
    """Regret over utilities, to the best that could have been chosen from the union of fronts.

    Args:
        pairs: for each front its losses ``[K, m]`` on the split that chooses, and on the split that is measured.
        utilities: of scaled losses.
        within: the reference point of :func:`~paretomtl.front.utilities.scale_of`, ``[m]``.
    """

    def __init__(
        self, pairs: Sequence[tuple[Tensor, Tensor]], utilities: Utilities, within: Tensor | None = None
    ) -> None:
        self._scale = scale_of(torch.cat([chosen_on for chosen_on, _ in pairs]), within)
        self._utilities = utilities
        self._best = self._utility(torch.cat([measured for _, measured in pairs])).amin(0)

    def of(self, chosen_on: Tensor, measured: Tensor) -> float:
        """The mean regret of a front, one of the union; infinite without models."""
        if not len(measured):
            return math.inf
        seen = self._utility(chosen_on)
        tied = seen <= seen.amin(0) + _TIE
        chosen = torch.where(tied, self._utility(measured), 0.0).sum(0) / tied.sum(0)
        return float((chosen - self._best).clamp_min(0.0).mean())

    def _utility(self, losses: Tensor) -> Tensor:
        return self._utilities.of(self._scale.apply(losses))


class UnionDistance:
    """R2 and IGD+ to the union of fronts, in its scale.

    Args:
        tables: the losses ``[K, m]`` of each front on one split.
        within: the reference point of :func:`~paretomtl.front.utilities.scale_of`, ``[m]``.
    """

    def __init__(self, tables: Sequence[Tensor], within: Tensor | None = None) -> None:
        union = torch.cat(list(tables))
        self._scale = scale_of(union, within)
        self._points = self._scale.apply(distinct_nondominated(union))

    def r2(self, losses: Tensor, weights: Tensor) -> float:
        """R2 with weights ``[n, m]``, to the ideal point of the union; infinite without models."""
        if not len(losses):
            return math.inf
        return float((self._scale.apply(losses)[:, None, :] * weights).amax(-1).amin(0).mean())

    def igd_plus(self, losses: Tensor) -> float:
        """IGD+ to the non-dominated union; infinite without models."""
        return igd_plus(self._scale.apply(losses), self._points) if len(losses) else math.inf


def distinct_nondominated(losses: Tensor) -> Tensor:
    """The non-dominated rows of losses ``[n, m]``, each once: copies would count as many points of a front."""
    rows = {tuple(row): None for row in losses[nondominated(losses)].tolist()}
    return torch.tensor(list(rows), dtype=torch.float64)


def r2_weights(count: int, tasks: int) -> Tensor:
    """The smallest lattice on the simplex with at least ``count`` weights, ``[n, m]``.

    Example:
        >>> [len(r2_weights(100, tasks)) for tasks in (2, 3, 5)]
        [100, 105, 126]
    """
    count = check_count("weights", count)
    divisions = 1
    while math.comb(divisions + tasks - 1, tasks - 1) < count:
        divisions += 1
    return lattice(divisions, tasks)


def front_regret(
    front: FrontData,
    others: Sequence[FrontData],
    split: str | None,
    metric: str | Sequence[str] | None,
    utilities: int,
    kind: Kind,
    seed: int,
) -> float:
    """The regret of a front, as :meth:`paretomtl.Front.regret` describes it."""
    drawn = draw_utilities(utilities, len(front.tasks), kind, seed)
    ranking = front.ranking_split
    split = ("test" if "test" in front.losses else ranking) if split is None else split
    union = _union(front, others, ranking, split)
    pairs = [_known_pair(each, ranking, split, metric) for each in union]
    if not len(pairs[0][0]):
        what = "losses" if metric is None else "values of 'metric'"
        places = ranking if split == ranking else f"{ranking}' and '{split}"
        raise ValueError(f"'split' must have a model with finite {what}. Got none on '{places}'.")
    return UnionRegret(pairs, drawn, None if metric is not None else _within(union)).of(*pairs[0])


def front_r2(front: FrontData, others: Sequence[FrontData], split: str | None, weights: int) -> float:
    """R2 of a front, as :meth:`paretomtl.Front.r2` describes it."""
    lattice_weights = r2_weights(weights, len(front.tasks))
    distance, own = _distance(front, others, split)
    return distance.r2(own, lattice_weights)


def front_igd_plus(
    front: FrontData, points: Tensor | FrontData | Sequence[FrontData], split: str | None, scaled: bool
) -> float:
    """IGD+ of a front, as :meth:`paretomtl.Front.igd_plus` describes it."""
    check_flag("scaled", scaled)
    others = _fronts_among(points)
    if others is None:
        if scaled:
            raise ValueError("'scaled' must be False for points: they have no range of their own. Got True instead.")
        return igd_plus(_some(front, split), check_points(front, points))
    if scaled:
        distance, own = _distance(front, others, split)
        return distance.igd_plus(own)
    split = front.ranking_split if split is None else split
    own = _some(front, split)
    union = torch.cat([finite_losses(each, split) for each in _union(front, others, split)])
    return igd_plus(own, distinct_nondominated(union))


def union_numbers(fronts: Sequence[FrontData]) -> list[dict[str, Any] | None]:
    """Regret, R2 and IGD+ of each of several fronts of the same tasks against all of them, for a table or a page.

    They are on test if all fronts have it, else on the split that ranks, if it is the same for all. The choice of
    regret is made on the latter. IGD+ is in the scale of the fronts, and unknown without moocore.

    Returns:
        For each front "split", "chosen_on", "regret", "r2" and "igd_plus"; None for separate networks, for a front
        without finite losses, and for all of them if there is nothing to compare.
    """
    union = [front for front in fronts if not is_separate(front.method)]
    rankings = {front.ranking_split for front in union}
    if len(union) < 2 or len(rankings) > 1:
        return [None] * len(fronts)
    (ranking,) = rankings
    split = "test" if all("test" in front.losses for front in union) else ranking
    within = _within(union)
    pairs = [_known_pair(front, ranking, split, None) for front in union]
    tables = [finite_losses(front, split) for front in union]
    if not any(len(measured) for _, measured in pairs):
        return [None] * len(fronts)
    tasks = len(union[0].tasks)
    regret = UnionRegret(pairs, draw_utilities(UTILITIES, tasks), within)
    distance, weights = UnionDistance(tables, within), r2_weights(R2_WEIGHTS, tasks)
    found: list[dict[str, Any] | None] = []
    for pair, losses in zip(pairs, tables, strict=True):
        if not len(pair[0]):
            found.append(None)
            continue
        try:
            missed: float | None = distance.igd_plus(losses)
        except ModuleNotFoundError:
            missed = None
        numbers = {"regret": regret.of(*pair), "r2": distance.r2(losses, weights), "igd_plus": missed}
        found.append({"split": split, "chosen_on": ranking, **numbers})
    known = iter(found)
    return [None if is_separate(front.method) else next(known) for front in fronts]


def _distance(front: FrontData, others: Sequence[FrontData], split: str | None) -> tuple[UnionDistance, Tensor]:
    """The union that R2 and IGD+ measure against, and the losses of this front."""
    split = front.ranking_split if split is None else split
    own, union = _some(front, split), _union(front, others, split)
    return UnionDistance([finite_losses(each, split) for each in union], _within(union)), own


def _union(front: FrontData, others: Sequence[FrontData], *splits: str) -> list[FrontData]:
    """This front, and the others that are fronts rather than separate networks; all have these splits."""
    check_others(front, others, *splits)
    union = [front, *(other for other in others if not is_separate(other.method))]
    for place, each in enumerate(union):
        missing = [split for split in splits if not isinstance(split, str) or split not in each.losses]
        if missing:
            name, among = ("others", f" in number {place}") if place else ("split", "")
            rule = f"have losses on {missing[0]!r}" if place else f"be one of {list(each.losses)}"
            found = list(each.losses) if place else quote(missing[0])
            raise ValueError(f"'{name}' must {rule}. Got {found}{among} instead.")
    return union


def _within(union: Sequence[FrontData]) -> Tensor | None:
    """The loosest reference point of these fronts, ``[m]``; None if none has one."""
    known = [each.reference for each in union if each.reference is not None]
    return torch.tensor(known, dtype=torch.float64).amax(0) if known else None


def _known_pair(
    front: FrontData, ranking: str, split: str, metric: str | Sequence[str] | None
) -> tuple[Tensor, Tensor]:
    """What is compared on both splits, lower is better, for the models where all of it is finite."""
    first, second = (
        torch.where(higher, -values, values)
        for values, higher in (task_values(front, metric, each) for each in (ranking, split))
    )
    known = (first.isfinite() & second.isfinite()).all(-1)
    return first[known], second[known]


def _some(front: FrontData, split: str | None) -> Tensor:
    """The finite losses of a front, of which there must be some."""
    losses = finite_losses(front, split)
    if not len(losses):
        place = front.ranking_split if split is None else split
        raise ValueError(f"'split' must have a model with finite losses. Got none on {quote(place)}.")
    return losses


def _fronts_among(points: Tensor | FrontData | Sequence[FrontData]) -> list[FrontData] | None:
    """The fronts that were given; None for points."""
    if isinstance(points, FrontData):
        return [points]
    if isinstance(points, (list, tuple)) and any(isinstance(each, FrontData) for each in points):
        return list(points)
    return None
