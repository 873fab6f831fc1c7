"""Draw ten models on the paper's concave problem by three methods, as docs/p-norm.md shows them.

python docs/auto.py     # trains them, in under a minute, and writes docs/auto.png
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from matplotlib.figure import Figure

import paretomtl as pm
from paretomtl.methods.registry import colour_of

HERE = Path(__file__).parent
COUNT = 10


def draw(path: Path) -> None:
    """Train and draw the three panels."""
    problem = pm.problems.synthetic()
    assert problem.truth is not None
    options: dict[str, Any] = {
        "epochs": 1000,
        "optimizer": lambda parameters: torch.optim.Adam(parameters, lr=0.02),
        "device": "cpu",
        "progress": "quiet",
    }
    methods = {
        "linear": ("linear", "linear scalarization"),
        "pareto-mtl": (pm.ParetoMTL(return_share=None), "Pareto MTL as in the paper"),
        "auto": ("auto", "auto: the p-norm along rays"),
    }
    figure = Figure(figsize=(10.8, 4.2), layout="constrained")
    truth = problem.truth.front(400)
    for axis, (name, (method, title)) in zip(figure.subplots(1, 3, sharey=True), methods.items(), strict=True):
        front = pm.fit(problem, method, COUNT, **options)
        losses = front.losses["train"]
        axis.plot(truth[:, 0], truth[:, 1], color="#bbbbbb", linewidth=1.2, zorder=1, label="true front")
        inside = torch.ones(COUNT, dtype=torch.bool)
        if front.reading == "direction":
            inside = front.in_region()
            for x, y in front.preferences.tolist():
                axis.plot([0, 1.1 * x], [0, 1.1 * y], color="#dddddd", linewidth=0.8, zorder=0)
        colour = colour_of(name)
        axis.scatter(losses[inside, 0], losses[inside, 1], color=colour, s=42, zorder=3)
        axis.scatter(losses[~inside, 0], losses[~inside, 1], color=colour, s=52, marker="x", zorder=3)
        words = f"{int(inside.sum())} of {COUNT} in their regions"
        if front.reading != "direction":
            words = f"{int((losses < 0.9).all(-1).sum())} of {COUNT} in the middle"
        axis.set_title(f"{title}\n{words}", fontsize=11)
        axis.set(xlabel="loss 1", xlim=(-0.03, 1.06), ylim=(-0.03, 1.06))
        axis.set_aspect("equal")
        axis.spines[["top", "right"]].set_visible(False)
    figure.axes[0].set_ylabel("loss 2")
    arrow = {"arrowstyle": "->", "color": "#555555"}
    figure.axes[0].annotate("better", (0.08, 0.08), (0.3, 0.3), fontsize=10, color="#555555", arrowprops=arrow)
    figure.savefig(path, dpi=130)


if __name__ == "__main__":
    draw(HERE / "auto.png")
