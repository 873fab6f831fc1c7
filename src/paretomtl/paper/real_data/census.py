"""Census income, three tasks (supplement, sections 2.1 and 3, figure 8)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from paretomtl._support.significance import difference, mean
from paretomtl.compare import Row
from paretomtl.paper.claims import Claim, judge, measured_claim
from paretomtl.paper.number_text import plus_minus, starred
from paretomtl.paper.real_data.cell_facts import cell_facts, scale_facts
from paretomtl.paper.real_data.cells import EVEN, EXPERTS, SHARED, TaskCell, resize, scaled_cells
from paretomtl.paper.real_data.dominance import dominance_facts, dominated
from paretomtl.paper.real_data.shared_claims import AHEAD, MOST, judge_balanced, trade_offs
from paretomtl.paper.real_data.three_task_figures import (
    PARTS,
    Pairs,
    draw_hypervolumes,
    draw_parallels,
    draw_projections,
    filled,
    first_seed,
)
from paretomtl.paper.rows import column, has, pick, pick_by_seed
from paretomtl.paper.study import Size, Study
from paretomtl.report.figures.style import INK

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KNOWING_NOTHING = (0.23, 0.5, 0.68)
"""The approximate training losses of a constant prediction: the worst point of the scale "points"."""
_TITLE = "Census income"
_RELEASED = 650  # steps: a third of a run
_MUCH = 0.01  # of a hypervolume, to be called "much better"


def cells(size: Size) -> list[TaskCell]:
    """5 and 25 random vectors, 25 even ones, random search; constraints released; both networks; losses scaled."""
    study = []
    for part, network in ((SHARED, "MLP"), (EXPERTS, "mixture of experts")):
        common: dict[str, Any] = {"part": part, "problem": "census", "network": network, "precision": "tf32"}
        even = TaskCell(method="pareto-mtl", preferences=25, note=EVEN, **common)
        many = TaskCell(method="pareto-mtl", preferences=25, random=True, note="25 random", **common)
        study += [
            replace(many, preferences=5, note="5 random"),
            many,
            replace(many, changes={"release_steps": _RELEASED}, note="25 random, released"),
            even,
            TaskCell(method="random-search", preferences=25, **common),
            TaskCell(method="linear", preferences=25, **common),
            *(TaskCell(method=name, preferences=5, **common) for name in ("mgda", "gradnorm", "uncertainty")),
            TaskCell(method="single-task", preferences=None, **common),
            *scaled_cells(even, KNOWING_NOTHING),
        ]
    return resize(study, size, samples=4096, epochs=1)


def claims(rows: Sequence[Row]) -> list[Claim]:
    """The claims of the supplement, sections 2.1 and 3."""
    results = [
        claim
        for part in (SHARED, EXPERTS)
        for claim in (_more_vectors(rows, part), _few_vectors(rows, part), _dominates(rows, part))
    ]
    balanced = [
        judge_balanced([row for row in rows if row["part"] == part], EVEN, f"supplement 3; {part}")
        for part in (SHARED, EXPERTS)
    ]
    return results + balanced


def _more_vectors(rows: Sequence[Row], part: str) -> Claim:
    measured, holds, partly = [], False, False
    if all(has(rows, part=part, note=name) for name in ("5 random", "25 random")):
        few, many = (column(pick(rows, part=part, note=f"{n} random"), "hypervolume") for n in (5, 25))
        gap = difference(many, few)
        measured = [f"{plus_minus(few, 4)} with 5, {plus_minus(many, 4)} with 25"]
        holds, partly = gap.significant and gap.value >= _MUCH * mean(few), gap.sign > 0
    return measured_claim(
        f"supplement 2.1, figure 8a; {part}",
        "25 preference vectors represent the trade-offs of three tasks much better than 5",
        "hypervolume of the test losses",
        measured,
        judge(holds, partly),
    )


def _few_vectors(rows: Sequence[Row], part: str) -> Claim:
    """Compared with as many solutions of MOO-MTL, which differ only in their initial weights."""
    measured, ahead, useful = [], [False], False
    if has(rows, part=part, note="5 random") and has(rows, part=part, method="mgda"):
        mine, starts = pick(rows, part=part, note="5 random"), pick(rows, part=part, method="mgda")
        text, ahead, useful = trade_offs(mine)
        spreads = [column(each, "spread") for each in (mine, starts)]
        gap = difference(*spreads)
        ahead.append(gap.sign > 0)
        measured = [text, f"spread {plus_minus(spreads[0], 4)}, {starred(gap, 4)} to that of as many starts of MOO-MTL"]
    return measured_claim(
        f"supplement 2.1, figure 8a; {part}",
        "5 preference vectors also provide solutions with different trade-offs",
        AHEAD.format("test loss"),
        measured,
        judge(all(ahead) and useful, any(ahead)),
    )


def _dominates(rows: Sequence[Row], part: str) -> Claim:
    measured, ours, theirs = [], 0.0, 0.0
    if has(rows, part=part, note="25 random") and has(rows, part=part, method="random-search"):
        pareto, random = pick(rows, part=part, note="25 random"), pick(rows, part=part, method="random-search")
        ours, theirs = dominated(random, pareto), dominated(pareto, random)
        volumes = [plus_minus(column(each, "hypervolume"), 4) for each in (random, pareto)]
        measured = [
            f"{ours:.0%} of random search by Pareto MTL, {theirs:.0%} of Pareto MTL by random search",
            f"hypervolume {volumes[0]} of random search, {volumes[1]} of Pareto MTL",
        ]
    return measured_claim(
        f"supplement 2.1, figure 8b; {part}",
        "25 solutions of Pareto MTL dominate nearly all of as many random weights",
        "solutions dominated, by test losses",
        measured,
        judge(ours > MOST, ours > theirs),
    )


def facts(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """Every cell: hypervolume, spread, regions, time; dominance between cells; every way to scale the losses."""
    return cell_facts(rows) + dominance_facts(rows) + scale_facts(rows, EVEN)


def _draw_projections(rows: Sequence[Row]) -> Figure | None:
    """Draw a line for each network: few and many vectors, and as many weights."""
    lines = []
    for part in PARTS:
        layers = [
            first_seed("linear", rows, part=part),
            first_seed("random-search", rows, part=part),
            first_seed("pareto-mtl", rows, part=part, note="25 random"),
            first_seed("pareto-mtl", rows, part=part, note="5 random", colour=INK, marker="D"),
        ]
        alone = pick_by_seed(rows, part=part, method="single-task")
        lines.append(Pairs(part.capitalize(), filled(layers), alone))
    return draw_projections(lines, f"{_TITLE}: test losses in pairs of tasks, first seed")


STUDY = Study(
    cells=cells,
    claims=claims,
    facts=facts,
    figures={
        "census-projections": _draw_projections,
        "census-parallel": partial(draw_parallels, title=_TITLE),
        "census-hypervolume": partial(draw_hypervolumes, title=_TITLE),
    },
)
