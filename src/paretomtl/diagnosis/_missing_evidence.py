"""What a diagnosis says where seeds do not bear a verdict: what is open, and how many seeds or epochs are missing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from paretomtl.diagnosis._evidence import CONFLICT, GAINED, GAP, NOTICEABLE, USUAL_SEEDS, Conflict, Gap

if TYPE_CHECKING:
    from paretomtl.diagnosis._result import Diagnosis

MARGIN = (
    f"within {100 * GAP:g} % of their losses, or {100 * NOTICEABLE:g} % of those at the start, and {100 * GAINED:g} % "
    "of what they learnt"
)
"""What "as good as" means; all that seeds leave is within it."""


def what_is_missing(found: Diagnosis, gaps: Sequence[Gap], pulls: Sequence[Conflict]) -> tuple[str, dict[str, int]]:
    """What is open, as text, and the arguments of the diagnosis that would probably close it."""
    seeds = len(found.seeds)
    left = [i for i, gap in enumerate(gaps) if gap.word == "open"]
    undecided = [pull for pull in pulls if pull.there is None]
    said = []
    if seeds == 1:
        said.append("One seed cannot tell a difference of losses from chance.")
    else:
        said += [_open_gap(found, i, gaps[i]) for i in left[:3]]
        said += [f"And {len(left) - 3} more tasks are open."] if len(left) > 3 else []
        said += [_open_conflict(found, pull) for pull in undecided[:3]]
    known = [f"{gap.word} in {found.tasks[i]}" for i, gap in enumerate(gaps) if gap.word in ("worse", "better")]
    if known:
        said.append(f"Known so far: joint training is {listed(known)}.")
    needed = [gaps[i].needed for i in left] + [pull.needed for pull in undecided]
    counts = [count for count in needed if count is not None]
    if len(counts) == len(needed) and counts:
        again = {"seeds": max(*counts, USUAL_SEEDS), "epochs": found.epochs}
        said.append(f"Missing are seeds: diagnose again with about {again['seeds']} (seeds={again['seeds']}).")
    else:
        long = found.planned if found.planned is not None and not found.whole else 2 * found.epochs
        again = {"seeds": max(seeds, USUAL_SEEDS), "epochs": long}
        unit = "steps" if found.without_data else "epochs"
        said.append(
            f"More seeds would hardly tell: diagnose again with {long} {unit} (epochs={long}), after which models vary "
            "less, or differ more."
        )
    return " ".join(said), again


def _open_gap(found: Diagnosis, task: int, gap: Gap) -> str:
    """What seeds leave of one task, as a ratio where there is one."""
    alone = float(found.alone[:, task].mean())
    name = found.tasks[task]
    least, most = gap.value - gap.reach, gap.value + gap.reach
    if alone > 0 and alone + gap.value >= 0:
        spread = [f"{max((alone + value) / alone, 0.0):.3g}" for value in (gap.value, least, most)]
        text = f"In {name} joint training has {spread[0]} times the loss of a separate network, and seeds leave "
    else:
        spread = [f"{value:.3g}" for value in (gap.value, least, most)]
        text = f"In {name} the loss of joint training is {spread[0]} above that of a separate network, and seeds leave "
    margin = f"{1 + gap.tight / alone:.4g} times" if alone > 0 else f"{gap.tight:.3g}"
    return f"{text}{spread[1]} to {spread[2]}; up to {margin} is as good."


def _open_conflict(found: Diagnosis, pull: Conflict) -> str:
    return (
        f"The cosine of {pair_name(found, pull)} is {pull.cosine:.2g}, and seeds leave "
        f"{max(pull.cosine - pull.reach, -1.0):.2g} to {min(pull.cosine + pull.reach, 1.0):.2g}; conflict begins at "
        f"{CONFLICT:g}."
    )


def pair_name(found: Diagnosis, pull: Conflict) -> str:
    """The names of two tasks."""
    return " / ".join(found.tasks[i] for i in pull.pair)


def listed(names: Sequence[str], most: int = 4) -> str:
    """Names in one line, the first of them where there are many."""
    shown = [*names[:most], *([f"{len(names) - most} more"] if len(names) > most else [])]
    return ", ".join(shown)
