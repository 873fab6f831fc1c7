"""The verdict of a page: which run has the best front, and whether its seeds can tell."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from paretomtl._support.significance import deviation, difference
from paretomtl._support.splits import split_word
from paretomtl._support.text import join_names, shorten
from paretomtl.front import Front
from paretomtl.methods.registry import is_separate, label_of


def verdict_of(fronts: Sequence[Front], names: Sequence[str], volumes: Sequence[Mapping[str, float | None]]) -> str:
    """A few sentences that compare the runs of a page; empty if there is nothing to compare.

    Hypervolumes are compared on the split that ranks, by the rule of ``compare``: two methods differ if seeds alone
    would move their means that far apart only once in twenty. Separate networks are not a front, and are left out.
    Other runs without a hypervolume are named, so that none drops out of the comparison unnoticed.

    Args:
        fronts: the runs.
        names: what the page calls them.
        volumes: by split, the hypervolume of each run at one reference point.
    """
    if len({front.problem for front in fronts}) > 1:
        return ""
    kept = [i for i, front in enumerate(fronts) if not is_separate(front.method)]
    split = next((split for split in ("val", "train", "test") if any(split in fronts[i].losses for i in kept)), "")
    known = {i: value for i in kept if (value := volumes[i].get(split)) is not None}
    if len(kept) < 2 or not split:
        return ""
    if not known:
        return f"No run has a hypervolume on {split_word(split)}, so the runs are not compared."
    missing = [shorten(names[i], 40) for i in kept if i not in known]
    return " ".join(filter(None, (_of_known(fronts, names, known, split), _of_missing(missing, split))))


def _of_known(fronts: Sequence[Front], names: Sequence[str], known: Mapping[int, float], split: str) -> str:
    if len(known) < 2:
        return ""
    methods: dict[str, list[int]] = {}
    for i in known:
        methods.setdefault(fronts[i].method, []).append(i)
    if any(len({fronts[i].seed for i in own}) < len(own) for own in methods.values()):
        return _of_runs(known, names, split)
    if len(methods) == 1:
        return _of_seeds(list(known.values()), split)
    return _of_methods({method: [known[i] for i in own] for method, own in methods.items()}, split)


def _of_missing(names: Sequence[str], split: str) -> str:
    if not names:
        return ""
    listed = names if len(names) <= 4 else [*names[:3], f"{len(names) - 3} more runs"]
    verbs = ("is", "it has") if len(names) == 1 else ("are", "they have")
    return f"{join_names(listed)} {verbs[0]} left out: {verbs[1]} no hypervolume on {split_word(split)}."


def _of_runs(volumes: Mapping[int, float], names: Sequence[str], split: str) -> str:
    first, second = sorted(volumes, key=lambda i: -volumes[i])[:2]
    return (
        f"{shorten(names[first], 40)} has the largest hypervolume on {split_word(split)}"
        f"{_ahead(volumes[first], volumes[second], shorten(names[second], 40))}. One run each cannot tell whether that "
        "is luck."
    )


def _of_seeds(volumes: Sequence[float], split: str) -> str:
    spread = f"{statistics.fmean(volumes):.4g} ± {deviation(volumes):.2g}"
    return f"{len(volumes)} seeds of one method: hypervolume {spread} on {split_word(split)} (mean and deviation)."


def _of_methods(volumes: Mapping[str, Sequence[float]], split: str) -> str:
    order = sorted(volumes, key=lambda method: -statistics.fmean(volumes[method]))
    first, others = order[0], order[1:]
    label = {method: shorten(label_of(method), 40) for method in order}
    means = {method: statistics.fmean(volumes[method]) for method in order}
    seeds = len(volumes[first])
    ahead = _ahead(means[first], means[others[0]], label[others[0]])
    if seeds < 2 or max(len(volumes[method]) for method in others) < 2:
        return (
            f"{label[first]} has the largest hypervolume on {split_word(split)}{ahead}. One seed cannot tell whether "
            "that is luck: compare five."
        )
    worse = [method for method in others if difference(volumes[first], volumes[method]).sign > 0]
    alike = [method for method in others if method not in worse]
    text = f"{label[first]} has the largest mean hypervolume on {split_word(split)}{ahead}, over {seeds} seeds."
    if alike:
        text += f" It cannot be told apart from {join_names([label[method] for method in alike])}."
    if worse:
        verb = "is" if len(worse) == 1 else "are"
        text += f" {join_names([label[method] for method in worse])} {verb} behind by more than seeds explain."
    return text


def _ahead(first: float, second: float, name: str) -> str:
    if first == second:
        return f", and so has {name}"
    return f", {100 * (first / second - 1):.2g} % above {name}" if second > 0 else ""
