"""Sets of preference vectors on MultiMNIST (supplement, section 5): random, biased, close together, few and many."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from paretomtl._support.significance import difference, mean
from paretomtl.compare import Row
from paretomtl.core import preferences as vector_sets
from paretomtl.methods import ParetoMTL
from paretomtl.methods.registry import label_of
from paretomtl.paper.cell_settings import round_vectors
from paretomtl.paper.claims import Claim, judge
from paretomtl.paper.images.cells import PAPER, SET_TITLES, SETS, STEPS, ImageCell, resize
from paretomtl.paper.images.rows import count_solutions, sum_or_nan, volume_and_spread
from paretomtl.paper.images.two_task_figures import FAINT
from paretomtl.paper.number_text import plus_minus
from paretomtl.paper.panels import grid, layer, legend, panel_title
from paretomtl.paper.rows import column, direction_rank_correlation, pick, pick_by_seed
from paretomtl.paper.study import Size, Study
from paretomtl.report.figures.layers import TEST_LOSS, Layer, panel_limits
from paretomtl.report.figures.scatter2d import FRONT, draw_scatter2d, label_outer, point_to_better
from paretomtl.report.figures.style import INK, add_caption

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_UNIT_ROWS = ", unit rows"


def cells(size: Size) -> list[ImageCell]:
    """Sets of preference vectors (supplement, section 5): random, biased, close together, few and many."""
    sets: dict[str, tuple[tuple[float, ...], ...]] = {
        "8 even": round_vectors(vector_sets.even(8, 2).tolist()),
        "25 even": round_vectors(vector_sets.even(25, 2).tolist()),
        "5 biased": round_vectors(vector_sets.biased(5, [1.0, 2.0]).tolist()),
        "5 close": fan(5, 45.0, 2.0),
        "5 narrow": fan(5, 45.0, 10.0),
        **{f"5 random, set {i}": round_vectors(vector_sets.random(5, 2, seed=i).tolist()) for i in range(3)},
    }
    study = [ImageCell(PAPER, SETS[0], "pareto-mtl", seeds=2)]
    study += [ImageCell(PAPER, SETS[0], "pareto-mtl", rows, seeds=2, note=name) for name, rows in sets.items()]
    unit = ParetoMTL(rescale=True, initial_steps=2 * STEPS, unit_rows=True, return_share=None)
    study.append(ImageCell(PAPER, SETS[0], unit, sets["25 even"], note=f"25 even{_UNIT_ROWS}"))
    study = [replace(cell, seeds=1 if "25" in cell.note else 2) for cell in study]
    return resize(study, size)


def fan(count: int, middle: float, step: float) -> tuple[tuple[float, ...], ...]:
    """Vectors of the plane, ``step`` degrees apart."""
    angles = [math.radians(middle + step * (i - (count - 1) / 2)) for i in range(count)]
    return round_vectors([[math.cos(angle), math.sin(angle)] for angle in angles])


def claims(rows: Sequence[Row]) -> list[Claim]:
    """The claims of the supplement, section 5."""
    even = pick(rows)
    sets = sorted({row["note"] for row in rows if row["note"].startswith("5 random")})
    random = {name: pick(rows, note=name) for name in sets}
    own = column(even, "spread")
    ratio = {name: mean(column(part, "spread")) / max(mean(own), 1e-12) for name, part in random.items()}
    better = [mean(column(part, "hypervolume")) > mean(column(even, "hypervolume")) for part in random.values()]
    close = {name: pick(rows, note=name) for name in ("5 close", "5 narrow")}
    middle = {name: [sum_or_nan(row["losses"][2]) for row in part] for name, part in {"5 even": even, **close}.items()}
    gap = difference(middle["5 close"], middle["5 even"])
    return [
        Claim(
            "supplement 5",
            "random sets of vectors consistently give well-distributed solutions, better or worse than the even set",
            f"hypervolume {plus_minus(column(even, 'hypervolume'))} for the even set; "
            + ", ".join(f"{plus_minus(column(part, 'hypervolume'))}" for part in random.values())
            + " for random ones, whose spread is "
            + ", ".join(f"{value:.2f}" for value in ratio.values())
            + " times that of the even set",
            judge(min(ratio.values()) > 0.8 and any(better) and not all(better), min(ratio.values()) > 0.5),
        ),
        Claim(
            "supplement 5",
            "vectors that are too close together, and so narrow regions, can hurt",
            "sum of the two test losses at 45 degrees: "
            + ", ".join(f"{plus_minus(values)} ({name})" for name, values in middle.items()),
            judge(gap.sign > 0, gap.value > 0),
        ),
    ]


def facts(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """Hypervolume, spread and regions of every set of vectors."""
    results = []
    for name in dict.fromkeys(row["note"] for row in rows):
        part = pick(rows, note=name)
        results.append(
            (
                name or "5 even",
                f"{volume_and_spread(part)}, in their own region {sum(row['in_region'] for row in part)} of "
                f"{count_solutions(part)} on training and {sum(row['in_region_test'] for row in part)} on test, rank "
                f"correlation {mean(column(part, direction_rank_correlation)):.2f}",
            )
        )
    return results


def _draw_sets(rows: Sequence[Row]) -> Figure | None:
    """Draw a panel for each set of vectors, all with the same limits."""
    panels: dict[str, list[Layer]] = {}
    for name in dict.fromkeys(row["note"] for row in rows):
        mine = [_sort_by_angle(row) for row in pick_by_seed(rows, note=name)]
        if mine:
            vectors = name.removesuffix(_UNIT_ROWS) or f"{mine[0]['preferences']} even"
            panels.setdefault(vectors, []).append(_set_layer(name, mine))
    if not panels:
        return None
    columns = min(3, len(panels))
    figure, axes = grid(-(-len(panels) // columns), columns, len(panels), height=2.95)
    limits = panel_limits(TEST_LOSS, [each for layers in panels.values() for each in layers], outliers=False)
    for axis, (name, layers) in zip(axes, panels.items(), strict=True):
        panel_title(axis, name, draw_scatter2d(axis, TEST_LOSS, layers, limits=limits) or " ")
    label_outer(axes)
    point_to_better(axes[0], TEST_LOSS)
    legend(figure)
    title = f"Pareto MTL on {SET_TITLES[rows[0]['problem']]} with {len(panels)} sets of preference vectors"
    add_caption(figure, title, f"A model and its vector have the same number. {FRONT} {FAINT}")
    return figure


def _set_layer(name: str, rows: Sequence[Row]) -> Layer:
    style: dict[str, Any] = {"joined": True, "others": True}
    if name.endswith(_UNIT_ROWS):
        style |= {"label": f"{label_of('pareto-mtl')}{_UNIT_ROWS}", "colour": INK, "marker": "D"}
    return layer("pareto-mtl", rows, **style)


def _sort_by_angle(row: Row) -> Row:
    """The row with its solutions in the order of the angles of their vectors."""
    turns = sorted(range(len(row["vectors"])), key=lambda k: math.atan2(row["vectors"][k][1], row["vectors"][k][0]))
    return {**row, **{field: [row[field][k] for k in turns] for field in ("vectors", "losses")}}


STUDY = Study(cells=cells, claims=claims, facts=facts, figures={"preferences": _draw_sets}, shares=("images-lenet",))
