"""A front in numbers and in lines of text, for ``show`` and for commands that train."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from paretomtl._support.splits import split_word, training_split
from paretomtl._support.tensor_json import to_numbers
from paretomtl.front import Front
from paretomtl.front.indicators import quick_box_share, quick_hypervolume, quick_tight_hypervolume


def ranked_words(front: Front, split: str | None = None) -> str:
    """Describe which splits are shown, and which one ranks."""
    if split is not None:
        return f"losses on {split_word(split)}"
    ranking, *others = front.shown_splits
    return f"ranked by losses on {split_word(ranking)}" + (", test next to it" if others else "")


def quality_lines(facts: dict[str, Any]) -> list[str]:
    """Describe the indicators on each split that is shown."""
    lines = []
    for part in (facts, facts["test"]):
        if part is None:
            continue
        text = f"spread {part['spread']:.4g}; {part['nondominated']} of {len(part['losses'])} not dominated"
        broken = sum(any(value is None for value in row) for row in part["losses"])
        text += f", {broken} with losses that are not finite" if broken else ""
        if part["hypervolume"] is not None:
            text = f"hypervolume {part['hypervolume']:.4g} at {point_text(facts['reference'])}; {text}"
        lines.append(f"on {split_word(part['split'])}: {text}")
        more = [] if part["box_share"] is None else [f"{100 * part['box_share']:.1f} % of the box"]
        if part["tight_hypervolume"] is not None:
            place = f"at the tight reference {point_text(part['tight_reference'])}"
            more.append(f"hypervolume {part['tight_hypervolume']:.4g} {place}")
        lines += [f"  {'; '.join(more)}"] if more else []
    return lines


def region_lines(facts: dict[str, Any]) -> list[str]:
    """Describe how near the models are to their preference vectors; empty for preferences of another kind."""
    if facts["in_region"] is None:
        return []
    where = f"on {split_word(facts['regions_split'])}"
    angles = ", ".join("-" if angle is None else f"{angle:.1f}" for angle in facts["angles"])
    middle = ""
    if facts["median_angle"] is not None:
        middle = f"median {facts['median_angle']:.1f}, largest {facts['largest_angle']:.1f}; "
    count = f"{facts['in_region']} of {len(facts['subproblems'])} ({100 * facts['region_share']:.0f} %)"
    return [f"{count} in their own region {where}; degrees from their preferences {where}: {middle}{angles}"]


def point_text(point: Sequence[float]) -> tuple[float, ...]:
    """A reference point as text has it."""
    return tuple(round(value, 3) if abs(value) >= 1 else float(f"{value:.3g}") for value in point)


def joined_facts(old: Front, new: Front, joined: Front, folder: Path) -> dict[str, Any]:
    """Return what new models add to a front: hypervolumes of old, new and all, at common reference points."""
    reference = None if joined.reference is None else list(joined.reference)
    ranking, *others = joined.shown_splits

    def numbers(split: str) -> dict[str, Any]:
        tight = quick_tight_hypervolume(joined, split)[0]
        known = {"hypervolume": reference, "tight_hypervolume": tight}
        parts = {"before": old, "new": new, "joined": joined}
        return {
            "split": split,
            "tight_reference": tight,
            **{
                name: {word: point and quick_hypervolume(part, point, split) for word, part in parts.items()}
                for name, point in known.items()
            },
        }

    return {
        "folder": str(folder),
        "solutions": len(joined),
        "reference": reference,
        **numbers(ranking),
        "test": numbers("test") if others else None,
    }


def joined_lines(facts: dict[str, Any]) -> list[str]:
    """Describe what new models add to a front."""
    lines = [f"Joined with the run: {facts['solutions']} models in {facts['folder']}."]
    for part in [facts] if facts["test"] is None else [facts, facts["test"]]:
        words = []
        points = {"hypervolume": facts["reference"], "tight_hypervolume": part["tight_reference"]}
        for name, point in points.items():
            values = part[name]
            if values["before"] is None or values["joined"] is None:
                continue
            alone = "" if values["new"] is None else f", new alone {values['new']:.4g}"
            words.append(
                f"hypervolume {values['before']:.4g} before, {values['joined']:.4g} joined{alone}, at "
                f"{point_text(point)}"
            )
        lines += [f"on {split_word(part['split'])}: {'; '.join(words)}"] if words else []
    return lines


def summary(front: Front, folder: Path, split: str | None = None) -> dict[str, Any]:
    """Return the numbers of a front, for printing and for JSON.

    Numbers are on the split that ranks, those under "test" on the test split, and regions on training. If ``split`` is
    given, all of them are on that split.
    """
    directions = front.reading == "direction"
    regions = split or training_split(front.losses)
    others = [] if split is not None else front.shown_splits[1:]
    hits = front.region_hits(regions) if directions else None
    angles = to_numbers(front.angle(regions)) if directions else None
    known = [angle for angle in angles or [] if angle is not None]
    return {
        "folder": str(folder),
        "problem": front.problem,
        "method": front.method,
        "seed": front.seed,
        "complete": front.complete,
        "ended": front.ended,
        "tasks": list(front.tasks),
        "reading": front.reading,
        "subproblems": list(front.subproblems),
        "names": list(front.names) or None,
        "preferences": front.preferences[list(front.subproblems)].tolist(),
        **_numbers(front, split or front.ranking_split),
        "test": _numbers(front, "test") if others else None,
        "status": list(front.status),
        "epochs": list(front.epochs),
        "reference": None if front.reference is None else list(front.reference),
        "regions_split": regions if directions else None,
        "in_region": hits,
        "region_share": None if hits is None else hits / len(front),
        "angles": angles,
        "median_angle": statistics.median(known) if known else None,
        "largest_angle": max(known, default=None),
        "strategy": front.strategy,
        "seconds": front.seconds,
        "remarks": list(front.remarks),
        "decisions": list(front.decisions),
        "made_by": dict(front.made_by),
    }


def _numbers(front: Front, split: str) -> dict[str, Any]:
    """Return everything that is measured on one split, with the split's name."""
    reference, tight = quick_tight_hypervolume(front, split)
    return {
        "split": split,
        "losses": to_numbers(front.losses[split]),
        "metrics": {name: to_numbers(values) for name, values in front.metrics.get(split, {}).items()},
        "hypervolume": quick_hypervolume(front, split=split),
        "box_share": quick_box_share(front, split),
        "tight_reference": reference,
        "tight_hypervolume": tight,
        "spread": front.spread(split),
        "nondominated": int(front.nondominated(split).sum()),
    }
