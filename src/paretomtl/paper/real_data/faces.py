"""Gender, race and age of faces (supplement, section 2.2, table 1): four vectors and all methods of the table."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from paretomtl.compare import Row
from paretomtl.core import preferences as vector_sets
from paretomtl.methods.registry import colour_of, label_of, marker_of
from paretomtl.paper.cell_settings import round_vectors
from paretomtl.paper.claims import Claim
from paretomtl.paper.panels import grid, layer, legend, panel_title
from paretomtl.paper.real_data.cells import SHARED, TaskCell, baseline_cells, resize, scaled_cells
from paretomtl.paper.real_data.mean_errors import ERRORS, Summary, as_errors, scaling, summarize
from paretomtl.paper.real_data.shared_claims import judge_balanced
from paretomtl.paper.real_data.table_claims import table_claims, table_facts
from paretomtl.paper.real_data.tables import TABLE_METRICS
from paretomtl.paper.real_data.three_task_figures import TASK_LINES, THICK, Pairs, draw_projections
from paretomtl.paper.study import Size, Study
from paretomtl.report.figures.layers import Layer
from paretomtl.report.figures.parallel import Polyline, draw_parallel
from paretomtl.report.figures.style import add_caption

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAPER_TABLE: dict[str, tuple[float, ...]] = {
    "single task": (0.8792, 0.7813, 13.551),
    "fixed": (0.8740, 0.7838, 13.900),
    "GradNorm": (0.8809, 0.7660, 13.792),
    "Uncertainty": (0.8797, 0.7704, 13.969),
    "MOO-MTL": (0.8780, 0.7784, 13.808),
    "Pareto MTL (1, 1, 1)": (0.8780, 0.7867, 13.918),
    "Pareto MTL (0, 1, 1)": (0.8856, 0.7541, 14.414),
    "Pareto MTL (1, 0, 1)": (0.8722, 0.7928, 14.322),
    "Pareto MTL (1, 1, 0)": (0.8669, 0.7623, 13.518),
}
"""The paper's table, on its own data: accuracies of gender and race, and the error of age."""
KNOWING_NOTHING = (0.69, 1.45, 15.0)
"""The approximate training losses of a constant prediction: the worst point of the scale "points"."""
_KINDS = ("classification", "classification", "regression")
_BALANCED: dict[str, Any] = {"linestyle": (0, (6, 1.5, 1.2, 1.5)), "marker": "D"}
_SCALED_MARKERS = ("D", "s", "^", "v", "h")
_MEANS = "Gender and race: share of wrong labels. Age: years."


def cells(size: Size) -> list[TaskCell]:
    """The paper's four vectors and all methods of its table; losses scaled or not."""
    common: dict[str, Any] = {
        "part": SHARED,
        "problem": "utkface",
        "network": "ResNet-18",
        "precision": "bfloat16",
        "seeds": 3,
    }
    four = round_vectors(vector_sets.extreme(3, balanced=True).tolist())
    pareto = TaskCell(method="pareto-mtl", preferences=four, **common)
    study = [pareto, *baseline_cells(common, ((1.0, 1.0, 1.0),), _KINDS), *scaled_cells(pareto, KNOWING_NOTHING)]
    return resize(study, size, samples=96, epochs=1)


def claims(rows: Sequence[Row]) -> list[Claim]:
    """The claims of the supplement, sections 2.2 and 3."""
    judged = table_claims(rows, "supplement 2.2, table 1", "widely distributed solutions with diverse trade-offs")
    return [*judged, judge_balanced(rows, "", "supplement 3")]


