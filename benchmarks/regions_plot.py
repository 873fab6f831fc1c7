"""Models on the front of the synthetic problem with Adam, with and without returns, for docs/concepts/regions.md.

    python benchmarks/regions_plot.py    # reads results/regions.json, writes regions.png, -dark.png and .svg there

Needs matplotlib (`pip install '.[figures]'`).
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

import torch

import paretomtl as pm
from paretomtl.compare import Row, load_rows
from paretomtl.core import in_region
from paretomtl.methods.registry import colour_of
from paretomtl.paper.panels import grid, legend, panel_title
from paretomtl.report.figures.style import INK, QUIET, RAY, SMALL, TRUTH, add_caption, figure_style, save_figure

RESULTS = Path(__file__).parent / "results"
OPTIMIZER, SEED = "Adam 0.02", 0
PANELS = {"paper": "As in the paper", "share 0.05": "With returns"}


def main() -> None:
    stored = load_rows(RESULTS / "regions.json")
    settings = {"part": "synthetic", "optimizer": OPTIMIZER, "seed": SEED}
    with figure_style():
        figure, axes = grid(1, 2, height=4.0)
        counts = []
        for axis, (way, title) in zip(axes, PANELS.items(), strict=True):
            row = next(row for row in stored if {**settings, "way": way}.items() <= row.items())
            counts.append(draw(axis, row))
            panel_title(axis, title, f"{counts[-1]} of {len(row['preferences'])} in their own region")
        axes[0].set_ylabel("loss 2")
        legend(figure)
        add_caption(
            figure,
            f"With Adam, {counts[0]} models of Pareto MTL stay in their regions; with returns, {counts[1]} do",
            "Each model has the number of the region that it was asked for. The regions have theirs at the rim.",
        )
        for path in save_figure(figure, RESULTS, "regions"):
            print(path)


def draw(axis: Any, row: Row) -> int:
    """Draw regions and models with their numbers; return how many models are in their own region."""
    vectors, losses = (torch.tensor(row[name], dtype=torch.float64) for name in ("preferences", "train_losses"))
    inside = in_region(vectors, losses)
    angles = torch.atan2(vectors[:, 1], vectors[:, 0]).sort().values
    for number, edge in enumerate((angles[1:] + angles[:-1]) / 2):
        label = None if number else "border of a region"
        axis.plot([0, 1.18 * edge.cos()], [0, 1.18 * edge.sin()], label=label, **RAY)
    truth = pm.problems.synthetic().truth
    assert truth is not None
    axis.plot(*truth.front(400).T, label="true front", **TRUTH)
    point = {"color": colour_of("pareto-mtl"), "edgecolor": "white", "linewidth": 0.6, "s": 52}
    axis.scatter(*losses[inside].T, zorder=3, label="in its own region", **point)
    axis.scatter(*losses[~inside].T, color=INK, marker="x", linewidth=1.4, s=32, zorder=3, label="outside of it")
    write_numbers(axis, vectors, losses)
    axis.set(xlim=(-0.06, 1.2), ylim=(-0.06, 1.2), xlabel="loss 1", xticks=[0, 0.5, 1], yticks=[0, 0.5, 1])
    axis.set_box_aspect(1)
    return int(inside.sum())


def write_numbers(axis: Any, vectors: torch.Tensor, losses: torch.Tensor) -> None:
    """Number the regions at the rim, and the models below and above the front in turn: neighbours may be close."""
    style: Any = {"ha": "center", "va": "center", "fontsize": SMALL}
    for k, (vector, point) in enumerate(zip(vectors, losses, strict=True)):
        axis.text(*(1.14 * vector).tolist(), str(k + 1), color=QUIET, **style)
        aside = 0.065 if k % 2 else -0.065
        axis.text(*(point * (1 + aside / point.norm())).tolist(), str(k + 1), color=INK, fontweight="bold", **style)


if __name__ == "__main__":
    main()
