"""Position and orientation of a camera (section 6.2, figure 4): the paper's table, on a stand-in for its data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from paretomtl.compare import Row
from paretomtl.core import preferences as vector_sets
from paretomtl.paper.cell_settings import round_vectors
from paretomtl.paper.claims import Claim, better_verdict, compare_means, count_signs, measured_claim
from paretomtl.paper.panels import grid, layer, legend, panel_title
from paretomtl.paper.real_data.cells import SHARED, TaskCell, baseline_cells, resize, scaled_cells
from paretomtl.paper.real_data.mean_errors import ERRORS, in_plane, scaling, summarize
from paretomtl.paper.real_data.shared_claims import judge_balanced
from paretomtl.paper.real_data.table_claims import RIVALS, is_complete, table_claims, table_facts
from paretomtl.paper.rows import column, has, pick
from paretomtl.paper.study import Size, Study
from paretomtl.report.figures.layers import panel_limits
from paretomtl.report.figures.scatter2d import FRONT, draw_scatter2d, label_outer, point_to_better
from paretomtl.report.figures.style import add_caption

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAPER_TABLE: dict[str, tuple[float, ...]] = {
    "single task": (8.392, 2.461),
    "grid search (0.25, 0.75)": (9.927, 2.177),
    "grid search (0.5, 0.5)": (7.840, 2.306),
    "grid search (0.75, 0.25)": (7.585, 2.621),
    "GradNorm": (7.751, 2.287),
    "Uncertainty": (7.624, 2.263),
    "MOO-MTL": (7.909, 2.090),
    "Pareto MTL (0, 1)": (7.285, 2.335),
    "Pareto MTL (1, 1)": (7.724, 2.156),
    "Pareto MTL (1, 0)": (8.411, 1.771),
}
"""The paper's table, on its own data: metres and degrees."""
KNOWING_NOTHING = (0.55, 0.19)
"""The approximate training losses of a constant prediction: the worst point of the scale "points"."""
_KINDS = ("regression", "regression")
_WHERE = "section 6.2, figure 4"
_NAMES = ("translation error (m)", "rotation error (degrees)")


def cells(size: Size) -> list[TaskCell]:
    """The paper's three vectors, its grid, and all methods of its table; losses scaled or not."""
    common: dict[str, Any] = {"part": SHARED, "problem": "localization", "network": "PoseNet", "precision": "bfloat16"}
    three = round_vectors(vector_sets.even(3, 2).tolist())
    pareto = TaskCell(method="pareto-mtl", preferences=three, **common)
    weights = ((0.25, 0.75), (0.5, 0.5), (0.75, 0.25))
    study = [pareto, *baseline_cells(common, weights, _KINDS), *scaled_cells(pareto, KNOWING_NOTHING)]
    return resize(study, size, samples=96, epochs=1)


def claims(rows: Sequence[Row]) -> list[Claim]:
    """The claims of section 6.2 and of the supplement, section 3."""
    judged = table_claims(rows, _WHERE, "solutions with different trade-offs")
    if has(rows, method="pareto-mtl"):
        judged.append(_outperforms(rows))
    return [*judged, judge_balanced(rows, "", "supplement 3")]


def facts(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """The paper's table as measured here; every cell; every way to scale the losses."""
    return table_facts(rows, PAPER_TABLE)


def _outperforms(rows: Sequence[Row]) -> Claim:
    measured, signs = [], [0]
    rivals = [method for method in RIVALS if has(rows, method=method)]
    if rivals and has(rows, method="pareto-mtl", note=""):
        theirs = {method: column(pick(rows, method=method), "hypervolume") for method in rivals}
        text, signs = compare_means(column(pick(rows, method="pareto-mtl"), "hypervolume"), theirs, 4)
        measured = [text, count_signs(signs)]
    return measured_claim(
        _WHERE,
        "Pareto MTL outperforms other MTL approaches",
        "mean hypervolume of the test losses, and difference (* more than seeds explain)",
        measured,
        better_verdict(signs),
        whole=is_complete(rows),
    )


def _draw_errors(rows: Sequence[Row]) -> Figure | None:
    """Draw a panel for each way to scale the losses of Pareto MTL, with the same other methods."""
    panels, baselines, alone = summarize(rows)
    if not panels:
        return None
    others = [layer(each.method, in_plane(each), joined=len(each.means) > 1, numbered=False) for each in baselines]
    separate = in_plane(alone[0])[:1] if alone else []
    ours = [layer("pareto-mtl", in_plane(mine) if mine else [], joined=True, others=True) for _, mine in panels]
    means = [replace(each, others=False) for each in (*others, *ours)]
    limits = panel_limits(ERRORS, means, separate, origin=False)
    columns = min(3, len(panels))
    figure, axes = grid(-(-len(panels) // columns), columns, len(panels), height=2.95)
    for axis, (note, mine), pareto in zip(axes, panels, ours, strict=True):
        beyond = draw_scatter2d(axis, ERRORS, [*others, pareto], separate, limits)
        axis.set(xlabel=_NAMES[0], ylabel=_NAMES[1])
        panel_title(axis, scaling(note) if mine else "Other methods", beyond or " ")
    label_outer(axes)
    point_to_better(axes[0], ERRORS)
    legend(figure)
    count = max((len(mine.means) for _, mine in panels if mine), default=0)
    numbers = f"Model 1 is for rotation, model {count} for translation." if count else ""
    text = f"Means over seeds on test. {FRONT} {numbers} Faint: each seed of Pareto MTL."
    add_caption(figure, "Localization: Pareto MTL with unscaled and scaled losses, and other methods", text)
    return figure


STUDY = Study(cells=cells, claims=claims, facts=facts, figures={"localization": _draw_errors})
