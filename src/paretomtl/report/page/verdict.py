"""The verdict of a page: which run has the best front, and whether its seeds can tell."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from paretomtl._support.significance import deviation
from paretomtl._support.splits import split_word
from paretomtl._support.text import join_names, shorten
from paretomtl.compare import best_hypervolume
from paretomtl.front import Front
from paretomtl.methods.registry import is_separate, label_of


def verdict_of(fronts: Sequence[Front], names: Sequence[str], volumes: Sequence[Mapping[str, float | None]]) -> str:
    """A few sentences that compare the runs of a page; empty if there is nothing to compare.

    Hypervolumes are compared on the split that ranks, as ``compare`` does. Separate networks are not a front, and are
    left out. Other runs without a hypervolume are named, so that none drops out of the comparison unnoticed.

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
    runs: list[tuple[str, dict[int | None, float]]]
    if any(len({fronts[i].seed for i in own}) < len(own) for own in methods.values()):
        runs = [(shorten(names[i], 40), {0: volume}) for i, volume in known.items()]
    elif len(methods) == 1:
        return _of_seeds(list(known.values()), split)
    else:
        runs = [(shorten(label_of(name), 40), {fronts[i].seed: known[i] for i in own}) for name, own in methods.items()]
    return best_hypervolume(runs, split_word(split))[0]


def _of_missing(names: Sequence[str], split: str) -> str:
    if not names:
        return ""
    listed = names if len(names) <= 4 else [*names[:3], f"{len(names) - 3} more runs"]
    verbs = ("is", "it has") if len(names) == 1 else ("are", "they have")
    return f"{join_names(listed)} {verbs[0]} left out: {verbs[1]} no hypervolume on {split_word(split)}."


def _of_seeds(volumes: Sequence[float], split: str) -> str:
    spread = f"{statistics.fmean(volumes):.4g} ± {deviation(volumes):.2g}"
    return f"{len(volumes)} seeds of one method: hypervolume {spread} on {split_word(split)} (mean and deviation)."
