"""Rules of a diagnosis: thresholds, and the verdict that follows from them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from paretomtl.core.preferences import usual_count
from paretomtl.diagnosis._measurements import Measurements
from paretomtl.diagnosis._missing_evidence import LOOK, MARGIN, describe_missing, listed, open_gap, pair_name
from paretomtl.diagnosis._preferences import between, even_factors
from paretomtl.diagnosis.evidence import Gap, conflicts, task_gaps
from paretomtl.diagnosis.units import RESCALE, Units, compare_units, unit_notes
from paretomtl.methods.loss_scaling import UNITS_DIFFER

_SLOW = "Hardly learnt"
_WEIGHTS = "Try other weights, as the models of a front do, or a larger model"
_MORE = 'The guide "How many models" says when more pay off.'  # an installed package has no docs folder

ONE_MODEL = ("one-model", "helping", "conflict-only")
"""The verdicts that recommend one model with equal weights."""

LEARNT = 0.02
"""A task has not learnt if its own network lowers the loss by less than this share of the loss at the start."""


@dataclass(frozen=True)
class Verdict:
    """The recommendation.

    Attributes:
        word: "front", "one-model", "helping", "conflict-only", "gap-only", "cannot-tell-yet" or "unclear".
        text: the recommendation as a sentence, with its reason.
        preferences: how many to begin with; None if a front is not recommended.
        directions: the preferences as directions of the losses, scaled if they need it. They are empty if a front is
            not recommended, or if no directions were measured; then spread preferences evenly.
        scale: the argument of ``ParetoMTL(scale=...)``; None for no scaling.
        factors: the factors of the losses that ``directions`` refer to. Pass them in place of ``scale``, so that
            directions mean the same in every run. None if losses stay unscaled.
        notes: further remarks, a sentence each.
        again: the arguments to diagnose again with, by name, if seeds, epochs or a scale are missing; else None.
    """

    word: str
    text: str
    preferences: int | None
    directions: tuple[tuple[float, ...], ...]
    scale: str | None
    factors: tuple[float, ...] | None
    notes: tuple[str, ...]
    again: tuple[tuple[str, int | str], ...] | None = None


def judge(measured: Measurements) -> Verdict:
    """Return the verdict of the first rule that fits; rules count only significant evidence."""
    units = compare_units(measured)
    scale = units.scale
    gaps, pulls = task_gaps(measured), conflicts(measured)
    worse, better = ([i for i, gap in enumerate(gaps) if gap.word == word] for word in ("worse", "better"))
    undecided = [pull for pull in pulls if pull.there is None]
    pairs = listed([pair_name(measured, pull) for pull in pulls if pull.there])
    losing, gaining = listed([measured.tasks[i] for i in worse]), listed([measured.tasks[i] for i in better])
    losing += f" (and better in {gaining})" if worse and better else ""
    no_worse = all(gap.not_worse for gap in gaps)
    equal = "as good as" if all(gap.word == "as good" for gap in gaps) else "no worse than"
    trade_off = measured.whole and all(gap.not_better for gap in gaps) and units.compare
    count: int | None = None
    directions: list[tuple[float, ...]] = []
    factors: tuple[float, ...] | None = None
    again: dict[str, int | str] | None = None
    trouble = _trouble(measured)
    if trouble:
        word, text = "unclear", " ".join(trouble)
        if len(trouble) == 1 and trouble[0].startswith(_SLOW) and measured.planned is not None and not measured.whole:
            again = {"seeds": len(measured.seeds), "epochs": measured.planned}
    elif worse and (pairs or trade_off):
        word, count = "front", usual_count(len(measured.tasks))
        directions, factors = _proposed(measured, scale, count)
        count = len(directions) or count
        why = f"gradients of {pairs} conflict, and" if pairs else "gradients hardly conflict, but over all epochs"
        text = (
            f"A front is worth it: {why} joint training is worse than separate networks in {losing}. "
            f"{_which(directions, count, scaled=factors is not None or scale is not None)}"
        )
        if len(worse) < len(measured.tasks):
            text += f" Look first at preferences with a small loss of {listed([measured.tasks[i] for i in worse])}."
    elif worse and not undecided:
        word = "gap-only"
        after, again = _after_gap(measured, gaps, units)
        text = (
            f"Joint training is worse than separate networks in {losing}, but gradients hardly conflict"
            f"{'' if measured.whole else ' so far'}: the cause may not be a trade-off. {after}"
        )
    elif better and no_worse:
        word = "helping"
        text = (
            f"One model with equal weights is enough: tasks help each other; it beats separate networks in {gaining}."
        )
        if pairs:
            text += f" Gradients of {pairs} still conflict; a longer run may show a trade-off."
    elif no_worse and pairs:
        word = "conflict-only"
        text = (
            f"Gradients of {pairs} conflict, but joint training is {equal} separate networks so far, {MARGIN}. One "
            "model with equal weights may be enough; more epochs or a small front would tell."
        )
    elif no_worse and not undecided:
        word = "one-model"
        text = (
            f"One model with equal weights is enough: gradients do not conflict, and joint training is {equal} "
            f"separate networks, {MARGIN}."
        )
    else:
        word = "cannot-tell-yet"
        # After all epochs, and with losses that differ, no number of seeds would make a trade-off of a gap.
        rescaled = _after_gap(measured, gaps, units) if worse and measured.whole and scale is not None else None
        text, again = describe_missing(measured, gaps, pulls, rescaled)
    if word in ONE_MODEL and measured.planned is not None and not measured.whole:
        again = {"seeds": len(measured.seeds), "epochs": measured.planned}
        text += f" That is after {measured.epochs} of {measured.planned} epochs: to be sure, diagnose again with all."
    notes = unit_notes(measured, units, factors)
    asked = None if again is None else tuple(again.items())
    return Verdict(word, text, count, tuple(directions), scale, factors, tuple(notes), asked)


def _trouble(measured: Measurements) -> list[str]:
    """Reasons why there is no verdict, a sentence each."""
    reasons = []
    groups: dict[str, list[str]] = {"unlabelled": [], "unmeasured": [], "flat": [], "slow": []}
    for i, task in enumerate(measured.tasks):
        norm, learnt = float(measured.norms[i]), float(measured.learnt[i])
        if math.isnan(norm):
            groups["unlabelled"].append(task)
        elif bool(measured.joint[:, i].isnan().all()):
            groups["unmeasured"].append(task)
        elif norm == 0.0:
            groups["flat"].append(task)
        elif not learnt > LEARNT:
            groups["slow"].append(task)
    if groups["unlabelled"]:
        reasons.append(
            f"No labels in any batch, or some that are NaN: {listed(groups['unlabelled'])}. All losses were NaN; "
            "check inputs and labels, and let losses leave out samples without a label."
        )
    if groups["unmeasured"]:
        reasons.append(
            f"No labels on '{measured.split}': {listed(groups['unmeasured'])}. All losses there were NaN: give the "
            "split labels for every task."
        )
    if groups["flat"]:
        reasons.append(f"No gradient: {listed(groups['flat'])}. The loss does not change with the parameters.")
    if groups["slow"]:
        reasons.append(
            f"{_SLOW}, even by a separate network: {listed(groups['slow'])}. Train longer (epochs), standardise "
            "targets in large units, or check loss, labels and learning rate, before you weight tasks."
        )
    if measured.broken:
        reasons.append(
            f"Losses or gradients were not finite in {measured.broken} of {measured.models} models: "
            "lower the learning rate."
        )
    return reasons


def _proposed(
    measured: Measurements, scale: str | None, count: int
) -> tuple[list[tuple[float, ...]], tuple[float, ...] | None]:
    """Directions between the ends, and the factors in place of a scale; none if there are too few directions."""
    if measured.ends is None:
        return [], None
    ends = measured.ends.mean(0)
    if scale is None:
        return between(measured.units * ends, count), measured.factors
    sizes = ends.mean(0)
    if not bool((sizes > 0).all() and sizes.isfinite().all()):
        return [], None
    factors = even_factors(sizes.tolist())
    rows = between(ends * ends.new_tensor(factors), count)
    return (rows, factors) if len(rows) >= len(measured.tasks) else ([], None)


def _which(directions: Sequence[tuple[float, ...]], count: int, *, scaled: bool) -> str:
    """Say which preferences to begin with, and why."""
    if not directions:
        return f"Begin with {count} preferences, spread evenly. {_MORE}"
    losses = "scaled losses" if scaled else "losses"
    first, last = (f"({', '.join(f'{value:.2g}' for value in row)})" for row in (directions[0], directions[-1]))
    if len(directions) == 1:
        return f"All models reached much the same ratio of {losses}, {first}: begin with this one preference."
    if len(directions[0]) > 2:
        return (
            f"Begin with {count} preferences between the ratios of {losses} that models reached near the ends of the "
            f"front; no model reached ratios beyond these. {_MORE}"
        )
    return (
        f"Begin with {count} preferences from {first} to {last}, the ratios of {losses} that models reached near the "
        f"ends of the front; no model reached ratios beyond these. {_MORE}"
    )


def _after_gap(measured: Measurements, gaps: Sequence[Gap], units: Units) -> tuple[str, dict[str, int | str] | None]:
    """Say what to do about a gap without conflict, and return the arguments to diagnose again with."""
    seeds, long = len(measured.seeds), max(measured.epochs, measured.planned or 0)
    stays = measured.whole and all(gap.not_better for gap in gaps)
    if units.scale is not None:
        and_long = "" if long == measured.epochs else f" and all {long} epochs"
        why = (
            f"A gap after all epochs is a trade-off only if losses differ by no more than a factor of "
            f"{UNITS_DIFFER:g}: here {units.named(measured)}."
            if stays
            else f"The {units.named(measured)}, so that equal weights train mostly the former."
        )
        text = f"{why} Diagnose again with scaled losses{and_long} ({RESCALE})."
        return text, {"seeds": seeds, "epochs": long, "scale": "auto"}
    if units.pair is not None or units.lopsided:
        # Neither has a scale as its remedy, and a longer run does not change what equal weights train.
        what = f"The {units.named(measured)}" if units.pair is not None else units.lopsided.partition(":")[0]
        return f"{what}, so that the gap may come from equal weights. {_WEIGHTS}.", None
    if measured.whole:
        if any(gap.word == "better" for gap in gaps):
            return f"{_WEIGHTS}.", None
        unsure = [i for i, gap in enumerate(gaps) if not gap.not_better]
        return (
            f"It is one unless joint training is better in {listed([measured.tasks[i] for i in unsure])}, which is "
            f"open. {open_gap(measured, unsure[0], gaps[unsure[0]])} {LOOK}"
        ), None
    every = "as many epochs as you are going to train" if measured.planned is None else f"all {measured.planned} epochs"
    text = f"Diagnose again with {every}: a gap that stays, and that no other task gains from, is a trade-off."
    return text, None if measured.planned is None else {"seeds": seeds, "epochs": measured.planned}
