"""The figures of LeNet and ResNet-18 on the sets of image pairs, drawn from stored rows alone."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paretomtl.compare import Row
from paretomtl.paper.images.lenet import TITLES
from paretomtl.paper.images.studies import LONG, METHODS, PAPER, SETS, STRONG
from paretomtl.paper.labels import label_of
from paretomtl.paper.panels import caption, chosen, draw_figures, draw_strip, grid, layer, legend, name_lines
from paretomtl.paper.statistics import has
from paretomtl.report.figures.layers import TEST_ACCURACY, TEST_LOSS, TRAIN_ACCURACY, TRAIN_LOSS, Quantity
from paretomtl.report.figures.scatter2d import NUMBERS, draw_scatter2d
from paretomtl.report.figures.style import SMALL

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WITH_SEEDS = ("pareto-mtl", "linear")  # whose other seeds are shown, too
_SEEDS = "Large: the first seed. Small and faint: the other seeds of Pareto MTL and grid search."


def draw_images_lenet(rows: Sequence[Row], folder: Path) -> list[Path]:
    """Test accuracies (the paper's figure 3), test losses, hypervolumes, and the run of 100 epochs."""
    figures: dict[str, Callable[[Sequence[Row]], Figure | None]] = {
        "images-lenet-accuracy": partial(_accuracies_or_losses, space=TEST_ACCURACY),
        "images-lenet-losses": partial(_accuracies_or_losses, space=TEST_LOSS),
        "images-lenet-hypervolume": _hypervolumes,
        "images-lenet-100-epochs": _all_epochs,
    }
    return draw_figures(rows, folder, figures)


def draw_images_resnet(rows: Sequence[Row], folder: Path) -> list[Path]:
    """Training losses, training accuracies and test accuracies (the paper's figure 13)."""
    return draw_figures(rows, folder, {"images-resnet": _resnet})


def _accuracies_or_losses(rows: Sequence[Row], space: Quantity) -> Figure | None:
    figure, panels = _recipes_and_sets(rows)
    for i, (axis, part, mine) in enumerate(panels):
        caption(axis, i, f"{TITLES[mine[0]['problem']]}, {part}", _plane(axis, mine, space))
    if figure is not None:
        legend(figure, _note(rows), columns=4 if len(panels) < 3 else 8)
    return figure


def _hypervolumes(rows: Sequence[Row]) -> Figure | None:
    """Every seed a point, the mean a bar; the methods in the same order everywhere."""
    measured = [row for row in rows if row["hypervolume"] is not None]
    methods = [method for method in METHODS if has(measured, method=method)][::-1]
    figure, panels = _recipes_and_sets(measured, height=0.34 * len(methods) + 1.1, below=0.3)
    for i, (axis, part, mine) in enumerate(panels):
        for height, method in enumerate(methods):
            draw_strip(axis, height, method, [row["hypervolume"] for row in chosen(mine, method=method)])
        name_lines(axis, [label_of(method) for method in methods])
        axis.set_xlabel(f"hypervolume of the test losses at ({', '.join(f'{v:g}' for v in mine[0]['reference'])})")
        caption(axis, i, f"{TITLES[mine[0]['problem']]}, {part}")
    if figure is not None:
        note = "Points: seeds. Bars: their mean. Single task: one point made of separate networks, which is no front."
        figure.supxlabel(note, fontsize=SMALL + 1)
    return figure


def _all_epochs(rows: Sequence[Row]) -> Figure | None:
    """The paper's settings for as long as the paper trains."""
    mine = chosen(rows, part=LONG)
    if not mine:
        return None
    figure, axes = grid(1, 2, below=1.1)
    for i, (axis, space) in enumerate(zip(axes, (TEST_ACCURACY, TEST_LOSS), strict=True)):
        caption(axis, i, f"{TITLES[mine[0]['problem']]}, {space.words}, {mine[0]['epochs']} epochs",
                _plane(axis, mine, space))  # fmt: skip
    legend(figure, NUMBERS, columns=4)
    return figure


def _resnet(rows: Sequence[Row]) -> Figure | None:
    """A line for each set."""
    found = [(problem, chosen(rows, problem=problem)) for problem in SETS]
    found = [(problem, mine) for problem, mine in found if mine]
    if not found:
        return None
    spaces = (TRAIN_LOSS, TRAIN_ACCURACY, TEST_ACCURACY)
    figure, axes = grid(len(found), 3)
    for i, axis in enumerate(axes):
        (problem, mine), space = found[i // 3], spaces[i % 3]
        caption(axis, i, f"{TITLES[problem]}, {mine[0]['part']}: {space.words}", _plane(axis, mine, space))
    legend(figure, _note(rows))
    return figure


def _recipes_and_sets(rows: Sequence[Row], **size: Any) -> tuple[Figure | None, list[tuple[Axes, str, list[Row]]]]:
    """A line of panels for each recipe, a column for each set; each panel with its recipe and its rows."""
    sets = [problem for problem in SETS if any(chosen(rows, part=part, problem=problem) for part in (PAPER, STRONG))]
    parts = [part for part in (PAPER, STRONG) if chosen(rows, part=part)]
    if not sets or not parts:
        return None, []
    figure, axes = grid(len(parts), len(sets), **size)
    panels = []
    for axis, (part, problem) in zip(axes, itertools.product(parts, sets), strict=True):
        mine = chosen(rows, part=part, problem=problem)
        if mine:
            panels.append((axis, part, mine))
        else:
            axis.remove()
    return figure, panels


def _note(rows: Sequence[Row]) -> str:
    return f"{NUMBERS}\n{_SEEDS}" if has(rows, method="pareto-mtl") else _SEEDS


def _plane(axis: Axes, rows: Sequence[Row], space: Quantity) -> str:
    """All methods that there are."""
    layers = [
        layer(method, chosen(rows, method=method), joined=method == "pareto-mtl", others=method in _WITH_SEEDS)
        for method in METHODS
        if method != "single-task"
    ]
    return draw_scatter2d(axis, space, layers, chosen(rows, method="single-task"))
