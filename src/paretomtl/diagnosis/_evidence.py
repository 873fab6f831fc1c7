"""Evidence that seeds bear: in which tasks joint training is worse, better or as good, and which gradients conflict."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from torch import Tensor

from paretomtl._support.significance import difference, half_width, half_width_of, mean
from paretomtl.diagnosis._measurements import Measurements

CONFLICT = -0.1
"""Two tasks are in conflict where the mean cosine of the last third is at most this, and seeds keep it under zero."""
GAP = 0.05
"""Joint training is as good as separate networks within this share of the separate networks' loss, ..."""
NOTICEABLE = 0.01
"""... or within this share of the loss at the start, if that is more; ..."""
GAINED = 0.1
"""... but never by more than this share of what a network of its own has taken off its loss: early on, all losses are
alike, and joint training that learnt nothing would be as good."""
MOST_SEEDS = 20
"""Where more seeds than this would be needed, longer runs are proposed."""
USUAL_SEEDS = 3

Word: TypeAlias = Literal["worse", "better", "as good", "open"]


@dataclass(frozen=True)
class Gap:
    """The gap between joint training and separate networks in one task.

    Attributes:
        value: the mean over seeds of the joint loss, less that of separate networks.
        half_width: how far seeds alone move that to either side, but for once in twenty.
        margin: a value within it is neither worse nor better.
        tight: the margin of "as good": the same, or less where networks have not learnt much yet.
        word: "worse" or "better" where the value is beyond the margin, and seeds alone would rarely do that; "as good"
            where all that seeds leave is within the tight margin; "open" otherwise.
        needed: about how many seeds would close an open one; None for more than :data:`MOST_SEEDS`.
    """

    value: float
    half_width: float
    margin: float
    tight: float
    word: Word
    needed: int | None = None

    @property
    def not_worse(self) -> bool:
        """Whether seeds leave nothing that is worse by more than the tight margin."""
        return self.word == "better" or self.value + self.half_width <= self.tight

    @property
    def not_better(self) -> bool:
        """Whether seeds leave nothing that is better by more than the tight margin."""
        return self.word == "worse" or self.value - self.half_width >= -self.tight


def task_gaps(measured: Measurements) -> list[Gap]:
    """One for each task.

    Where no task is clearly worse or better on its own, all tasks together may be, each in units of its loss at the
    start, as equal weights may give up another task with each seed. Then those that moved that way count.
    """
    gaps = []
    for i in range(len(measured.tasks)):
        joint, alone = measured.joint[:, i].tolist(), measured.alone[:, i].tolist()
        gap = difference(joint, alone)
        margin = max(GAP * abs(mean(alone)), NOTICEABLE * abs(float(measured.first[i])))
        tight = min(margin, GAINED * max(float(measured.learnt[i] * measured.first[i].abs()), 0.0))
        word: Word = "open"
        if gap.significant and abs(gap.value) > margin:
            word = "worse" if gap.value > 0 else "better"
        elif abs(gap.value) + gap.half_width <= tight:
            word = "as good"
        needed = _seeds_needed(gap.value, [joint, alone], margin, tight) if word == "open" else None
        gaps.append(Gap(gap.value, gap.half_width, margin, tight, word, needed))
    if any(gap.word in ("worse", "better") for gap in gaps):
        return gaps
    total = difference(_together(measured, measured.joint), _together(measured, measured.alone))
    if not total.significant or abs(total.value) <= NOTICEABLE:
        return gaps
    word = "worse" if total.value > 0 else "better"
    return [
        replace(gap, word=word, needed=None) if gap.value * total.value > 0 and abs(gap.value) > gap.margin else gap
        for gap in gaps
    ]


@dataclass(frozen=True)
class Conflict:
    """The conflict of the gradients of two tasks in the last third of joint training.

    Attributes:
        pair: the two tasks.
        cosine: the mean.
        half_width: how far seeds alone move it, but for once in twenty.
        there: True and False where seeds bear it; None where they do not.
        needed: about how many seeds would decide it; None for more than :data:`MOST_SEEDS`.
    """

    pair: tuple[int, int]
    cosine: float
    half_width: float
    there: bool | None
    needed: int | None = None


def conflicts(measured: Measurements) -> list[Conflict]:
    """One for each pair of tasks with gradients, those that agree least first."""
    late, each = measured.late_cosines, measured.late_cosines_by_seed
    listed = []
    for i, j in measured.pairs:
        cosine, values = float(late[i, j]), [v for v in each[:, i, j].tolist() if not math.isnan(v)]
        if math.isnan(cosine):
            continue
        far = half_width(values)
        there: bool | None = None
        if cosine <= CONFLICT and cosine + far < 0:
            there = True
        elif cosine - far > CONFLICT:
            there = False
        needed = _seeds_needed(cosine - CONFLICT, [values]) if there is None else None
        listed.append(Conflict((i, j), cosine, far, there, needed))
    return listed


def _seeds_needed(value: float, sets: Sequence[Sequence[float]], margin: float = 0.0, tight: float = 0.0) -> int | None:
    """About how many seeds put a value that stays as it is on one side of the margin, if they vary as these do."""
    seeds = min(len(values) for values in sets)
    if seeds < 2:
        return USUAL_SEEDS
    variances = [statistics.variance(values) for values in sets]
    room = abs(value) if abs(value) > margin else tight - abs(value)
    for count in range(seeds + 1, MOST_SEEDS + 1):
        if half_width_of(variances, [count] * len(sets)) < room:
            return count
    return None


def _together(measured: Measurements, losses: Tensor) -> list[float]:
    """For each seed, the mean of the losses in units of those at the start."""
    units = measured.first.abs()
    return [mean([v for v in row if math.isfinite(v)]) for row in (losses / units).tolist()]
