"""The gaps of a front: what to train next, and from which models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Generic

import torch
from torch import Tensor

from paretomtl._support.argument_checks import check_count
from paretomtl.core.gaps import GapSearch, find_gaps
from paretomtl.front._data import FrontData, losses_on
from paretomtl.front.joining import FrontT
from paretomtl.front.limits import MAX_SOLUTIONS
from paretomtl.front.models import StackedModels, stack_rows
from paretomtl.methods.registry import is_separate

_LEAST = 0.05  # the usual smallest share of a task, for fronts whose own rows have zeros
_BROKEN = "non-finite"
_NAMED = 5  # pairs of models that a remark names


@dataclass(frozen=True)
class Gaps(Generic[FrontT]):
    """N gaps of a front, and the arguments of a run that fills them; :meth:`paretomtl.Front.gaps` finds them.

    Attributes:
        front: the front.
        split: the split of the losses that decide.
        preferences: ``[K + N, m]``: all rows of the front, then the new ones. Regions need them all.
        subproblems: the numbers of the new rows.
        importances: ``[K + N, m]`` on the simplex, for the losses as scaled in training: those of the models where
            they are known, else equal ones, then those that are normal to the gaps.
        neighbours: for each gap the models at its ends; a new number counts as if its model were there already.
        begins: for each gap the model whose weights the new model begins with: the nearer of its neighbours.
        sizes: the distance of the neighbours, in units of the range of each task over the front.
        gains: how much weights can gain at most, in the same units; NaN if it is not known, as where another model of
            the front has a smaller weighted sum than a neighbour.
        asked: how many gaps were asked for.
        remarks: what to know before training, one sentence each.
    """

    front: FrontT
    split: str
    preferences: Tensor
    subproblems: tuple[int, ...]
    importances: Tensor
    neighbours: tuple[tuple[int, int], ...]
    begins: tuple[int, ...]
    sizes: tuple[float, ...]
    gains: tuple[float, ...]
    asked: int
    remarks: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.subproblems)

    @property
    def rows(self) -> Tensor:
        """The new preferences alone, ``[N, m]``."""
        return self.preferences[list(self.subproblems)]

    @property
    def scale(self) -> Tensor | None:
        """The factors ``[m]`` of the losses for the new models, the mean over the front; None without scaling."""
        return None if self.front.scale is None else _mean_scale(self.front)

    @property
    def start(self) -> FrontT:
        """The ``start`` of a run, a front that has the weights to begin with under the new numbers."""
        front = self.front
        if not front.models.kind or not front.models:
            raise ValueError(
                "'start' must be of a front with weights, which the new models begin with. Got one without: train the "
                "rows from scratch, or use a front of fit()."
            )
        chosen = [front.subproblems.index(k) for k in self.begins]
        return replace(
            front,
            preferences=self.preferences,
            subproblems=self.subproblems,
            losses={split: losses[chosen] for split, losses in front.losses.items()},
            scale=None if front.scale is None else front.scale[chosen],
            status=[front.status[row] for row in chosen],
            since=None,
            history={},
            models=StackedModels(stack_rows([front.models.weights(row) for row in chosen])),
            snapshot=None,
            metrics={},
            epochs=(),
            model_seeds=[front.model_seeds[row] for row in chosen],
            measured={},
            names=(),
        )


def front_gaps(front: FrontT, count: int, split: str | None) -> Gaps[FrontT]:
    """The gaps of a front, as :meth:`paretomtl.Front.gaps` describes them."""
    count = check_count("count", count)
    if len(front.preferences) + count > MAX_SOLUTIONS:
        raise ValueError(
            f"'count' must leave at most {MAX_SOLUTIONS:,} models in the front, which has "
            f"{len(front.preferences):,}. Got {count:,}."
        )
    if front.reading in ("start", "none") or is_separate(front.method):
        those = "This one has none" if front.reading == "none" else f"Those of '{front.method}' are starts"
        if is_separate(front.method):
            those = f"Those of '{front.method}' are one task each"
        raise ValueError(f"'front' must have preferences that can be chosen, for its gaps to be filled. {those}.")
    split = front.ranking_split if split is None else split
    directed = front.reading == "direction"
    losses, weights = _losses_in_training(front, split), _importances(front)
    asked = front.preferences if directed else None
    search = find_gaps(losses, count, importances=weights, directions=asked)
    if search.solutions < 2:
        raise ValueError(
            "'front' must have at least two models with different losses that no other dominates, for a gap between "
            f"them. Got {search.solutions} of {len(front)} on {split}."
        )
    first = len(front.preferences)
    own = list(front.subproblems)

    def number(row: int) -> int:
        return own[row] if row < len(own) else first + row - len(own)

    normals = [_lifted(gap.importances, weights) for gap in search.gaps]
    rows = [torch.nn.functional.normalize(gap.middle.clamp_min(0.0), dim=0) for gap in search.gaps]
    tasks = len(front.tasks)
    known = torch.full((first, tasks), 1.0 / tasks, dtype=torch.float64)
    if weights is not None:
        known[own] = weights / weights.sum(-1, keepdim=True)
    return Gaps(
        front=front,
        split=split,
        preferences=torch.cat([front.preferences.double(), *(row[None] for row in (rows if directed else normals))]),
        subproblems=tuple(range(first, first + len(search.gaps))),
        importances=torch.cat([known, *(row[None] for row in normals)]),
        neighbours=tuple((number(gap.ends[0]), number(gap.ends[1])) for gap in search.gaps),
        begins=tuple(number(gap.near) for gap in search.gaps),
        sizes=tuple(gap.size for gap in search.gaps),
        gains=tuple(torch.nan if directed else gap.gain for gap in search.gaps),
        asked=count,
        remarks=tuple(_remarks(search, count, number, directed=directed)),
    )


def _mean_scale(front: FrontData) -> Tensor:
    """The factors ``[m]`` of training; their mean where each model has its own. Equal ones keep their bits."""
    assert front.scale is not None
    known = front.scale[front.scale.isfinite().all(-1)].double()
    same = len(known) > 0 and bool((known == known[:1]).all())
    return known[0] if same else known.mean(0)


def _losses_in_training(front: FrontData, split: str) -> Tensor:
    """Losses ``[K, m]`` as the method saw them, by one scale for all; NaN for models that broke."""
    losses = losses_on(front, split).double()
    if front.ideal is not None:
        losses = losses - losses.new_tensor(front.ideal)
        losses = losses.clamp_min(0.0) if front.reading == "direction" else losses
    losses = losses if front.scale is None else losses * _mean_scale(front)
    broken = torch.tensor([word == _BROKEN for word in front.status])
    return torch.where(broken[:, None], torch.nan, losses)


def _importances(front: FrontData) -> Tensor | None:
    """The weights of the models ``[K, m]`` for losses by the one scale of all; None where they are unknown."""
    if front.reading == "importance":
        rows = front.preferences[list(front.subproblems)].double()
    elif "importances" in front.measured:
        rows = front.measured["importances"].double()
    else:
        return None
    return rows if front.scale is None else rows * front.scale / _mean_scale(front)


def _lifted(row: Tensor, known: Tensor | None) -> Tensor:
    """A row of the simplex in which every task is trained: with the least share of the front's own rows, if needed."""
    tasks = len(row)
    least = min(_LEAST, 0.5 / tasks)
    if known is not None:
        shares = known / known.sum(-1, keepdim=True)
        least = min(least, float(torch.where(shares > 0, shares, 1.0).min()))
    return row if float(row.min()) >= least * (1.0 - 1e-9) else least + (1.0 - tasks * least) * row


