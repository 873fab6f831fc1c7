"""Three digits on a canvas: 5 to 50 preference vectors, and weights."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from paretomtl.compare import Row
from paretomtl.methods.registry import label_of
from paretomtl.paper.real_data.cell_facts import cell_facts
from paretomtl.paper.real_data.cells import EVEN, SHARED, TaskCell, resize
from paretomtl.paper.real_data.dominance import dominance_facts
from paretomtl.paper.real_data.three_task_figures import (
    Pairs,
    draw_hypervolumes,
    draw_parallels,
    draw_projections,
    filled,
    first_seed,
)
from paretomtl.paper.rows import pick_by_seed
from paretomtl.paper.study import Size, Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COUNTS = (5, 15, 25, 50)
"""The numbers of even vectors."""
_TITLE = "Three digits"
_RELEASED = 1560  # steps: a third of a run


def cells(size: Size) -> list[TaskCell]:
    """Three images on a canvas: 5 to 50 vectors, and weights; a third of the recipe's epochs."""
    common: dict[str, Any] = {"part": SHARED, "problem": "multi-mnist-3", "network": "LeNet", "seeds": 3, "epochs": 10}
    study = [TaskCell(method="pareto-mtl", preferences=count, note=f"{count} even", **common) for count in COUNTS]
    released = {"release_steps": _RELEASED}
    study += [
        TaskCell(method="pareto-mtl", preferences=25, changes=released, note=f"{EVEN}, released", **common),
        TaskCell(method="linear", preferences=25, **common),
        TaskCell(method="mgda", preferences=5, **common),
        TaskCell(method="single-task", preferences=None, **common),
    ]
    return resize(study, size, samples=1024, epochs=1)


def facts(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """Every cell, and dominance between cells."""
    return cell_facts(rows) + dominance_facts(rows)


def _draw_projections(rows: Sequence[Row]) -> Figure | None:
    """Draw a line for each number of vectors, and a grid with as many weights, all with the same limits."""
    alone, grid = pick_by_seed(rows, part=SHARED, method="single-task"), first_seed("linear", rows)
    lines = []
    for count in COUNTS:
        mine = first_seed("pareto-mtl", rows, note=f"{count} even", label=label_of("pareto-mtl"))
        layers = filled([grid, mine] if f"{count} even" == EVEN else [mine])
        if layers:
            lines.append(Pairs(f"{count} vectors", layers, alone))
    title = f"{_TITLE}: test losses in pairs of tasks, first seed"
    text = "Each line of panels has another number of preference vectors, and the same scale."
    return draw_projections(lines or [Pairs("", [], alone)], title, text, alike=True)


STUDY = Study(
    cells=cells,
    facts=facts,
    figures={
        "three-digits-projections": _draw_projections,
        "three-digits-parallel": partial(draw_parallels, title=_TITLE),
        "three-digits-hypervolume": partial(draw_hypervolumes, title=_TITLE),
    },
)
