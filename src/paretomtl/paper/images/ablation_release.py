"""The constraints dropped at the end, on clothing (supplement, section 1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from paretomtl._support.imports.optional_packages import require
from paretomtl._support.significance import difference, mean
from paretomtl.compare import Row
from paretomtl.methods import ParetoMTL
from paretomtl.paper.claims import Claim, judge, measured_claim
from paretomtl.paper.images.cells import PAPER, SET_TITLES, SETS, STEPS, ImageCell, resize
from paretomtl.paper.images.rows import count_solutions, sum_or_nan, volume_and_spread
from paretomtl.paper.images.two_task_figures import FAINT
from paretomtl.paper.number_text import plus_minus, starred
from paretomtl.paper.panels import grid, layer, legend, panel_title
from paretomtl.paper.rows import column, pick, pick_by_seed
from paretomtl.paper.study import Size, Study
from paretomtl.report.figures.layers import TEST_LOSS, TRAIN_LOSS, Layer, Limits, Quantity
from paretomtl.report.figures.scatter2d import draw_scatter2d, label_outer, point_to_better
from paretomtl.report.figures.style import INK, add_caption

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def cells(size: Size) -> list[ImageCell]:
    """The constraints dropped for the last third of the epochs (supplement, section 1), or kept."""
    released = ParetoMTL(rescale=True, initial_steps=2 * STEPS, release_steps=10 * STEPS, return_share=None)
    study = [ImageCell(PAPER, SETS[1], "pareto-mtl"), ImageCell(PAPER, SETS[1], released, note="released")]
    return resize(study, size)


def claims(rows: Sequence[Row]) -> list[Claim]:
    """The claim of the supplement, section 1.

    The snapshot has had fewer epochs, so the result is also compared with constraints kept for as many epochs.
    """
    kept, snapshot, released = _stages(rows).values()
    measured, better = [], []
    for what, sign, values in (
        ("hypervolume", 1, [column(part, "hypervolume") for part in (released, kept, snapshot)]),
        ("sum of the training losses", -1, [column(part, _sum_of_losses) for part in (released, kept, snapshot)]),
    ):
        after, *before = values
        gaps = [difference(after, other) for other in before]
        better += [sign * gap.sign > 0 for gap in gaps]
        measured.append(f"{what} {plus_minus(after)}, {starred(gaps[0])} and {starred(gaps[1])}")
    spreads = [column(part, "spread") for part in (released, kept, snapshot)]
    lost = [starred(difference(spreads[0], other), 2) for other in spreads[1:]]
    return [
        measured_claim(
            "supplement 1",
            "relaxed after a snapshot, the solutions have potentially better convergence",
            "after the constraints are dropped, and difference to keeping them for as many epochs and to the snapshot "
            "(* more than seeds explain)",
            [*measured, f"spread {plus_minus(spreads[0], 2)}, {lost[0]} and {lost[1]}"],
            judge(all(better), any(better)),
        )
    ]


def facts(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """Before and after the constraints are dropped, and with the constraints kept."""
    return [
        (
            name,
            f"{volume_and_spread(part)}, in their own region {sum(row['in_region'] for row in part)} of "
            f"{count_solutions(part)} on training",
        )
        for name, part in _stages(rows).items()
    ]


def _sum_of_losses(row: Row) -> float:
    """The sum of both training losses, mean over the solutions."""
    return mean([sum_or_nan(point) for point in row["train_losses"]])


def _stages(rows: Sequence[Row]) -> dict[str, list[Row]]:
    return {
        "constraints kept for all 30 epochs": pick(rows, method="pareto-mtl"),
        "snapshot after 20 epochs": pick(rows, note="released", stage="snapshot"),
        "10 released epochs later": pick(rows, note="released"),
    }


def _draw_release(rows: Sequence[Row]) -> Figure | None:
    kept, after = pick_by_seed(rows, method="pareto-mtl"), pick_by_seed(rows, note="released")
    before = pick_by_seed(rows, note="released", stage="snapshot")
    layers = [
        layer("pareto-mtl", kept, label="Constraints kept to the end", others=True),
        layer("", before, label="Before the constraints are dropped", colour=INK, marker="o", hollow=True, others=True),
        layer("", after, label="At the end, without constraints", colour=INK, marker="D", others=True),
    ]
    if not any(each.rows for each in layers):
        return None
    quantities = (TRAIN_LOSS, TEST_LOSS)
    figure, axes = grid(1, len(quantities), height=4.3)
    for axis, quantity in zip(axes, quantities, strict=True):
        draw_scatter2d(axis, quantity, layers, limits=_limits(quantity, layers), rays=False)
        _use_log_scale(axis)
        panel_title(axis, quantity.words.capitalize())
        for i, (start, end) in enumerate(_pair_by_seed(before, after)):
            _draw_arrows(axis, quantity, start, end, faint=i > 0)
    point_to_better(axes[0], quantities[0])
    label_outer(axes)
    legend(figure)
    title = f"{SET_TITLES[SETS[1]]}: what models do when Pareto MTL drops its constraints"
    add_caption(figure, title, f"An arrow leads from a model before to the same model at the end. {FAINT} Log scales.")
    return figure


def _limits(quantity: Quantity, layers: Sequence[Layer]) -> Limits:
    """Limits of logarithmic axes with room for all models."""
    points = [point for each in layers for point in each.shown(quantity)] or [(1.0, 1.0)]
    return tuple((0.9 * min(values), 1.1 * max(values)) for values in zip(*points, strict=True))


def _use_log_scale(axis: Axes) -> None:
    """Use logarithmic axes: the worst losses do not squeeze the others."""
    ticker = require("matplotlib.ticker", "figures")
    axis.set(xscale="log", yscale="log")
    for way in (axis.xaxis, axis.yaxis):
        way.set_major_locator(ticker.LogLocator(subs=(1, 1.5, 2, 3, 4, 5, 7)))
        way.set_major_formatter(ticker.StrMethodFormatter("{x:g}"))
        way.set_minor_locator(ticker.NullLocator())


def _pair_by_seed(before: Sequence[Row], after: Sequence[Row]) -> list[tuple[Row, Row]]:
    ends = {row["seed"]: row for row in after}
    return [(row, ends[row["seed"]]) for row in before if row["seed"] in ends]


def _draw_arrows(axis: Axes, quantity: Quantity, start: Row, end: Row, *, faint: bool) -> None:
    style: dict[str, Any] = {"arrowstyle": "->", "color": INK, "lw": 0.9, "shrinkA": 3, "shrinkB": 3}
    if faint:
        style |= {"arrowstyle": "-", "lw": 0.6, "alpha": 0.3, "shrinkA": 1, "shrinkB": 1}
    for one, two in zip(quantity.values(start), quantity.values(end), strict=True):
        if None not in (*one, *two):
            arrow = axis.annotate("", tuple(two), tuple(one), arrowprops=style, annotation_clip=True, zorder=2.5)
            assert arrow.arrow_patch is not None
            arrow.arrow_patch.set_clip_path(axis.patch)  # it may start far outside


STUDY = Study(
    cells=cells, claims=claims, facts=facts, figures={"ablation-release": _draw_release}, shares=("images-lenet",)
)
