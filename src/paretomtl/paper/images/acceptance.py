"""Acceptance of the regenerated canvases: accuracies of separate networks, here and on the lost files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from paretomtl._support.significance import mean
from paretomtl.compare import Row
from paretomtl.compare.rows import accuracies
from paretomtl.methods.registry import colour_of
from paretomtl.paper.images.cells import SET_TITLES, SETS, ImageCell, resize
from paretomtl.paper.number_text import plus_minus
from paretomtl.paper.panels import grid, legend, name_lines
from paretomtl.paper.rows import has, pick_by_seed
from paretomtl.paper.study import Size, Study
from paretomtl.report.figures.layers import TEST_ACCURACY
from paretomtl.report.figures.style import SMALL

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PUBLISHED = {
    "multi-mnist": (0.9137, 0.8947),
    "multi-fashion": (0.8182, 0.8170),
    "multi-fashion-mnist": (0.9469, 0.8437),
}
"""Accuracies of networks for one task on the lost files: top left, bottom right."""


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
    figure, (axis,) = grid(1, 1, width=6.2, height=0.36 * len(results) + 0.9, below=0.4)
    for i, (problem, task, mine) in enumerate(results):
        height, there = len(results) - 1 - i, PUBLISHED[problem][task]
        here = [value for row in mine if (value := TEST_ACCURACY.values(row)[task][task]) is not None]
        heights = [height + 0.14 * (k - (len(here) - 1) / 2) for k in range(len(here))]
        labels = ("here, each seed", "here, mean", "published, on the lost files") if i == 0 else (None,) * 3
        axis.scatter(here, heights, s=22, color=colour_of("pareto-mtl"), label=labels[0], zorder=3)
        axis.scatter(
            [mean(here)], [height], s=220, marker="|", color="black", linewidths=1.3, label=labels[1], zorder=2
        )
        axis.scatter([there], [height], s=42, marker="D", color="white", edgecolor=colour_of("mgda"), linewidths=1.3,
                     label=labels[2], zorder=4)  # fmt: skip
        gap = f"{mean(here) - there:+.4f}".replace("-", "−") if here else ""
        axis.text(1.03, height, gap, transform=axis.get_yaxis_transform(), va="center")
    axis.text(1.03, len(results) - 0.4, "here less\npublished", transform=axis.get_yaxis_transform(), fontsize=SMALL)
    names = [f"{SET_TITLES[problem]}, {mine[0]['tasks'][task].replace('-', ' ')}" for problem, task, mine in results]
    name_lines(axis, names[::-1])
    axis.set_xlabel("test accuracy of separate networks")
    legend(figure, columns=3)
    return figure


STUDY = Study(cells=cells, facts=facts, figures={"acceptance": _draw_acceptance})
