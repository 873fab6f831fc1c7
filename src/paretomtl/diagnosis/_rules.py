"""What measurements mean: stated thresholds, and the verdict that follows from them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from torch import Tensor

from paretomtl._significance import difference, mean
from paretomtl.diagnosis._proposal import between, even_factors

if TYPE_CHECKING:
    from paretomtl.diagnosis._diagnosis import Diagnosis

CONFLICT = -0.1
"""Two tasks are in conflict where the mean cosine of the last third is at most this."""
GAP = 0.05
"""A difference of joint training from separate networks counts above this share of the separate networks' loss, ..."""
NOTICEABLE = 0.01
"""... and above this share of the loss at the start."""
SCALES = 10.0
"""Losses or gradient norms that differ by more than this factor want to be scaled."""
LEARNT = 0.02
"""A task that its own network lowers by less than this share of the loss at the start has not learnt."""
_ONE_SEED = "With one seed, differences of losses may be chance: take two or more."


@dataclass(frozen=True)
class Verdict:
    """What to do.

    Attributes:
        word: "front", "one-model", "helping", "conflict-only", "gap-only" or "unclear".
        text: the same as a sentence, with its reason.
        preferences: how many to begin with; None where a front is not recommended.
        directions: which, as directions of the losses, scaled where they need it; empty where a front is not
            recommended, or where no directions were found, and preferences are best spread evenly.
        scale: what to give ``ParetoMTL(scale=...)``; None for no scaling.
        factors: those of the losses that ``directions`` are meant for, to be given in place of ``scale``, so that they
            mean the same in every run; None where losses stay as they are.
        notes: what else there is to know, a sentence each.
    """

    word: str
    text: str
    preferences: int | None
    directions: tuple[tuple[float, ...], ...]
    scale: str | None
    factors: tuple[float, ...] | None
    notes: tuple[str, ...]


def usual_preferences(tasks: int) -> int:
    """How many preferences to begin with, by the number of tasks (docs/how-many.md)."""
    return {2: 5, 3: 15, 4: 25, 5: 25, 6: 25}.get(tasks, 15)


def judge(found: Diagnosis) -> Verdict:
    """The verdict; the first rule that fits decides."""
    scale, why_scale = _scaling(found)
    conflicts, worse, better = conflicting(found), *gaps(found)
    pairs = _listed([f"{found.tasks[i]} / {found.tasks[j]}" for i, j in conflicts])
    losing, gaining = _listed([found.tasks[i] for i in worse]), _listed([found.tasks[i] for i in better])
    losing += f" (and better in {gaining})" if worse and better else ""
    trouble = _trouble(found)
    count: int | None = None
    directions: list[tuple[float, ...]] = []
    factors: tuple[float, ...] | None = None
    if trouble:
        word, text = "unclear", " ".join(trouble)
    elif worse and (conflicts or (found.whole and not better and scale is None)):
        word, count = "front", usual_preferences(len(found.tasks))
        directions, factors = _proposed(found, scale, count)
        count = len(directions) or count
        why = f"gradients of {pairs} conflict, and" if conflicts else "gradients hardly conflict, but over all epochs"
        text = (
            f"A front is worth it: {why} joint training is worse than separate networks in {losing}. "
            f"{_which(directions, count, scaled=scale is not None)}"
        )
        if len(worse) < len(found.tasks):
            text += f" Look first at preferences with a small loss of {_listed([found.tasks[i] for i in worse])}."
    elif worse:
        word = "gap-only"
        text = (
            f"Joint training is worse than separate networks in {losing}, but gradients hardly conflict so far: the "
            f"cause may be something else than a trade-off. {_after_gap(found, scaled=scale is not None)}"
        )
    elif better:
        word = "helping"
        text = f"One model with equal weights will do: tasks help each other, in {gaining} it beats separate networks."
        if conflicts:
            text += f" Gradients of {pairs} conflict all the same; a longer run may show a trade-off."
    elif conflicts:
        word = "conflict-only"
        text = (
            f"Gradients of {pairs} conflict, but joint training is as good as separate networks so far. One model with "
            "equal weights may do; diagnose with more epochs, or train a small front, to be sure."
        )
    else:
        word = "one-model"
        text = (
            "One model with equal weights will do: gradients do not conflict, and joint training is as good as "
            "separate networks."
        )
    how = [] if scale is None else [f"{why_scale} {_how_to_scale(scale, factors)}"]
    notes = [*how, *([] if len(found.seeds) > 1 else [_ONE_SEED])]
    return Verdict(word, text, count, tuple(directions), scale, factors, tuple(notes))


