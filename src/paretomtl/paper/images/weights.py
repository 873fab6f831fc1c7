"""The weights of the tasks over training on MultiMNIST (supplement, section 3, figure 10)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from paretomtl._support.significance import mean
from paretomtl.compare import Row
from paretomtl.methods.registry import paper_label_of
from paretomtl.paper.claims import Claim, judge
from paretomtl.paper.images.cells import PAPER, SETS, ImageCell, resize
from paretomtl.paper.panels import caption, grid, legend, legend_label
from paretomtl.paper.rows import pick, pick_by_seed
from paretomtl.paper.study import Size, Study

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_FEW = 4  # epochs that are too few for a line alone
_TASK_LINES: tuple[dict[str, Any], ...] = (
    {"color": "#0b5fa5", "linestyle": "-"},
    {"color": "#c98a00", "linestyle": "--"},
)


def cells(size: Size) -> list[ImageCell]:
    """Four methods on MultiMNIST."""
    study = [ImageCell(PAPER, SETS[0], method) for method in ("pareto-mtl", "mgda", "gradnorm", "linear")]
    return resize(study, size)


def claims(rows: Sequence[Row]) -> list[Claim]:
    """The claims of the supplement, section 3."""
    own, *others = (_first_shares(rows, method) for method in ("pareto-mtl", "mgda", "gradnorm"))
    balanced = [mean(shares) for shares in others]
    low, high = own[0], own[-1]
    return [
        Claim(
            "supplement 3, figure 10",
            "Pareto MTL leans to the task of an extreme preference vector, and balances for a balanced one",
            f"mean share of the first task's weight: {own[-1]:.2f} for (0, 1), {own[len(own) // 2]:.2f} for the "
            f"balanced vector, {own[0]:.2f} for (1, 0)",
            judge(low < 0.4 < own[len(own) // 2] < 0.6 < high, low < high),
        ),
        Claim(
            "supplement 3, figure 10",
            "MOO-MTL and GradNorm always try to balance the tasks",
            f"mean share of the first task's weight: {balanced[0]:.2f} for MOO-MTL, {balanced[1]:.2f} for GradNorm",
            judge(
                all(0.4 < share < 0.6 for shares in others for share in shares), all(0.4 < s < 0.6 for s in balanced)
            ),
        ),
    ]


def facts(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """The share of the first task, for each model."""
    return [
        (
            f"mean share of the first task's weight, {paper_label_of(method)}, for each model",
            ", ".join(f"{share:.2f}" for share in _first_shares(rows, method)),
        )
        for method in dict.fromkeys(row["method"] for row in rows)
    ]


def _first_shares(rows: Sequence[Row], method: str) -> list[float]:
    """For each model the share of the first task in the absolute weights, averaged over epochs and seeds."""
    by_seed = [
        [mean([_share(epoch[k]) for epoch in row["weights"]]) for k in range(row["preferences"])]
        for row in pick(rows, method=method)
    ]
    return [mean(values) for values in zip(*by_seed, strict=True)]


def _share(weights: Sequence[float]) -> float:
    if None in weights:
        return math.nan
    return abs(weights[0]) / max(sum(abs(weight) for weight in weights), 1e-12)


def _draw_weights(rows: Sequence[Row]) -> Figure | None:
    half = "$(\\sqrt{2}/2, \\sqrt{2}/2)$"
    wanted: tuple[tuple[str, str, tuple[float, float]], ...] = (
        ("pareto-mtl", f"{legend_label('pareto-mtl')}, (1, 0)", (1, 0)),
        ("pareto-mtl", f"{legend_label('pareto-mtl')}, {half}", (1, 1)),
        ("pareto-mtl", f"{legend_label('pareto-mtl')}, (0, 1)", (0, 1)),
        ("mgda", legend_label("mgda"), (1, 1)),
        ("gradnorm", legend_label("gradnorm"), (1, 1)),
        ("linear", "Fixed weights", (1, 1)),
    )
    panels = [(title, vector, mine) for m, title, vector in wanted if (mine := pick_by_seed(rows, method=m))]
    if not panels:
        return None
    columns = min(3, len(panels))
    figure, axes = grid(-(-len(panels) // columns), columns, len(panels), height=2.7, below=0.6)
    for i, (axis, (title, vector, mine)) in enumerate(zip(axes, panels, strict=True)):
        _draw_course(axis, mine, vector)
        caption(axis, i, title)
    low, high = min(axis.get_ylim()[0] for axis in axes), max(axis.get_ylim()[1] for axis in axes)
    for axis in axes:
        axis.set_ylim(low, high)
    legend(figure, "Line: the first seed. Band: from the least to the greatest of all seeds.")
    return figure


def _draw_course(axis: Axes, rows: Sequence[Row], vector: tuple[float, float]) -> None:
    """Draw the weights of the model whose preference vector is nearest to this one; the first one in a tie."""
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


STUDY = Study(cells=cells, claims=claims, facts=facts, figures={"weights": _draw_weights}, shares=("images-lenet",))
