"""Pareto MTL with and without its initial phase, on clothing (supplement, section 1, figure 7)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from paretomtl._support.significance import difference, mean
from paretomtl.compare import Row
from paretomtl.methods import ParetoMTL
from paretomtl.methods.registry import label_of
from paretomtl.paper.claims import Claim, judge
from paretomtl.paper.images.cells import PAPER, SET_TITLES, SETS, ImageCell, resize
from paretomtl.paper.images.rows import count_solutions
from paretomtl.paper.images.two_task_figures import draw_pair
from paretomtl.paper.number_text import plus_minus
from paretomtl.paper.panels import layer
from paretomtl.paper.rows import column, pick, pick_by_seed
from paretomtl.paper.study import Size, Study
from paretomtl.report.figures.layers import TEST_ACCURACY, TEST_LOSS
from paretomtl.report.figures.style import INK

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def cells(size: Size) -> list[ImageCell]:
    """Pareto MTL with and without the initial phase (supplement, section 1), and MOO-MTL."""
    study = [
        ImageCell(PAPER, SETS[1], "pareto-mtl"),
        ImageCell(PAPER, SETS[1], ParetoMTL(rescale=True, initial_steps=0, return_share=None), note="no initial phase"),
        ImageCell(PAPER, SETS[1], "mgda"),
    ]
    return resize(study, size)


def claims(rows: Sequence[Row]) -> list[Claim]:
    """The claims of the supplement, section 1."""
    with_it = pick(rows, method="pareto-mtl")
    without = pick(rows, method="pareto-mtl", note="no initial phase")
    mgda = pick(rows, method="mgda")
    spreads = [column(part, "spread") for part in (with_it, without, mgda)]
    hits = [f"{sum(row['in_region'] for row in part)} of {count_solutions(part)}" for part in (with_it, without)]
    volumes = [plus_minus(column(part, "hypervolume")) for part in (with_it, without, mgda)]
    gap = difference(spreads[0], spreads[1])
    other = difference(spreads[1], spreads[2])
    return [
        Claim(
            "supplement 1, figure 7",
            "without the initial phase the diversity is much worse",
            f"spread {plus_minus(spreads[0], 2)} with and {plus_minus(spreads[1], 2)} without; in their own region on "
            f"training {hits[0]} and {hits[1]}; hypervolume {volumes[0]} and {volumes[1]}",
            judge(gap.significant and gap.value > 0.2 * mean(spreads[0]), gap.sign > 0),
        ),
        Claim(
            "supplement 1, figure 7",
            "without the initial phase it still has different trade-offs",
            f"spread {plus_minus(spreads[1], 2)}, MOO-MTL {plus_minus(spreads[2], 2)}; hypervolume {volumes[1]} and "
            f"{volumes[2]}",
            judge(other.sign > 0, other.value > 0),
        ),
    ]


def _draw_init(rows: Sequence[Row]) -> Figure | None:
    without = pick_by_seed(rows, method="pareto-mtl", note="no initial phase")
    layers = [
        layer("mgda", pick_by_seed(rows, method="mgda"), others=True),
        layer(
            "pareto-mtl",
            without,
            label=f"{label_of('pareto-mtl')} without initial phase",
            colour=INK,
            marker="D",
            joined=True,
            others=True,
        ),
        layer("pareto-mtl", pick_by_seed(rows, method="pareto-mtl"), joined=True, others=True),
    ]
    title = f"{SET_TITLES[SETS[1]]}: Pareto MTL with and without its initial phase"
    return draw_pair(layers, (TEST_ACCURACY, TEST_LOSS), title)


STUDY = Study(cells=cells, claims=claims, figures={"ablation-init": _draw_init}, shares=("images-lenet",))