def facts(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """The paper's table as measured here; every cell; every way to scale the losses."""
    return table_facts(rows, PAPER_TABLE)


def _draw_parallel(rows: Sequence[Row]) -> Figure | None:
    """Draw a panel for each way to scale the losses of Pareto MTL, with the same other methods."""
    panels, baselines, alone = summarize(rows)
    if not panels:
        return None
    ours = [course for _, mine in panels for course in (mine.means if mine else ())]
    theirs = [course for each in (*baselines, *alone) for course in each.means]
    first = next(each.rows[0] for each in (*(mine for _, mine in panels), *baselines, *alone) if each)
    metrics = TABLE_METRICS["utkface"]
    limits = tuple(
        _ends([course[i] for course in (*ours, *theirs)], first["better"][name]) for i, name in enumerate(metrics)
    )
    thin = [_thin(each, course) for each in (*baselines, *alone) for course in each.means]
    columns = min(3, len(panels))
    figure, axes = grid(-(-len(panels) // columns), columns, len(panels), height=2.9)
    for axis, (note, mine) in zip(axes, panels, strict=True):
        thick = [_favouring(mine.rows[0], k, course) for k, course in enumerate(mine.means)] if mine else []
        draw_parallel(axis, metrics, limits, [*thin, *thick])
        panel_title(axis, scaling(note) if mine else "Other methods", " ")  # with room for the numbers at upper ends
    legend(figure, columns=3)
    text = "Means over seeds on test. Up is better on each axis. Thick: Pareto MTL. Thin: other methods."
    add_caption(figure, "Faces: three tasks at once, with unscaled and scaled losses", text)
    return figure


def _draw_projections(rows: Sequence[Row]) -> Figure | None:
    """Draw unscaled losses with the other methods, and with scaled losses."""
    plain, scaled, others = _layers(rows)
    lines = [Pairs("Losses as they are, and other methods", [*others, *plain])]
    lines += [Pairs("Losses as they are, and scaled", [*scaled, *plain])] if scaled else []
    return draw_projections(lines, "Faces: mean test errors in pairs of tasks", _MEANS, quantity=ERRORS)


def _layers(rows: Sequence[Row]) -> tuple[list[Layer], list[Layer], list[Layer]]:
    """Pareto MTL with unscaled losses, and scaled in each way; the other methods, and separate networks."""
    panels, baselines, alone = summarize(rows)
    ours = {note: [as_errors(mine)] for note, mine in panels if mine}
    markers = dict(zip((note for note in ours if note), itertools.cycle(_SCALED_MARKERS), strict=False))
    name = label_of("pareto-mtl")
    plain = [layer("pareto-mtl", mine) for note, mine in ours.items() if not note]
    scaled = [layer("pareto-mtl", ours[note], marker=mark, label=f"{name}, {note}") for note, mark in markers.items()]
    others = [layer(each.method, [as_errors(each)], label=_label(each.method)) for each in (*baselines, *alone)]
    return plain, scaled, others


def _label(method: str) -> str:
    return "Fixed weights" if method == "linear" else label_of(method)


def _thin(each: Summary, course: Sequence[float | None]) -> Polyline:
    marker: dict[str, Any] = {"marker": marker_of(each.method), "markersize": 4.5, "markeredgewidth": 0}
    line: dict[str, Any] = {"color": "0.75", "linewidth": 0.7, "zorder": 2, "label": _label(each.method)}
    return Polyline(course, {**line, **marker, "markerfacecolor": colour_of(each.method)})


def _favouring(row: Row, model: int, course: Sequence[float | None]) -> Polyline:
    """A line named by the task that the vector favours: the one with the smallest component."""
    vector = row["vectors"][model]
    least = [task for task, value in enumerate(vector) if value < min(vector) + 1e-3]
    style, word = _BALANCED, "balanced"
    if len(least) == 1:
        style, word = TASK_LINES[least[0]], f"favours {row['tasks'][least[0]]}"
    label = f"{label_of('pareto-mtl')}, {word}"
    return Polyline(course, {"color": colour_of("pareto-mtl"), "label": label, **THICK, **style})


def _ends(values: Sequence[float | None], better: str) -> tuple[float, float]:
    """The limits of an axis, from the worst to the best value, with some room."""
    results = [value for value in values if value is not None]
    low, high = min(results, default=0.0), max(results, default=1.0)
    room = 0.05 * (high - low) or 0.05
    return (high + room, low - room) if better == "lower" else (low - room, high + room)


STUDY = Study(
    cells=cells,
    claims=claims,
    facts=facts,
    figures={
        "faces-projections": _draw_projections,
        "faces-parallel": _draw_parallel,
    },
)