def conflicting(found: Diagnosis) -> list[tuple[int, int]]:
    """The pairs of tasks in conflict, the worst first."""
    late, m = found.late_cosines, len(found.tasks)
    pairs = [(i, j) for i in range(m) for j in range(i + 1, m) if float(late[i, j]) <= CONFLICT]
    return sorted(pairs, key=lambda pair: float(late[pair]))


def gaps(found: Diagnosis) -> tuple[list[int], list[int]]:
    """The tasks in which joint training is worse than separate networks, and those in which it is better.

    By more than the thresholds, and than seeds explain: in a task alone; or in all tasks together, each in units of
    its loss at the start, as equal weights may give up another task with each seed.
    """
    several = len(found.seeds) > 1
    worse: list[int] = []
    better: list[int] = []
    for i in range(len(found.tasks)):
        joint, alone = found.joint[:, i].tolist(), found.alone[:, i].tolist()
        gap = mean(joint) - mean(alone)
        if _matters(found, i, gap) and (_clear(joint, alone) or not several):
            (worse if gap > 0 else better).append(i)
    if not worse and not better:
        gap, clear = difference(_together(found, found.joint), _together(found, found.alone))
        if clear and abs(gap) > NOTICEABLE:
            each = [float((found.joint[:, i] - found.alone[:, i]).mean()) for i in range(len(found.tasks))]
            moved = [i for i, value in enumerate(each) if value * gap > 0 and _matters(found, i, value)]
            (worse if gap > 0 else better).extend(moved)
    return worse, better


def _clear(joint: Sequence[float], alone: Sequence[float]) -> bool:
    """Whether a ratio of losses is more than seeds explain, hence by logarithms; by themselves if some are not > 0."""
    if min([*joint, *alone]) > 0:
        joint, alone = [math.log(value) for value in joint], [math.log(value) for value in alone]
    return difference(joint, alone)[1]


def _matters(found: Diagnosis, task: int, gap: float) -> bool:
    single, start = abs(float(found.alone[:, task].mean())), abs(float(found.first[task]))
    return abs(gap) > GAP * single and abs(gap) > NOTICEABLE * start


def _together(found: Diagnosis, losses: Tensor) -> list[float]:
    """For each seed, the mean of the losses in units of those at the start."""
    units = found.first.abs()
    return [mean([v for v in row if math.isfinite(v)]) for row in (losses / units).tolist()]


def _scaling(found: Diagnosis) -> tuple[str | None, str]:
    """What to scale by, and why."""
    large, small, ratio = _largest_ratio([found.first.abs().tolist(), found.last.abs().tolist()])
    if ratio > SCALES:
        return "running", (
            f"Scale the losses: that of {found.tasks[large]} is {_factor(ratio)} times that of {found.tasks[small]}, "
            "at the start and at the end."
        )
    large, small, ratio = _largest_ratio([found.norms.tolist()])
    if ratio > SCALES:
        return "gradnorm", (
            f"Scale the losses: gradients of {found.tasks[large]} are {_factor(ratio)} times as long as those of "
            f"{found.tasks[small]}."
        )
    return None, ""


def _largest_ratio(rows: Sequence[Sequence[float]]) -> tuple[int, int, float]:
    """The pair of tasks of which one is larger in all rows, by the largest factor that holds in all."""
    best = (0, 0, 1.0)
    for i in range(len(rows[0])):
        for j in range(len(rows[0])):
            ratio = min(row[i] / row[j] if row[j] > 0 else math.nan for row in rows)
            if all(row[j] > 0 for row in rows) and ratio > best[2]:
                best = i, j, ratio
    return best


