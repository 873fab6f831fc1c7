"""Rules of a diagnosis: thresholds, and the verdict that follows from them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from paretomtl.core.preferences import usual_count
from paretomtl.diagnosis._measurements import Measurements
from paretomtl.diagnosis._missing_evidence import MARGIN, describe_missing, listed, pair_name
from paretomtl.diagnosis._preferences import between, even_factors
from paretomtl.diagnosis.evidence import conflicts, task_gaps
from paretomtl.methods.loss_scaling import UNITS_DIFFER, format_ratio, largest_ratio

_SLOW = "Hardly learnt"

ONE_MODEL = ("one-model", "helping", "conflict-only")
"""The verdicts that recommend one model with equal weights."""

LARGE_LOSS = 100.0
"""A loss that is larger at the start and at the end is probably the squared error of targets in large units."""
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
        again: the arguments to diagnose again with, by name, if seeds or epochs are missing; else None.
    """

    word: str
    text: str
    preferences: int | None
    directions: tuple[tuple[float, ...], ...]
    scale: str | None
    factors: tuple[float, ...] | None
    notes: tuple[str, ...]
    again: tuple[tuple[str, int], ...] | None = None


def judge(measured: Measurements) -> Verdict:
    """Return the verdict of the first rule that fits; rules count only significant evidence."""
    scale, why_scale = _scaling(measured)
    lopsided = _lopsided(measured)
    gaps, pulls = task_gaps(measured), conflicts(measured)
    worse, better, left = (
        [i for i, gap in enumerate(gaps) if gap.word == word] for word in ("worse", "better", "open")
    )
    undecided = [pull for pull in pulls if pull.there is None]
    pairs = listed([pair_name(measured, pull) for pull in pulls if pull.there])
    losing, gaining = listed([measured.tasks[i] for i in worse]), listed([measured.tasks[i] for i in better])
    losing += f" (and better in {gaining})" if worse and better else ""
    no_worse = all(gap.not_worse for gap in gaps)
    equal = "as good as" if all(gap.word == "as good" for gap in gaps) else "no worse than"
    trade_off = measured.whole and all(gap.not_better for gap in gaps) and scale is None and not lopsided
    count: int | None = None
    directions: list[tuple[float, ...]] = []
    factors: tuple[float, ...] | None = None
    again: dict[str, int] | None = None
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
    elif worse and not undecided and not (measured.whole and left):
        word = "gap-only"
        after, again = _after_gap(measured, scaled=scale is not None, lopsided=bool(lopsided))
        text = (
            f"Joint training is worse than separate networks in {losing}, but gradients hardly conflict so far: the "
            f"cause may not be a trade-off. {after}"
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
        text, again = describe_missing(measured, gaps, pulls)
    if word in ONE_MODEL and measured.planned is not None and not measured.whole:
        again = {"seeds": len(measured.seeds), "epochs": measured.planned}
        text += f" That is after {measured.epochs} of {measured.planned} epochs: to be sure, diagnose again with all."
    how = [] if scale is None else [f"{why_scale} {_how_to_scale(scale, factors)}"]
    if scale is None and measured.factors is not None:
        how = [f"Gradients, weights and directions are those of losses times {_written(measured.factors)}."]
    notes = [*how, *([lopsided] if lopsided else [])]
    asked = None if again is None else tuple(again.items())
    return Verdict(word, text, count, tuple(directions), scale, factors, tuple(notes), asked)


def _scaling(measured: Measurements) -> tuple[str | None, str]:
    """The scale to use, and the reason; None for no scaling."""
    large, small, ratio = largest_ratio(
        [(measured.units * losses.abs()).tolist() for losses in (measured.first, measured.last)]
    )
    if ratio > UNITS_DIFFER:
        by = "" if measured.factors is None else f" by other factors than {_written(measured.factors)}"
        raw = min(float(measured.first[large]), float(measured.last[large])) > LARGE_LOSS
        advice = (
            f" If the targets of {measured.tasks[large]} are in large units, standardise them first (subtract their "
            "mean, divide by their deviation): factors change weights, but not how far outputs must go."
        )
        return "first", (
            f"Scale the losses{by}: that of {measured.tasks[large]} is {format_ratio(ratio)} times that of "
            f"{measured.tasks[small]}, at the start and at the end.{advice if raw else ''}"
        )
    return None, ""


def _lopsided(measured: Measurements) -> str:
    """A note if losses are of similar size and gradients are not; else empty."""
    large, small, ratio = largest_ratio([(measured.units * measured.norms).tolist()])
    if ratio <= UNITS_DIFFER or _scaling(measured)[0] is not None:
        return ""
    return (
        f"Gradients of {measured.tasks[large]} are {format_ratio(ratio)} times as long as those of "
        f"{measured.tasks[small]}: equal weights train mostly the former. Pareto MTL needs no scale for that, because "
        "its step gives short gradients more weight."
    )


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


def weight_factors(measured: Measurements) -> tuple[float, ...]:
    """Factors of the losses with which weights near the ends of the front mean the same for all tasks.

    If only gradients differ, a factor is one over their norm. If losses need scaling, it is one over the geometric mean
    of two sizes: the loss after joint training, and the loss that a separate network removes. The first is too large if
    another task dominated training, the second if the loss starts far off.
    """
    if _lopsided(measured):
        return even_factors(measured.norms.tolist())
    if _scaling(measured)[0] is None:
        return (1.0,) * len(measured.tasks) if measured.factors is None else measured.factors
    return even_factors((measured.last.abs() * measured.learnt * measured.first.abs()).sqrt().tolist())


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
        return f"Begin with {count} preferences, spread evenly; docs/guides/how-many.md says when more pay off."
    losses = "scaled losses" if scaled else "losses"
    first, last = (f"({', '.join(f'{value:.2g}' for value in row)})" for row in (directions[0], directions[-1]))
    if len(directions) == 1:
        return f"All models reached much the same ratio of {losses}, {first}: begin with this one preference."
    if len(directions[0]) > 2:
        return (
            f"Begin with {count} preferences between the ratios of {losses} that models reached near the ends of the "
            "front; no model reached ratios beyond these. docs/guides/how-many.md says when more pay off."
        )
    return (
        f"Begin with {count} preferences from {first} to {last}, the ratios of {losses} that models reached near the "
        "ends of the front; no model reached ratios beyond these. docs/guides/how-many.md says when more pay off."
    )


def _after_gap(measured: Measurements, *, scaled: bool, lopsided: bool) -> tuple[str, dict[str, int] | None]:
    """Say what to do about a gap without conflict, and return the arguments to diagnose again with."""
    if scaled:
        return "Scale the losses first, and diagnose again.", None
    if measured.whole or lopsided:
        return "Try other weights, or a larger model.", None
    long = "as many epochs as you are going to train" if measured.planned is None else f"all {measured.planned} epochs"
    text = f"Diagnose again with {long}: a gap that stays, and that no other task gains from, is a trade-off."
    return text, None if measured.planned is None else {"seeds": len(measured.seeds), "epochs": measured.planned}


def _how_to_scale(scale: str, factors: Sequence[float] | None) -> str:
    if factors is None:
        return f'The default method does that by itself; others take scale="{scale}" (--set scale={scale}).'
    text = _written(factors)
    return f"Preferences are for losses times {text}: use ParetoMTL(scale=({text})), or --set scale={text}."


def _written(factors: Sequence[float]) -> str:
    return ",".join(f"{factor:g}" for factor in factors)