def _remarks(search: GapSearch, count: int, number: Callable[[int], int], *, directed: bool) -> list[str]:
    """What to know before training; ``number`` gives a model by its row."""
    found = []
    if len(search.gaps) < count:
        again = [pair for pair in search.flat if pair in search.asked]
        level = [pair for pair in search.flat if pair not in search.asked]
        asked = "a model was already asked for the loss ratio between them"
        why = [
            f"models {_pairs(pairs, number)}: {words}"
            for pairs, words in (
                (level, "weights between theirs lead to one of them again"),
                (again, asked if directed else "models with weights between theirs are there already"),
            )
            if pairs
        ]
        found.append(
            f"{len(search.gaps) or 'None'} of {count} gaps {'is' if len(search.gaps) == 1 else 'are'} worth a model. "
            f"Nothing is to be gained between {', nor between '.join(why)}."
        )
    if search.beaten:
        pairs = [f"model {number(a)} is beaten at its own weights by model {number(b)}" for a, b in search.beaten]
        more = ", ..." if len(pairs) > _NAMED else ""
        said = ", ".join(pairs[:_NAMED]) + more
        found.append(
            f"{said[0].upper()}{said[1:]}: training did not lead to where these weights are best, so that weights "
            "between those of neighbours may still fill a gap."
        )
    if search.clumped:
        found.append(
            "Models gather at the ends of the front, so that it is concave in between: fixed weights cannot fill "
            "such a gap. Train with the method 'auto' or 'p-norm', which can."
        )
    return found


def _pairs(pairs: Sequence[tuple[int, int]], number: Callable[[int], int]) -> str:
    shown = ", ".join(f"{number(a)} and {number(b)}" for a, b in pairs[:_NAMED])
    return f"{shown}, ..." if len(pairs) > _NAMED else shown
