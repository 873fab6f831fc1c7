"""The figures of the other image studies: ablations, preference sets, weights, acceptance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paretomtl.compare import Row
from paretomtl.methods.registry import colour_of
from paretomtl.paper.images.lenet import TITLES
from paretomtl.paper.images.more_claims import PUBLISHED
from paretomtl.paper.images.studies import SETS
from paretomtl.paper.labels import label_of
from paretomtl.paper.panels import caption, chosen, draw_figures, grid, layer, legend, name_lines
from paretomtl.paper.statistics import mean
from paretomtl.report.figures.layers import TEST_ACCURACY, TEST_LOSS, TRAIN_LOSS, Layer, Quantity, panel_limits
from paretomtl.report.figures.scatter2d import NUMBERS, draw_scatter2d
from paretomtl.report.figures.style import SMALL

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SEEDS = "Large: the first seed. Small and faint: the others."
_FEW = 4  # epochs that are too few for a line alone
_TASK_LINES: tuple[dict[str, Any], ...] = (
    {"color": "#0b5fa5", "linestyle": "-"},
    {"color": "#c98a00", "linestyle": "--"},
)


def draw_ablation_init(rows: Sequence[Row], folder: Path) -> list[Path]:
    """Pareto MTL with and without the initial phase, beside MOO-MTL (the paper's figure 7)."""
    return draw_figures(rows, folder, {"ablation-init": _init})


def draw_ablation_release(rows: Sequence[Row], folder: Path) -> list[Path]:
    """Where the solutions go when the constraints are dropped."""
    return draw_figures(rows, folder, {"ablation-release": _release})


def draw_preferences(rows: Sequence[Row], folder: Path) -> list[Path]:
    """The solutions for each set of preference vectors (the paper's figure 12 and section 5 of its supplement)."""
    return draw_figures(rows, folder, {"preferences": _preferences})


def draw_weights(rows: Sequence[Row], folder: Path) -> list[Path]:
    """The weights of the tasks over training (the paper's figure 10)."""
    return draw_figures(rows, folder, {"weights": _weights})


def draw_acceptance(rows: Sequence[Row], folder: Path) -> list[Path]:
    """Accuracies of separate networks beside the published ones on the lost files."""
    return draw_figures(rows, folder, {"acceptance": _acceptance})


def _init(rows: Sequence[Row]) -> Figure | None:
    layers = [
        layer("pareto-mtl", chosen(rows, method="pareto-mtl"), joined=True, others=True),
        layer(
            "pareto-mtl",
            chosen(rows, method="pareto-mtl", note="no initial phase"),
            label=f"{label_of('pareto-mtl')} without initial phase",
            colour="black",
            joined=True,
            hollow=True,
            others=True,
        ),
        layer("mgda", chosen(rows, method="mgda"), others=True),
    ]
    return _pair(layers, (TEST_ACCURACY, TEST_LOSS))


def _release(rows: Sequence[Row]) -> Figure | None:
    kept, after = chosen(rows, method="pareto-mtl"), chosen(rows, note="released")
    before = chosen(rows, note="released", stage="snapshot")
    layers = [
        layer("", kept, label="Constraints kept to the end", colour="#0b5fa5", marker="s", others=True),
        layer("pareto-mtl", before, label="Before the constraints are dropped", hollow=True, others=True),
        layer("pareto-mtl", after, label="Released, at the end", others=True),
    ]
    figure = _pair(layers, (TRAIN_LOSS, TEST_LOSS), note=_SEEDS, origin=False)
    if figure is not None:
        for axis, space in zip(figure.axes, (TRAIN_LOSS, TEST_LOSS), strict=True):
            for i, (start, end) in enumerate(_by_seed(before, after)):
                _arrows(axis, space, start, end, faint=i > 0)
    return figure


def _pair(
    layers: Sequence[Layer], spaces: Sequence[Quantity], note: str = f"{NUMBERS}\n{_SEEDS}", *, origin: bool = True
) -> Figure | None:
    """The same solutions in two planes."""
    first = next((each.rows[0] for each in layers if each.rows), None)
    if first is None:
        return None
    figure, axes = grid(1, len(spaces), width=3.9, height=4.1, below=1.1)
    for i, (axis, space) in enumerate(zip(axes, spaces, strict=True)):
        outside = draw_scatter2d(axis, space, layers, limits=panel_limits(space, layers, origin=origin))
        caption(axis, i, f"{TITLES[first['problem']]}, {space.words}", outside)
    legend(figure, note, columns=2)
    return figure


def _by_seed(before: Sequence[Row], after: Sequence[Row]) -> list[tuple[Row, Row]]:
    ends = {row["seed"]: row for row in after}
    return [(row, ends[row["seed"]]) for row in before if row["seed"] in ends]


def _arrows(axis: Axes, space: Quantity, start: Row, end: Row, *, faint: bool) -> None:
    style: dict[str, Any] = {"arrowstyle": "->", "color": "0.25", "lw": 0.9, "shrinkA": 3, "shrinkB": 3}
    if faint:
        style |= {"arrowstyle": "-", "lw": 0.5, "alpha": 0.35, "shrinkA": 1, "shrinkB": 1}
    for one, two in zip(space.values(start), space.values(end), strict=True):
        if None not in (*one, *two):
            arrow = axis.annotate("", tuple(two), tuple(one), arrowprops=style, annotation_clip=True, zorder=2.5)
            assert arrow.arrow_patch is not None
            arrow.arrow_patch.set_clip_path(axis.patch)  # one may come from far outside


def _preferences(rows: Sequence[Row]) -> Figure | None:
    """A panel for each set of vectors, all of the same size."""
    sets = [(name, chosen(rows, note=name)) for name in dict.fromkeys(row["note"] for row in rows)]
    options = {"label": "Solutions", "joined": True, "others": True}
    panels = [(name, layer("pareto-mtl", [_turned(row) for row in mine], **options)) for name, mine in sets if mine]
    if not panels:
        return None
    columns = min(4, len(panels))
    figure, axes = grid(-(-len(panels) // columns), columns, len(panels), width=3.0, height=3.2)
    limits = panel_limits(TEST_LOSS, [each for _, each in panels])
    for i, (axis, (name, each)) in enumerate(zip(axes, panels, strict=True)):
        outside = draw_scatter2d(axis, TEST_LOSS, [each], limits=limits)
        caption(axis, i, name or f"{each.rows[0]['preferences']} even", outside)
    legend(figure, f"Each number stands at a solution and at the end of its ray.\n{_SEEDS}")
    return figure


def _turned(row: Row) -> Row:
    """The row with its solutions in the order of the angles of their vectors."""
    turns = sorted(range(len(row["vectors"])), key=lambda k: math.atan2(row["vectors"][k][1], row["vectors"][k][0]))
    return {**row, **{field: [row[field][k] for k in turns] for field in ("vectors", "losses")}}


def _weights(rows: Sequence[Row]) -> Figure | None:
    half = "$(\\sqrt{2}/2, \\sqrt{2}/2)$"
    wanted: tuple[tuple[str, str, tuple[float, float]], ...] = (
        ("pareto-mtl", f"{label_of('pareto-mtl')}, (1, 0)", (1, 0)),
        ("pareto-mtl", f"{label_of('pareto-mtl')}, {half}", (1, 1)),
        ("pareto-mtl", f"{label_of('pareto-mtl')}, (0, 1)", (0, 1)),
        ("mgda", label_of("mgda"), (1, 1)),
        ("gradnorm", label_of("gradnorm"), (1, 1)),
        ("linear", "Fixed weights", (1, 1)),
    )
    panels = [(title, vector, mine) for m, title, vector in wanted if (mine := chosen(rows, method=m))]
    if not panels:
        return None
    columns = min(3, len(panels))
    figure, axes = grid(-(-len(panels) // columns), columns, len(panels), height=2.7, below=0.6)
    for i, (axis, (title, vector, mine)) in enumerate(zip(axes, panels, strict=True)):
        _draw_weights(axis, mine, vector)
        caption(axis, i, title)
    low, high = min(axis.get_ylim()[0] for axis in axes), max(axis.get_ylim()[1] for axis in axes)
    for axis in axes:
        axis.set_ylim(low, high)
    legend(figure, "Line: the first seed. Band: from the least to the greatest of all seeds.")
    return figure


def _draw_weights(axis: Axes, rows: Sequence[Row], vector: tuple[float, float]) -> None:
    """Of the model whose preference vector is nearest to this one; the first of those that are equally near."""
    tasks = rows[0]["tasks"]
    for task, style in zip(range(len(tasks)), _TASK_LINES, strict=True):
        courses = [[_number(epoch[_nearest(row, vector)][task]) for epoch in row["weights"]] for row in rows]
        epochs = range(1, len(courses[0]) + 1)
        marker = "o" if len(epochs) < _FEW else None
        axis.plot(epochs, courses[0], linewidth=1.3, marker=marker, markersize=3.5,
                  label=f"weight of {tasks[task].replace('-', ' ')}", **style)  # fmt: skip
        each = list(zip(*courses, strict=False))
        band: dict[str, Any] = {"color": style["color"], "alpha": 0.18, "linewidth": 0}
        axis.fill_between(range(1, len(each) + 1), [min(v) for v in each], [max(v) for v in each], **band)
    axis.axhline(0, color="0.75", linewidth=0.6, zorder=0)
    axis.locator_params(axis="x", integer=True)
    axis.set(xlabel="epoch", ylabel="weight")


def _nearest(row: Row, vector: tuple[float, float]) -> int:
    angle = math.atan2(vector[1], vector[0])
    return min(range(len(row["vectors"])), key=lambda k: abs(math.atan2(*row["vectors"][k][::-1]) - angle))


def _number(value: float | None) -> float:
    return math.nan if value is None else value


def _acceptance(rows: Sequence[Row]) -> Figure | None:
    """A line for each set and task: every seed, the mean, the published value, and how far they are apart."""
    found = [(problem, task, mine) for problem in SETS if (mine := chosen(rows, problem=problem)) for task in range(2)]
    if not found:
        return None
    figure, (axis,) = grid(1, 1, width=6.2, height=0.36 * len(found) + 0.9, below=0.4)
    for i, (problem, task, mine) in enumerate(found):
        height, there = len(found) - 1 - i, PUBLISHED[problem][task]
        here = [value for row in mine if (value := TEST_ACCURACY.values(row)[task][task]) is not None]
        apart = [height + 0.14 * (k - (len(here) - 1) / 2) for k in range(len(here))]
        labels = ("here, each seed", "here, mean", "published, on the lost files") if i == 0 else (None,) * 3
        axis.scatter(here, apart, s=22, color=colour_of("pareto-mtl"), label=labels[0], zorder=3)
        axis.scatter(
            [mean(here)], [height], s=220, marker="|", color="black", linewidths=1.3, label=labels[1], zorder=2
        )
        axis.scatter([there], [height], s=42, marker="D", color="white", edgecolor=colour_of("mgda"), linewidths=1.3,
                     label=labels[2], zorder=4)  # fmt: skip
        gap = f"{mean(here) - there:+.4f}".replace("-", "−") if here else ""
        axis.text(1.03, height, gap, transform=axis.get_yaxis_transform(), va="center")
    axis.text(1.03, len(found) - 0.4, "here less\npublished", transform=axis.get_yaxis_transform(), fontsize=SMALL)
    names = [f"{TITLES[problem]}, {mine[0]['tasks'][task].replace('-', ' ')}" for problem, task, mine in found]
    name_lines(axis, names[::-1])
    axis.set_xlabel("test accuracy of separate networks")
    legend(figure, columns=3)
    return figure
