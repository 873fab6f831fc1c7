"""The figures of the study, drawn only from its stored rows."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from paretomtl._support.significance import half_width
from paretomtl._support.splits import split_word
from paretomtl.compare import Row, Summary
from paretomtl.methods.registry import REGISTRY, colour_of, label_of
from paretomtl.paper.evidence.verdicts import AHEAD, BEHIND, answers, by_setting, measured_on, summaries_of
from paretomtl.paper.panels import grid, legend, name_lines, panel_title
from paretomtl.paper.study import Draw
from paretomtl.report.figures.style import QUIET, SMALL, add_caption

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLUMNS = 3
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "h")
_RIVALS = ("auto", "linear, interior")
_OWN = "the problem's own recipe"


@dataclass(frozen=True)
class _Quantity:
    """What a figure shows of every arm.

    Attributes:
        name: its name on the axis.
        values: those of all seeds, in the order of the rows.
        sign: 1 if more is better, -1 if less is.
    """

    name: str
    values: Callable[[Summary], Sequence[float]]
    sign: int


@dataclass(frozen=True)
class _Variant:
    """One setting of a problem: an optimizer, a length or a width.

    Attributes:
        rows: those of all arms.
        values: those of all seeds, by arm; the order is that of the table.
        split: where they were measured.
    """

    rows: Sequence[Row]
    values: Mapping[str, Sequence[float]]
    split: str


_Panels = dict[str, dict[str, _Variant]]


def draw_hypervolumes(rows: Sequence[Row]) -> Figure | None:
    """The hypervolume of every arm: means over seeds with their intervals, a panel for each problem."""
    return _draw(rows, _Quantity("hypervolume", lambda summary: measured_on(summary).hypervolumes, 1))


def draw_regrets(rows: Sequence[Row]) -> Figure | None:
    """The regret over random utilities of every arm: what somebody who chooses a model loses."""
    return _draw(rows, _Quantity("regret", lambda summary: measured_on(summary).regrets, -1))


def _draw(rows: Sequence[Row], quantity: _Quantity) -> Figure | None:
    panels = _panels(rows, quantity)
    if not panels:
        return None
    markers = dict(zip(dict.fromkeys(name for each in panels.values() for name in each), _MARKERS * 9, strict=False))
    titles = list(panels)
    lines = [titles[start : start + _COLUMNS] for start in range(0, len(titles), _COLUMNS)]
    ranked = [_ranked([each for title in line for each in panels[title].values()], quantity.sign) for line in lines]
    figure, axes = grid(len(lines), min(len(panels), _COLUMNS), len(panels), height=0.21 * max(map(len, ranked)) + 0.95)
    for number, (axis, title) in enumerate(zip(axes, titles, strict=True)):
        arms = ranked[number // _COLUMNS]
        name_lines(axis, [_label(arm) for arm in arms] if number % _COLUMNS == 0 else [""] * len(arms))
        _draw_panel(axis, title, panels[title], arms, markers)
        axis.set_xlabel(f"{quantity.name} on {split_word(next(iter(panels[title].values())).split)}")
    for name, marker in markers.items():
        axes[0].plot([], [], color=QUIET, marker=marker, linestyle="none", markersize=4.5, label=name)
    legend(figure, columns=5)
    add_caption(
        figure,
        _finding(panels, quantity),
        f"Points are means over seeds, bars their 95 % intervals; {'more' if quantity.sign > 0 else 'less'} is better. "
        "The way with the best mean rank in its row of panels is on top. A setting is a problem with an optimizer or a "
        "length; a gap was not trained.",
    )
    return figure


def _panels(rows: Sequence[Row], quantity: _Quantity) -> _Panels:
    """The settings with at least two arms, by problem and by what else they differ in."""
    found: _Panels = {}
    for title, own in by_setting(rows).items():
        summaries = [each for each in summaries_of(own) if not each.ideal]
        values = {each.method: [v for v in quantity.values(each) if math.isfinite(v)] for each in summaries}
        values = {arm: known for arm, known in values.items() if known}
        if len(values) > 1:
            problem, _, way = title.partition(", ")
            variant = _Variant(own, values, measured_on(summaries[0]).split)
            found.setdefault(problem, {})[way or _OWN] = variant
    return found


def _ranked(variants: Sequence[_Variant], sign: int) -> list[str]:
    """All arms of some settings, the one with the best mean rank last, which is on top of a panel."""
    ranks: dict[str, list[float]] = {}
    for variant in variants:
        best_first = sorted(variant.values, key=lambda arm: -sign * statistics.fmean(variant.values[arm]))
        for place, arm in enumerate(best_first):
            ranks.setdefault(arm, []).append(place / len(best_first))
    return sorted(ranks, key=lambda arm: statistics.fmean(ranks[arm]), reverse=True)


def _draw_panel(
    axis: Axes, title: str, variants: Mapping[str, _Variant], arms: Sequence[str], markers: Mapping[str, str]
) -> None:
    """Draw the means of one problem with their intervals, the variants of an arm below each other."""
    for number, (name, variant) in enumerate(variants.items()):
        for arm, values in variant.values.items():
            height = arms.index(arm) - 0.24 * (number - (len(variants) - 1) / 2)
            middle, reach = statistics.fmean(values), half_width(values)
            colour = colour_of(next(row["trained_by"] for row in variant.rows if row["method"] == arm))
            if math.isfinite(reach):
                axis.plot([middle - reach, middle + reach], [height] * 2, color=colour, linewidth=1.2, zorder=2)
            style: dict[str, Any] = {"color": colour, "edgecolor": "white", "linewidth": 0.3, "zorder": 3}
            axis.scatter([middle], [height], s=17, marker=markers[name], **style)
    first = next(iter(variants.values())).rows
    seeds = len({row["seed"] for row in first})
    models = max(len(row["vectors"]) for row in first)
    panel_title(axis, _problem(title, first), f"{models} models, {seeds} seeds")
    axis.locator_params(axis="x", nbins=3)
    axis.tick_params(axis="y", labelsize=SMALL)


def _finding(panels: _Panels, quantity: _Quantity) -> str:
    """In how many settings the default is ahead of fixed weights, and behind, paired by seed."""
    gains = [_gains(each, quantity.sign) for variants in panels.values() for each in variants.values()]
    found = answers([each for each in gains if each])
    if not found:
        return f"The {quantity.name} of every arm"
    ahead, behind = found.count(AHEAD), found.count(BEHIND)
    settings = f"{ahead} of {len(found)} settings, behind in {behind}"
    return f"By {quantity.name}, auto is ahead of interior weights in {settings}"


def _gains(variant: _Variant, sign: int) -> list[float]:
    """By how much the default is better than fixed weights, for each seed; empty if a seed of one is missing."""
    seeds = [[row["seed"] for row in variant.rows if row["method"] == arm] for arm in _RIVALS]
    values = [variant.values.get(arm, []) for arm in _RIVALS]
    if sorted(seeds[0]) != sorted(seeds[1]) or any(len(own) != len(seeds[0]) for own in values):
        return []
    ours, theirs = (dict(zip(*pair, strict=True)) for pair in zip(seeds, values, strict=True))
    return [sign * (ours[seed] - theirs[seed]) for seed in sorted(ours)]


def _label(arm: str) -> str:
    """The name of an arm: the label of its method, and what is special about it."""
    method, _, rest = arm.partition(", ")
    name = label_of(method) if method in REGISTRY else method.capitalize()
    return f"{name}, {rest}" if rest else name


def _problem(title: str, rows: Sequence[Row]) -> str:
    """The title of a panel; the synthetic problem is named by its number of tasks."""
    if rows[0]["problem"] == "synthetic":
        return f"Synthetic, {len(rows[0]['tasks'])} tasks"
    return title[:1].upper() + title[1:]


FIGURES: dict[str, Draw] = {
    "beyond-hypervolume": draw_hypervolumes,
    "beyond-regret": draw_regrets,
}
"""The figures by the name of their files."""
