"""Questions that find the model a user likes best. Each one compares two models."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from itertools import combinations, pairwise

import torch
from torch import Tensor

from paretomtl._support.text import short_number
from paretomtl.front.choosing.candidates import CandidateTable
from paretomtl.front.task_metrics import task_metrics

_USERS = 16_000  # simulated users for more than two tasks
_MOST = 1000  # models to ask about; memory grows with their square
_SECOND = 1e-3  # weight of the sum relative to the largest weighted loss


@dataclass(frozen=True)
class Search:
    """The models that are left, and the next question: a pure function of the front and the answers so far.

    Simulated users rank models by the sum of weighted losses, or by the largest of them, with weights of all
    kinds. Each answer removes every model that no simulated user consistent with the answers so far would rank
    first. The next question is the one that removes most models whatever the answer is. The model that is not
    preferred is always removed, so that K models take at most K - 1 questions; mostly they take little more than
    log₂ K with two tasks, and twice that with five.

    Attributes:
        rows: the rows of the table that are left; with two tasks, in order along the front.
        columns: the rows of the table at the start.
        scores: ``[users, columns]``, the score of each of them for each simulated user who is left; lower is better.
    """

    rows: tuple[int, ...]
    columns: tuple[int, ...]
    scores: Tensor

    @functools.cached_property
    def pair(self) -> tuple[int, int] | None:
        """The two rows to compare next; None when the choice is made, or there is none."""
        if len(self.rows) < 2:
            return None
        places = [self.columns.index(row) for row in self.rows]
        scores = self.scores[:, places]
        best = scores.argmin(-1)
        share = best.bincount(minlength=len(places)).float().reciprocal()[best]  # each model counts 1
        least = torch.full((len(places), len(places)), -math.inf)
        for i in range(len(places) - 1):
            first = share @ (scores[:, i : i + 1] <= scores[:, i + 1 :]).float()
            distance = torch.arange(len(first))
            tie = 1e-4 * distance  # tie-break: neighbours first
            least[i, i + 1 :] = torch.minimum(first, len(places) - first) - tie
        i, j = divmod(int(least.argmax()), len(places))
        return self.rows[i], self.rows[j]

    @property
    def most(self) -> int:
        """Upper bound on the number of questions that are left."""
        return max(0, len(self.rows) - 1)

    def after(self, *, first: bool) -> Search:
        """The search after the user preferred the first of the pair, or else the second."""
        assert self.pair is not None
        one, other = (self.scores[:, self.columns.index(row)] for row in self.pair)
        return _search(self.columns, self.scores[(one <= other) if first else (one > other)])

    def after_tie(self) -> Search:
        """The search after the user found both of the pair equally good.

        The half of the simulated users to whom the two matter most is left out, and so is the second of the pair. The
        first one stays: a user is added who ranks the others as the rest do on average, and it before them.
        """
        assert self.pair is not None
        first, second = (self.columns.index(row) for row in self.pair)
        apart = (self.scores[:, first] - self.scores[:, second]).abs()
        scores = self.scores[apart <= apart.median()].clone()
        gone = [place for place, row in enumerate(self.columns) if place == second or row not in self.rows]
        scores[:, gone] = math.inf
        loyal = scores.mean(0, keepdim=True)
        loyal[0, first] = scores[scores.isfinite()].min() - 1.0
        return _search(self.columns, torch.cat([scores, loyal]))


def begin(table: CandidateTable) -> Search:
    """Start with all non-dominated models within the reference point; of those with equal losses, the first."""
    rows: dict[tuple[float, ...], int] = {}
    for row in table.within_reference():
        rows.setdefault(tuple(table.losses[row].tolist()), row)
    if len(rows) > _MOST:
        raise ValueError(
            f"questions must be about at most {_MOST:,} models that no other one dominates. Got {len(rows):,} on "
            f"'{table.split}': choose by direction, importance, regret or bounds."
        )
    points = sorted(rows)
    columns = tuple(rows[point] for point in points)
    if len(points) < 2:
        return Search(columns, columns, torch.zeros(1, len(columns)))
    return _search(columns, _scores(torch.tensor(points, dtype=torch.float64)))


def _search(columns: tuple[int, ...], scores: Tensor) -> Search:
    left = sorted(set(scores.argmin(-1).tolist()))
    return Search(tuple(columns[place] for place in left), columns, scores)


def _scores(losses: Tensor) -> Tensor:
    """Scores ``[users, K]`` of losses ``[K, m]`` by simulated users: each model is the best one for some."""
    low, high = losses.min(0).values, losses.max(0).values
    values = (losses - low) / (high - low).clamp_min(1e-300)
    weights = _weights(values)
    own = 1.0 / values.clamp_min(1e-9)  # users whose largest weighted loss is smallest here
    return torch.cat([weights @ values.T, *(_largest(each, values) for each in (weights, own))])


def _largest(weights: Tensor, values: Tensor) -> Tensor:
    """The largest weighted loss; the sum breaks ties."""
    return (weights[:, None] * values).amax(-1) + _SECOND * (weights @ values.T)


def _weights(values: Tensor) -> Tensor:
    """Weights of the tasks, ``[users, m]``: with two tasks, one for each order that weighted sums can have."""
    tasks = values.shape[-1]
    if tasks > 2:
        drawn = torch.rand(_USERS, tasks, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        return torch.cat([torch.eye(tasks, dtype=torch.float64), torch.nn.functional.normalize(-drawn.log(), 1, -1)])
    turns = {0.0, 1.0}  # the weights of the first task at which two models are equally good
    for a, b in combinations(values.tolist(), 2):
        rise, fall = b[0] - a[0], a[1] - b[1]
        turns.add(fall / (rise + fall))
    ordered = _thinned(sorted(turns))
    first = torch.tensor([(a + b) / 2 for a, b in pairwise(ordered)], dtype=torch.float64)
    return torch.stack([first, 1 - first], -1)


def _thinned(ordered: list[float]) -> list[float]:
    """Thin values evenly to at most the number of simulated users, and keep both ends: their number grows as K² / 2."""
    if len(ordered) <= _USERS:
        return ordered
    return [ordered[round(i * (len(ordered) - 1) / (_USERS - 1))] for i in range(_USERS)]


@dataclass(frozen=True)
class Difference:
    """One line of a comparison of two models.

    Attributes:
        name: of a metric, or of a loss.
        values: those of the two models, as text.
        text: what changes from the first one to the second; empty if nothing is known.
        better: whether the second one is better; None if they are equal, or one is not finite.
    """

    name: str
    values: tuple[str, str]
    text: str
    better: bool | None


def differences(table: CandidateTable, one: int, other: int) -> list[Difference]:
    """Compare two rows by all metrics, and by the losses of tasks that have none, in the words of the page."""
    lines = []
    for name in compared_names(table):
        values, higher = table.column(name)
        before, after = float(values[one]), float(values[other])
        share = name in table.metrics and _is_share(values, higher)
        change = after - before
        better = None if change == 0 or not math.isfinite(change) else (change > 0) == higher
        shown = (_shown(before, share), _shown(after, share))
        if better is not None and shown[0] == shown[1]:  # to the digits that are shown
            better, change = None, 0.0
        text = "equal" if change == 0 else "" if better is None else _change(change, before, share, better)
        title = name if name in table.metrics else f"{name} loss"
        lines.append(Difference(title, shown, text, better))
    return lines


def compared_names(table: CandidateTable) -> list[str]:
    """All metrics, and the tasks without a metric, whose name would begin with that of the task."""
    measured = task_metrics(table.tasks, list(table.metrics))
    return [*table.metrics, *(task for task in table.tasks if task not in measured)]


def _is_share(values: Tensor, higher: bool) -> bool:
    """Whether values are shares, which are shown in per cent: more is better, and all lie between 0 and 1."""
    finite = values[values.isfinite()]
    return higher and len(finite) > 0 and bool(((finite >= 0) & (finite <= 1)).all())


def _shown(value: float, share: bool) -> str:
    if not math.isfinite(value):
        return "-"
    return f"{100 * value:.1f} %" if share else short_number(value)


def _change(change: float, before: float, share: bool, better: bool) -> str:
    word = "better" if better else "worse"
    if share:
        return f"{abs(100 * change):.1f} points {word}"
    return f"{short_number(abs(change), 3)}{_percent(change, before)} {word}"


def _percent(change: float, before: float) -> str:
    """A change in per cent of the value before; empty where that says nothing."""
    if before == 0 or abs(change) >= 10 * abs(before):
        return ""
    share = abs(100 * change / before)
    return f" ({share:.0f} %)" if share >= 1 else f" ({share:.1g} %)"
