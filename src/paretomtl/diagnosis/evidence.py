"""Significant evidence: in which tasks joint training is worse, better or as good, and which gradients conflict."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from torch import Tensor

from paretomtl._support.significance import adjusted, difference, half_width, half_width_of, mean
from paretomtl.diagnosis._measurements import Measurements

CONFLICT = -0.1
"""Two tasks conflict if the mean cosine of the last third is at most this, and its interval over seeds below zero."""
GAP = 0.05
"""Joint training is as good as separate networks within this share of the separate networks' loss, ..."""
NOTICEABLE = 0.01
"""... or within this share of the loss at the start, if that is more; ..."""
GAINED = 0.1
"""... but never by more than this share of the loss that a separate network has removed: early in training all losses
are similar, and joint training that learnt nothing would count as good."""
MOST_SEEDS = 20
"""If more seeds than this would be needed, longer runs are proposed, or a front if runs were as long as planned."""
USUAL_SEEDS = 3

Word: TypeAlias = Literal["worse", "better", "as good", "open"]


@dataclass(frozen=True)
class Gap:
    """The gap between joint training and separate networks in one task.

    Attributes:
        value: the mean over seeds of the joint loss, minus that of separate networks.
        half_width: half the width of its 95 % confidence interval over seeds.
        margin: a value within it is neither worse nor better.
        tight: the margin of "as good": the same, or less if networks have not learnt much yet.
        word: "worse" or "better" if the value is beyond the margin and significant; "as good" if the whole interval is
            within the tight margin; "open" otherwise.
        needed: about how many seeds would tell whether an open one is worse; None for more than :data:`MOST_SEEDS`.
    """

    value: float
    half_width: float
    margin: float
    tight: float
    word: Word
    needed: int | None = None

    @property
    def not_worse(self) -> bool:
        """Whether no value in the interval is worse by more than the tight margin."""
        return self.word == "better" or self.value + self.half_width <= self.tight

    @property
    def not_better(self) -> bool:
        """Whether no value in the interval is better by more than the tight margin."""
        return self.word == "worse" or self.value - self.half_width >= -self.tight


def task_gaps(measured: Measurements) -> list[Gap]:
    """The gap of each task.

    If no single task is clearly worse or better, the sum of all tasks may be, each in units of its loss at the start:
    equal weights may give up a different task with each seed. Then the tasks that moved in that direction count.
    """
    gaps = []
    pairs = list(zip(measured.joint.T.tolist(), measured.alone.T.tolist(), strict=True))
    found = adjusted([difference(joint, alone) for joint, alone in pairs])
    for i, (gap, (joint, alone)) in enumerate(zip(found, pairs, strict=True)):
        margin = max(GAP * abs(mean(alone)), NOTICEABLE * abs(float(measured.first[i])))
        tight = min(margin, GAINED * max(float(measured.learnt[i] * measured.first[i].abs()), 0.0))
        word: Word = "open"
        if gap.significant and abs(gap.value) > margin:
            word = "worse" if gap.value > 0 else "better"
        elif abs(gap.value) + gap.half_width <= tight:
            word = "as good"
        needed = None
        if word == "open":
            room = gap.value if gap.value > margin else tight - gap.value  # to be worse, or not worse
            needed = _seeds_needed(room, [joint, alone], margin)
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
        half_width: half the width of its 95 % confidence interval over seeds.
        there: whether there is a conflict; None if the seeds do not decide it.
        needed: about how many seeds would decide it; None for more than :data:`MOST_SEEDS`.
    """

    pair: tuple[int, int]
    cosine: float
    half_width: float
    there: bool | None
    needed: int | None = None


def conflicts(measured: Measurements) -> list[Conflict]:
    """The conflict of each pair of tasks with gradients, those that agree least first."""
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
        needed = _seeds_needed(abs(cosine - CONFLICT), [values], abs(CONFLICT)) if there is None else None
        listed.append(Conflict((i, j), cosine, far, there, needed))
    return listed


def _seeds_needed(room: float, sets: Sequence[Sequence[float]], margin: float) -> int | None:
    """Estimate how many seeds decide, if they vary as these do.

    Args:
        room: how far the interval may reach around an unchanged value.
        sets: the values of each seed.
        margin: what matters. The value itself is not known if the interval is wider: then it must become narrower.
    """
    seeds = min(len(values) for values in sets)
    if seeds < 2:
        return USUAL_SEEDS
    variances = [statistics.variance(values) for values in sets]
    if half_width_of(variances, [seeds] * len(sets)) > margin:
        room = max(room, margin)
    for count in range(seeds + 1, MOST_SEEDS + 1):
        if half_width_of(variances, [count] * len(sets)) < room:
            return count
    return None


def _together(measured: Measurements, losses: Tensor) -> list[float]:
    """For each seed, the mean of the losses in units of those at the start."""
    units = measured.first.abs()
    return [mean([v for v in row if math.isfinite(v)]) for row in (losses / units).tolist()]
