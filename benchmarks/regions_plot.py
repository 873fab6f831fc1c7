"""Models on the front of the synthetic problem with Adam, without and with returns: the figure of docs/regions.md.

    python benchmarks/regions_plot.py         # reads benchmarks/results/regions.json, writes regions.png and .svg there

Needs matplotlib (`pip install '.[figures]'`).
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

import matplotlib.pyplot as plt
import torch

import paretomtl as pm
from paretomtl.compare import Row, load_rows
from paretomtl.core import in_region
from paretomtl.report.figures.style import paper_style, save_figure

RESULTS = Path(__file__).parent / "results"
OPTIMIZER, SEED = "Adam 0.02", 0
PANELS = {"paper": "the paper's form", "share 0.05": "with returns"}
INSIDE, OUTSIDE = (
    "#0b5fa5",
    "#c1272d",
)  # of models, which have the number of their vector; regions have theirs at the rim


def main() -> None:
    stored = load_rows(RESULTS / "regions.json")
    with paper_style():
        figure, axes = plt.subplots(1, 2, figsize=(6.6, 3.4), sharex=True, sharey=True)
        for axis, (way, title) in zip(axes, PANELS.items(), strict=True):
            settings = {"part": "synthetic", "optimizer": OPTIMIZER, "way": way, "seed": SEED}
            draw(axis, title, next(row for row in stored if settings.items() <= row.items()))
        axes[0].set_ylabel("$f_2$")
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="upper center", ncols=len(labels), bbox_to_anchor=(0.5, 1.05))
        for path in save_figure(figure, RESULTS, "regions"):
            print(path)


def draw(axis: Any, title: str, row: Row) -> None:
    vectors, losses = (torch.tensor(row[name], dtype=torch.float64) for name in ("preferences", "train_losses"))
    inside = in_region(vectors, losses)
    angles = torch.atan2(vectors[:, 1], vectors[:, 0]).sort().values
    for edge in (angles[1:] + angles[:-1]) / 2:
        axis.plot([0, 1.18 * edge.cos()], [0, 1.18 * edge.sin()], color="0.85", linewidth=0.7, zorder=0)
    truth = pm.problems.synthetic().truth
    assert truth is not None
    shares = torch.linspace(0, 1, 201, dtype=torch.float64)
    front = truth.point(torch.stack([shares, 1 - shares], -1))
    axis.plot(*front.T, color="0.55", linewidth=1.0, zorder=1, label="true front")
    for k, (vector, point) in enumerate(zip(vectors, losses, strict=True)):
        number: Any = {"s": str(k + 1), "ha": "center", "va": "center", "fontsize": 8}
        axis.text(*(1.14 * vector).tolist(), **number, color="0.55")
        axis.text(*(point * (1 - 0.07 / point.norm())).tolist(), **number, color=INSIDE if inside[k] else OUTSIDE)
    axis.scatter(*losses[inside].T, s=26, color=INSIDE, zorder=3, label="in its region")
    axis.scatter(*losses[~inside].T, s=30, color=OUTSIDE, marker="X", zorder=4, label="outside its region")
    axis.set(xlim=(-0.03, 1.2), ylim=(-0.03, 1.2), aspect="equal", xlabel="$f_1$")
    axis.set_title(f"{title}: {int(inside.sum())} of {len(inside)} in region")


if __name__ == "__main__":
    main()
