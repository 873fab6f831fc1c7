"""Three digits on a canvas: 5 to 50 preference vectors, and weights."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from paretomtl.compare import Row
from paretomtl.paper.panels import legend_label
from paretomtl.paper.real_data.cell_facts import cell_facts
from paretomtl.paper.real_data.cells import EVEN, SHARED, TaskCell, resize
from paretomtl.paper.real_data.dominance import dominance_facts
from paretomtl.paper.real_data.three_task_figures import (
    draw_hypervolumes,
    draw_parallels,
    draw_projections,
    draw_spaces,
    first_seed,
)
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


def _draw_scatter(rows: Sequence[Row]) -> Figure | None:
    panels = []
    for count in COUNTS:
        each = first_seed("pareto-mtl", rows, note=f"{count} even", label=legend_label("pareto-mtl"))
        if each.rows:
            panels.append((f"{_TITLE}, {count} even vectors", [each]))
    return draw_spaces([panels[:2], panels[2:]], alike=True)


STUDY = Study(
    cells=cells,
    facts=facts,
    figures={
        "three-digits-scatter": _draw_scatter,
        "three-digits-projections": partial(draw_projections, title=_TITLE),
        "three-digits-parallel": partial(draw_parallels, title=_TITLE),
        "three-digits-hypervolume": partial(draw_hypervolumes, title=_TITLE),
    },
)
