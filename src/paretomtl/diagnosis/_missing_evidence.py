"""Missing evidence: what the seeds leave undecided, and how many seeds or epochs would decide it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from paretomtl.diagnosis._measurements import Measurements
from paretomtl.diagnosis.evidence import (
    CONFLICT,
    GAINED,
    GAP,
    MOST_SEEDS,
    NOTICEABLE,
    USUAL_SEEDS,
    Conflict,
    Gap,
)

MARGIN = (
    f"within {100 * GAP:g} % of their losses, or {100 * NOTICEABLE:g} % of those at the start, and {100 * GAINED:g} % "
    "of what they learnt"
)
"""The meaning of "as good as": the whole interval is within it."""
LOOK = "Train a few models and look at them."

Again: TypeAlias = dict[str, int | str] | None
"""The arguments of a further diagnosis; None if none is recommended."""


def describe_missing(
    measured: Measurements, gaps: Sequence[Gap], pulls: Sequence[Conflict], rescaled: tuple[str, Again] | None = None
) -> tuple[str, Again]:
    """Describe what is open, and return the arguments of the diagnosis that would probably decide it, if any.

    Args:
        measured: the measurements.
        gaps: the gap of each task.
        pulls: the conflict of each pair.
        rescaled: what to do instead, because losses differ too much for a verdict.
    """
    seeds = len(measured.seeds)
    left = [i for i, gap in enumerate(gaps) if gap.word == "open"]
    undecided = [pull for pull in pulls if pull.there is None]
    sentences = []
    if seeds == 1:
        sentences.append("One seed cannot tell a difference of losses from chance.")
    else:
        sentences += [open_gap(measured, i, gaps[i]) for i in left[:3]]
        sentences += [f"And {len(left) - 3} more tasks are open."] if len(left) > 3 else []
        sentences += [_open_conflict(measured, pull) for pull in undecided[:3]]
    known = [f"{gap.word} in {measured.tasks[i]}" for i, gap in enumerate(gaps) if gap.word in ("worse", "better")]
    if known:
        sentences.append(f"Known so far: joint training is {listed(known)}.")
    needed = [gaps[i].needed for i in left] + [pull.needed for pull in undecided]
    counts = [count for count in needed if count is not None]
    countable = bool(counts) and len(counts) == len(needed)
    if rescaled is not None:
        remedy, again = rescaled
    elif countable and _may_ask_for_seeds(measured):
        again = {"seeds": max(*counts, USUAL_SEEDS), "epochs": measured.epochs}
        remedy = f"More seeds are needed: diagnose again with about {again['seeds']} (seeds={again['seeds']})."
    elif _may_ask_for_epochs(measured):
        long = 2 * measured.epochs if measured.planned is None else measured.planned
        again = {"seeds": USUAL_SEEDS, "epochs": long}
        unit = "steps" if measured.without_data else "epochs"
        remedy = (
            f"More seeds would hardly help: diagnose again with {long} {unit} (epochs={long}), after which models vary "
            "less or differ more."
        )
    else:
        again = None
        between = any(_is_between(gaps[i]) for i in left)
        remedy = _look(measured, seeds=max(counts) if countable else None, between=between)
    return " ".join([*sentences, remedy]), again


def _may_ask_for_seeds(measured: Measurements) -> bool:
    """Whether this is a first diagnosis: who was asked for more once, and got no answer, is not asked again."""
    seeds = len(measured.seeds)
    return seeds < USUAL_SEEDS or (seeds == USUAL_SEEDS and not (measured.whole and measured.longer))


def _may_ask_for_epochs(measured: Measurements) -> bool:
    """The same for a longer run; without a recipe, one that is longer than usual counts as asked for."""
    if measured.whole or (measured.planned is None and measured.longer):
        return False
    return len(measured.seeds) <= USUAL_SEEDS


def _look(measured: Measurements, *, seeds: int | None, between: bool) -> str:
    """Why no further diagnosis is asked for.

    Args:
        measured: the measurements.
        seeds: about how many would decide it; None for more than :data:`MOST_SEEDS`.
        between: whether a gap is known well enough, and neither small nor large.
    """
    if seeds is not None:
        return (
            f"About {seeds} seeds would tell if they vary as these do, but models tell more than another diagnosis. "
            f"{LOOK}"
        )
    if between:
        return (
            "Joint training costs more than counts as equally good, and less than counts as worse: more seeds would "
            f"not change that. {LOOK}"
        )
    more = f"Over {MOST_SEEDS} seeds would be needed: models vary more from seed to seed than joint training may cost."
    if measured.whole and measured.split != "train":
        return f"{more} {LOOK[:-1]}; more samples for validation tell more than more epochs."
    return f"{more} {LOOK}"


def _is_between(gap: Gap) -> bool:
    """Whether the value is known well enough, and lies between the two margins."""
    return gap.tight < gap.value <= gap.margin and gap.half_width <= gap.margin


def open_gap(measured: Measurements, task: int, gap: Gap) -> str:
    """Describe the interval of an open task, as a ratio if there is one."""
    alone = float(measured.alone[:, task].mean())
    name = measured.tasks[task]
    least, most = gap.value - gap.half_width, gap.value + gap.half_width
    if alone > 0 and alone + gap.value >= 0:
        spread = [f"{max((alone + value) / alone, 0.0):.3g}" for value in (gap.value, least, most)]
        times = f"{spread[0]} times the loss of" if spread[0] != "1" else "about the same loss as"
        text = f"In {name} joint training has {times} a separate network"
    else:
        spread = [f"{value:.3g}" for value in (gap.value, least, most)]
        text = f"In {name} the loss of joint training is {spread[0]} above that of a separate network"
    margin = [f"{1 + sign * gap.tight / alone:.3g}" if alone > 0 else f"{sign * gap.tight:.3g}" for sign in (-1, 1)]
    return f"{text} (95 % interval {spread[1]} to {spread[2]}; equally good is {margin[0]} to {margin[1]})."


def _open_conflict(measured: Measurements, pull: Conflict) -> str:
    least, most = max(pull.cosine - pull.half_width, -1.0), min(pull.cosine + pull.half_width, 1.0)
    return (
        f"The cosine of {pair_name(measured, pull)} is {pull.cosine:.2g} (95 % interval {least:.2g} to {most:.2g}); "
        f"conflict begins at {CONFLICT:g}."
    )


def pair_name(measured: Measurements, pull: Conflict) -> str:
    """The names of two tasks."""
    return " / ".join(measured.tasks[i] for i in pull.pair)


def listed(names: Sequence[str], most: int = 4) -> str:
    """Names in one line; only the first ones if there are many."""
    shown = [*names[:most], *([f"{len(names) - most} more"] if len(names) > most else [])]
    return ", ".join(shown)
