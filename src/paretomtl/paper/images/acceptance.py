"""Acceptance of the regenerated canvases: accuracies of separate networks, here and on the lost files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from paretomtl._support.significance import mean
from paretomtl.compare import Row
from paretomtl.compare.rows import accuracies
from paretomtl.paper.images.cells import SET_TITLES, SETS, ImageCell, resize
from paretomtl.paper.number_text import plus_minus
from paretomtl.paper.panels import draw_strip, grid, legend, name_lines
from paretomtl.paper.rows import has, pick_by_seed
from paretomtl.paper.study import Size, Study
from paretomtl.report.figures.layers import TEST_ACCURACY
from paretomtl.report.figures.style import QUIET, SMALL, add_caption

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PUBLISHED = {
    "multi-mnist": (0.9137, 0.8947),
    "multi-fashion": (0.8182, 0.8170),
    "multi-fashion-mnist": (0.9469, 0.8437),
}
"""Accuracies of networks for one task on the lost files: top left, bottom right."""

_PUBLISHED: dict[str, Any] = {"marker": "D", "facecolor": "none", "edgecolor": QUIET, "linewidths": 1.4, "zorder": 4}


def cells(size: Size) -> list[ImageCell]:
    """Separate networks, trained like those whose accuracies on the lost files are published."""
    common = {"recipe": "acceptance", "epochs": 100, "seeds": 3}
    return resize([ImageCell("constant rate", name, "single-task", None, **common) for name in SETS], size)  # type: ignore[arg-type]


def facts(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """Accuracies of separate networks here and on the lost files."""
    results = []
    for problem in SETS:
        if has(rows, problem=problem):
            mine = [row for row in rows if row["problem"] == problem]
            own = [[point[task] for task, point in enumerate(accuracies(row))] for row in mine]
            values = list(zip(*own, strict=True))
            measured = "; ".join(
                f"{task}: {plus_minus(here, 4)} here, {there:.4f} there ({mean(here) - there:+.4f})"
                for task, here, there in zip(mine[0]["tasks"], values, PUBLISHED[problem], strict=True)
            )
            results.append((f"test accuracy, {SET_TITLES[problem]}, {len(mine)} seeds", measured))
    return results


def _draw_acceptance(rows: Sequence[Row]) -> Figure | None:
    """Draw a line for each set and task: every seed, the mean, the published value, and their difference."""
    results = [
        (problem, task, mine) for problem in SETS if (mine := pick_by_seed(rows, problem=problem)) for task in range(2)
    ]
    if not results:
        return None
    figure, (axis,) = grid(1, 1, height=0.3 * len(results) + 1.2)
    for i, (problem, task, mine) in enumerate(results):
        height, there = len(results) - 1 - i, PUBLISHED[problem][task]
        here = [value for row in mine if (value := TEST_ACCURACY.values(row)[task][task]) is not None]
        labels = ("Here, each seed", "Published, on the lost files") if i == 0 else (None,) * 2
        draw_strip(axis, height, "single-task", here, label=labels[0])
        axis.scatter([there], [height], s=44, label=labels[1], **_PUBLISHED)
        gap = f"{mean(here) - there:+.4f}".replace("-", "−") if here else ""
        axis.text(1.03, height, gap, transform=axis.get_yaxis_transform(), va="center")
    beside: dict[str, Any] = {"transform": axis.get_yaxis_transform(), "fontsize": SMALL, "color": QUIET}
    axis.text(1.03, len(results) - 0.5, "mean less\npublished", **beside)
    names = [f"{SET_TITLES[problem]}, {mine[0]['tasks'][task].replace('-', ' ')}" for problem, task, mine in results]
    name_lines(axis, names[::-1])
    axis.set_xlabel("test accuracy")
    legend(figure)
    add_caption(
        figure,
        "Separate networks on the regenerated canvases, and as published on the lost ones",
        f"One network for each image of a set. A star is one of {len(results[0][2])} seeds, a bar is their mean.",
    )
    return figure


STUDY = Study(cells=cells, facts=facts, figures={"acceptance": _draw_acceptance})
