"""The weights of the tasks over training on MultiMNIST (supplement, section 3, figure 10)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from paretomtl._support.significance import mean
from paretomtl.compare import Row
from paretomtl.methods.registry import colour_of, label_of, paper_label_of
from paretomtl.paper.claims import Claim, judge
from paretomtl.paper.images.cells import PAPER, SET_TITLES, SETS, ImageCell, resize
from paretomtl.paper.panels import grid, legend, panel_title
from paretomtl.paper.rows import pick, pick_by_seed
from paretomtl.paper.study import Size, Study
from paretomtl.report.figures.scatter2d import label_outer
from paretomtl.report.figures.style import INK, add_caption

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_FEW = 4  # epochs that are too few for a line alone
_TASK_LINES: tuple[Any, ...] = ("-", (0, (4, 1.6)))
_THICK: dict[str, Any] = {"linewidth": 1.8}
_THIN: dict[str, Any] = {"linewidth": 0.7, "alpha": 0.45}
_SEEDS = "Thick: the first seed. Thin: other seeds."


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
    panels = [(panel, mine) for panel in _panels(rows) if (mine := pick_by_seed(rows, method=panel[0]))]
    if not panels:
        return None
    columns = min(3, len(panels))
    figure, axes = grid(-(-len(panels) // columns), columns, len(panels), height=2.35)
    for axis, ((method, title, note, vector), mine) in zip(axes, panels, strict=True):
        _draw_course(axis, method, mine, vector)
        panel_title(axis, title, note)
    low, high = min(axis.get_ylim()[0] for axis in axes), max(axis.get_ylim()[1] for axis in axes)
    for axis in axes:
        axis.set_ylim(low, high)
    label_outer(axes)
    legend(figure)
    title = f"Weights of the two tasks over training, {SET_TITLES[rows[0]['problem']]}"
    add_caption(figure, title, f"A panel is one model. {_SEEDS}")
    return figure


def _panels(rows: Sequence[Row]) -> list[tuple[str, str, str, tuple[float, float]]]:
    """Of each panel the method, the title, the note, and the vector of the model."""
    first, second = (task.replace("-", " ") for task in rows[0]["tasks"]) if rows else ("", "")
    return [
        ("pareto-mtl", label_of("pareto-mtl"), f"vector (1, 0), for {second}", (1, 0)),
        ("pareto-mtl", label_of("pareto-mtl"), "balanced vector", (1, 1)),
        ("pareto-mtl", label_of("pareto-mtl"), f"vector (0, 1), for {first}", (0, 1)),
        ("mgda", label_of("mgda"), "has no vectors", (1, 1)),
        ("gradnorm", label_of("gradnorm"), "has no vectors", (1, 1)),
        ("linear", "Fixed weights", "balanced: both lines are one", (1, 1)),
    ]


def _draw_course(axis: Axes, method: str, rows: Sequence[Row], vector: tuple[float, float]) -> None:
    """Draw the weights of the model whose preference vector is nearest to this one; the first one in a tie."""
    tasks = rows[0]["tasks"]
    for i, row in enumerate(rows):
        for task, dashes in zip(range(len(tasks)), _TASK_LINES, strict=True):
            course = [_number(epoch[_nearest(row, vector)][task]) for epoch in row["weights"]]
            style = {"linestyle": dashes, "marker": "o" if len(course) < _FEW else None, **(_THIN if i else _THICK)}
            axis.plot(range(1, len(course) + 1), course, color=colour_of(method), markersize=3.5, **style)
    for task, dashes in zip(tasks, _TASK_LINES, strict=True):
        axis.plot([], [], color=INK, linestyle=dashes, label=f"Weight of {task.replace('-', ' ')}", **_THICK)
    axis.locator_params(axis="x", integer=True)
    axis.set(xlabel="epoch", ylabel="weight")


def _nearest(row: Row, vector: tuple[float, float]) -> int:
    angle = math.atan2(vector[1], vector[0])
    return min(range(len(row["vectors"])), key=lambda k: abs(math.atan2(*row["vectors"][k][::-1]) - angle))


def _number(value: float | None) -> float:
    return math.nan if value is None else value


STUDY = Study(cells=cells, claims=claims, facts=facts, figures={"weights": _draw_weights}, shares=("images-lenet",))