def _trouble(found: Diagnosis) -> list[str]:
    """What stands in the way of a verdict."""
    said = []
    groups: dict[str, list[str]] = {"unlabelled": [], "flat": [], "slow": []}
    for i, task in enumerate(found.tasks):
        norm, learnt = float(found.norms[i]), float(found.learnt[i])
        if math.isnan(norm):
            groups["unlabelled"].append(task)
        elif norm == 0.0:
            groups["flat"].append(task)
        elif not learnt > LEARNT:
            groups["slow"].append(task)
    if groups["unlabelled"]:
        said.append(f"No labels in any batch: {_listed(groups['unlabelled'])}. Its loss was always NaN; see the data.")
    if groups["flat"]:
        said.append(f"No gradient: {_listed(groups['flat'])}. The loss does not change with the parameters.")
    if groups["slow"]:
        said.append(
            f"Hardly learnt, even by a network of its own: {_listed(groups['slow'])}. Train longer (epochs), or see "
            "loss, labels and learning rate, before you weigh tasks."
        )
    if found.broken:
        said.append(
            f"Losses or gradients were not finite in {found.broken} of {found.models} models: lower the learning rate."
        )
    return said


def weight_factors(found: Diagnosis) -> tuple[float, ...]:
    """What to multiply losses by so that weights near the ends of the front mean the same for all tasks.

    Where losses need scaling, one over gradients' norms, or over the root of what joint training left of a loss times
    what a network of its own takes off it: the first is too large where another task's unit drowned it, the second
    where a loss begins far off.
    """
    scale = _scaling(found)[0]
    if scale is None:
        return (1.0,) * len(found.tasks)
    gained = found.learnt * found.first.abs()
    return even_factors((found.norms if scale == "gradnorm" else (found.last.abs() * gained).sqrt()).tolist())


def _proposed(
    found: Diagnosis, scale: str | None, count: int
) -> tuple[list[tuple[float, ...]], tuple[float, ...] | None]:
    """Directions between the ends, and the factors that stand for a scale; none where there are too few of them."""
    if found.ends is None:
        return [], None
    ends = found.ends.mean(0)
    if scale is None:
        return between(ends, count), None
    sizes = found.norms if scale == "gradnorm" else ends.mean(0)
    if not bool((sizes > 0).all() and sizes.isfinite().all()):
        return [], None
    factors = even_factors(sizes.tolist())
    rows = between(ends * ends.new_tensor(factors), count)
    return (rows, factors) if len(rows) >= len(found.tasks) else ([], None)


def _which(directions: Sequence[tuple[float, ...]], count: int, *, scaled: bool) -> str:
    """Which preferences to begin with, and why these."""
    if not directions:
        return f"Begin with {count} preferences, spread evenly; docs/how-many.md says when more pay."
    losses = "scaled losses" if scaled else "losses"
    first, last = (f"({', '.join(f'{value:.2g}' for value in row)})" for row in (directions[0], directions[-1]))
    if len(directions) == 1:
        return f"All models reached much the same ratio of {losses}, {first}: begin with this one preference."
    if len(directions[0]) > 2:
        return (
            f"Begin with {count} preferences between the ratios of {losses} that models reached near the ends of the "
            "front; those beyond ask for what no model has. docs/how-many.md says when more pay."
        )
    return (
        f"Begin with {count} preferences from {first} to {last}, the ratios of {losses} that models reached near the "
        "ends of the front; those beyond ask for what no model has. docs/how-many.md says when more pay."
    )


def _after_gap(found: Diagnosis, *, scaled: bool) -> str:
    """What to do about a gap without conflict."""
    if scaled:
        return "Scale the losses first, and diagnose again."
    if found.whole:
        return "Try other weights, or a larger model."
    long = "as many epochs as you are going to train" if found.planned is None else f"all {found.planned} epochs"
    return f"Diagnose again with {long}: a gap in some tasks that no other gains from, and that stays, is a trade-off."


def _how_to_scale(scale: str, factors: Sequence[float] | None) -> str:
    if factors is None:
        return f'Use ParetoMTL(scale="{scale}"), or --set scale={scale}.'
    text = ",".join(f"{factor:g}" for factor in factors)
    return f"Preferences are for losses times {text}: use ParetoMTL(scale=({text})), or --set scale={text}."


def _factor(ratio: float) -> str:
    return f"{ratio:.2g}" if ratio < 100 else f"{float(f'{ratio:.2g}'):.0f}" if ratio < 1e6 else f"{ratio:.0e}"


def _listed(names: Sequence[str], most: int = 4) -> str:
    shown = [*names[:most], *([f"{len(names) - most} more"] if len(names) > most else [])]
    return ", ".join(shown)
