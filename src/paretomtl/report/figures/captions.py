"""Captions: what a figure shows, in a sentence or two."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from paretomtl.compare import Row, summaries, verdict
from paretomtl.diagnosis import Diagnosis
from paretomtl.front import Front
from paretomtl.methods.registry import label_of

_AXES = 5  # the most axes whose best models a caption names
_SENTENCES = re.compile(r"(?<=[.!?]) +(?=[^ ])")


def front_title(front: Front) -> str:
    """The title of a front: problem, number of models, method."""
    return f"{front.problem}: {len(front)} model{'s' if len(front) != 1 else ''}, {label_of(front.method)}"


def front_caption(
    front: Front,
    columns: Mapping[str, Sequence[float]],
    higher: Sequence[bool],
    rows: Sequence[int],
    kept: Sequence[int],
    *,
    rays: bool = False,
    regions: bool = False,
    beaten: str = "",
) -> str:
    """Describe the models of a front.

    Args:
        front: what is drawn.
        columns: the values on each axis, by its name.
        higher: for each of them, whether more is better.
        rows: the rows that are drawn.
        kept: those that no other one dominates.
        rays: whether preferences are drawn.
        regions: whether their regions are drawn, too.
        beaten: how dominated models look; empty if they look like the others.
    """
    corner = "Upper right is better." if all(higher) else "" if any(higher) else "Lower left is better."
    each = {2: f"Each point is a model. {corner}", 3: f"Each panel is a pair of tasks. {corner}"}
    parts = [each.get(len(columns), "Each line is a model. Up is better on every axis.").strip()]
    known = [row for row in rows if all(math.isfinite(values[row]) for values in columns.values())]
    if len(known) > 1:
        parts.append((_extremes if len(columns) == 2 else _bests)(front, columns, higher, known))
    count = len(rows) - len(kept)
    if count and beaten:
        parts.append(f"{'1 model is' if count == 1 else f'{count} models are'} dominated ({beaten}).")
    if rays:
        parts.append("Dashed: the preferences; grey: every other region." if regions else "Dashed: the preferences.")
    return " ".join(parts)


def _extremes(front: Front, columns: Mapping[str, Sequence[float]], higher: Sequence[bool], rows: Sequence[int]) -> str:
    """Say which models are best on each of two axes, and what changes between them."""
    ends = [_best(values, more, rows) for values, more in zip(columns.values(), higher, strict=True)]
    one, other = (front.subproblems[row] for row in ends)
    if one == other:
        return f"Model {one} is best in {' and in '.join(columns)}."
    words = []
    for name in columns:
        before, after = (columns[name][row] for row in ends)
        change = f"{'rises' if after > before else 'falls'} from {before:.3g} to {after:.3g}"
        words.append(f"{name} {change if after != before else f'stays at {before:.3g}'}")
    return f"From model {one} to {other}, {words[0]} and {words[1]}."


def _bests(front: Front, columns: Mapping[str, Sequence[float]], higher: Sequence[bool], rows: Sequence[int]) -> str:
    """Say which model is best on each of many axes, with its value."""
    words = []
    for (name, values), more in list(zip(columns.items(), higher, strict=True))[:_AXES]:
        row = _best(values, more, rows)
        words.append(f"model {front.subproblems[row]} in {name} ({values[row]:.3g})")
    left = len(columns) - _AXES
    return f"Best: {', '.join(words)}{f' ... and {left} more' if left > 0 else ''}."


def _best(values: Sequence[float], higher: bool, rows: Sequence[int]) -> int:
    return (max if higher else min)(rows, key=values.__getitem__)


def comparison_caption(rows: Sequence[Row]) -> str:
    """The verdict on a comparison, its first two sentences, with the labels of the methods."""
    table = summaries(rows)
    text = " ".join(_SENTENCES.split(verdict(table))[:2])
    names = sorted({each.method for each in table}, key=len, reverse=True)
    any_name = re.compile(rf"(?<![\w-])({'|'.join(map(re.escape, names))})(?![\w-])")
    return any_name.sub(lambda found: label_of(found.group()), text)


def diagnosis_caption(diagnosis: Diagnosis) -> str:
    """The verdict of a diagnosis, its first two sentences."""
    return " ".join(_SENTENCES.split(diagnosis.verdict.text)[:2])
