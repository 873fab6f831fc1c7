"""Draw ten models on the paper's concave problem by three methods, as docs/concepts/p-norm.md shows them.

python docs/auto.py     # trains them, in under a minute, and writes docs/auto.png and docs/auto-dark.png
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

import paretomtl as pm
from paretomtl.methods.registry import colour_of, label_of, marker_of
from paretomtl.paper.panels import grid, panel_title
from paretomtl.report.figures.style import (
    INK,
    QUIET,
    RAY,
    SMALL,
    TRUTH,
    add_caption,
    better_arrow,
    figure_style,
    save_figure,
)

HERE = Path(__file__).parent
COUNT = 10
METHODS: dict[str, Any] = {"linear": "linear", "pareto-mtl": pm.ParetoMTL(return_share=None), "auto": "auto"}
CAPTION = (
    "Ten models each, trained with Adam on two losses with a concave front. Dashed lines are the trade-offs that "
    "models were asked for; crosses are models that left their region."
)


def main() -> None:
    """Train the models and draw the three panels."""
    problem = pm.problems.synthetic()
    fronts = {
        name: pm.fit(
            problem,
            method,
            COUNT,
            epochs=1000,
            optimizer=lambda parameters: torch.optim.Adam(parameters, lr=0.02),
            device="cpu",
            progress="quiet",
        )
        for name, method in METHODS.items()
    }
    with figure_style():
        figure, axes = grid(1, len(fronts), height=2.95)
        for axis, (name, front) in zip(axes, fronts.items(), strict=True):
            draw(axis, name, front, problem)
        axes[0].set_ylabel("loss 2")
        axes[0].text(0.68, 0.68, "true front", fontsize=SMALL, color=QUIET)
        better_arrow(axes[0])
        title = "With Adam, Pareto MTL loses its trade-offs, and auto keeps them"
        add_caption(figure, title, CAPTION)
        save_figure(figure, HERE, "auto")


def draw(axis: Any, name: str, front: pm.Front, problem: pm.Problem) -> None:
    """Draw the models of one method."""
    assert problem.truth is not None
    axis.plot(*problem.truth.front(400).T, **TRUTH)
    losses, inside = front.losses["train"], torch.ones(COUNT, dtype=torch.bool)
    words = f"{int((losses > 0.5).all(-1).sum())} of {COUNT} in the middle"
    if front.reading == "direction":
        inside = front.in_region()
        words = f"{int(inside.sum())} of {COUNT} in their own region"
        for x, y in front.preferences.tolist():
            axis.plot([0, 2 * x], [0, 2 * y], **RAY)
    style = {"color": colour_of(name), "marker": marker_of(name), "edgecolor": "white", "linewidth": 0.6}
    axis.scatter(*losses[inside].T, s=52, zorder=3, **style)
    axis.scatter(*losses[~inside].T, s=32, zorder=3, color=INK, marker="x", linewidth=1.4)
    panel_title(axis, label_of(name), words)
    axis.set(xlabel="loss 1", xlim=(-0.06, 1.08), ylim=(-0.06, 1.08), xticks=[0, 0.5, 1], yticks=[0, 0.5, 1])
    axis.set_box_aspect(1)


if __name__ == "__main__":
    main()
