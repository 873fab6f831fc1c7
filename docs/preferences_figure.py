"""Draw the pictures of docs/concepts: dominance, and what the same three rows mean in both readings.

python docs/preferences_figure.py    # trains six small models in seconds; writes front.png and preferences.png there
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

import paretomtl as pm
from paretomtl.methods.registry import colour_of, marker_of
from paretomtl.paper.panels import grid, panel_title
from paretomtl.report.figures.style import (
    INK,
    QUIET,
    RAY,
    SMALL,
    TRUTH,
    WIDTH,
    add_caption,
    better_arrow,
    figure_style,
    save_figure,
)

HERE = Path(__file__).parent / "concepts"
ROWS = [[1.0, 3.0], [1.0, 1.0], [3.0, 1.0]]
NAMES = ["(1, 3)", "(1, 1)", "(3, 1)"]
BESIDE_RAYS, ABOVE_LINES = [(10, -1), (12, -4), (-24, -22)], [(9, 5)] * 3  # places of the names, in points
LIMIT = 1.5
CAPTION = (
    "Six trained models on two losses whose true front is known (grey). Left, a row is the ratio that the losses "
    "should have: a model lies close to where its ray meets the front. Right, a row holds the weights of the losses: a "
    "model lies where the line of equal weighted sums touches the front."
)


MODELS = [[0.12, 0.90], [0.22, 0.55], [0.45, 0.30], [0.85, 0.15]]
DOMINATED = [[0.55, 0.70], [0.75, 0.45]]
REFERENCE = (1.1, 1.1)
FRONT_CAPTION = (
    "Each point is a model with two losses, as an example. Left, a model is dominated if another one is no worse in "
    "both losses and better in one: it lies in the grey corner of that model. Right, the hypervolume is the area "
    "between the front and a reference point."
)


def main() -> None:
    """Draw both pictures."""
    with figure_style():
        draw_front()
        draw_readings()


def draw_front() -> None:
    """Draw models that are made up, the two that are dominated, and the hypervolume of the others."""
    figure, (left, right) = grid(1, 2, width=WIDTH, height=3.5)
    x, y = MODELS[2]
    left.fill_between([x, 1.2], y, 1.2, color="0.92", linewidth=0, zorder=0)
    left.text(0.49, 1.05, "worse in both losses than\nthe model at this corner", fontsize=SMALL, color=QUIET)
    for x, y in MODELS:
        right.fill_between([x, REFERENCE[0]], y, REFERENCE[1], color="0.88", linewidth=0, zorder=0)
    right.scatter(*REFERENCE, s=90, marker="+", color=INK, linewidth=2.2, zorder=3)
    right.annotate("reference", REFERENCE, (-58, -12), textcoords="offset points", fontsize=SMALL, color=INK)
    for axis in (left, right):
        style = {"edgecolor": "white", "linewidth": 0.6, "zorder": 3}
        axis.scatter(*zip(*MODELS, strict=True), s=70, color=colour_of("auto"), marker=marker_of("auto"), **style)
        ticks = [0, 0.5, 1]
        axis.set(xlabel="loss 1", xlim=(0, 1.2), ylim=(0, 1.2), xticks=ticks, yticks=ticks)
        axis.set_box_aspect(1)
    left.scatter(*zip(*DOMINATED, strict=True), s=60, facecolor="white", edgecolor=QUIET, linewidth=1.4, zorder=3)
    panel_title(left, "Dominance", "the two hollow models are dominated")
    panel_title(right, "Hypervolume", "the grey area: more is better")
    left.set_ylabel("loss 2")
    better_arrow(left, (0.04, 0.04), (0.14, 0.16))
    add_caption(figure, "A front is the set of models that no other model beats", FRONT_CAPTION)
    save_figure(figure, HERE, "front")


def draw_readings() -> None:
    """Train the models and draw both panels."""
    problem = pm.problems.quadratic()
    figure, (left, right) = grid(1, 2, width=WIDTH, height=3.5)
    draw(left, problem, "p-norm", directions=True)
    draw(right, problem, "linear", directions=False)
    panel_title(left, "Rows read as directions", "(1, 3) keeps loss 1 small: it favours task 1")
    panel_title(right, "Rows read as importances", "(1, 3) keeps loss 2 small: it favours task 2")
    left.set_ylabel("loss 2")
    better_arrow(right, (0.04, 0.04), (0.12, 0.14))
    add_caption(figure, "The same numbers, the opposite models", CAPTION)
    save_figure(figure, HERE, "preferences")


def draw(axis: Any, problem: pm.Problem, method: str, *, directions: bool) -> None:
    """Draw the models of one method, and what they were asked for."""
    assert problem.truth is not None
    axis.plot(*problem.truth.front(400).T, **TRUTH)
    front = pm.fit(
        problem,
        method,
        ROWS,
        epochs=600,
        optimizer=lambda parameters: torch.optim.SGD(parameters, lr=0.02),
        device="cpu",
        progress="quiet",
    )
    losses = front.losses["train"].tolist()
    places = BESIDE_RAYS if directions else ABOVE_LINES
    for (x, y), point, name, offset in zip(ROWS, losses, NAMES, places, strict=True):
        ends = [(0.0, 0.0), (2 * x, 2 * y)] if directions else line_of_equal_sums((x, y), point)
        axis.plot(*zip(*ends, strict=True), **RAY)
        place: dict[str, Any] = {"xytext": offset, "textcoords": "offset points", "zorder": 4}
        axis.annotate(name, point, color=INK, fontsize=9, fontweight="bold", **place)
    style = {"color": colour_of(method), "marker": marker_of(method), "edgecolor": "white", "linewidth": 0.6}
    axis.scatter(*zip(*losses, strict=True), s=70, zorder=3, **style)
    axis.text(0.06, 1.42, "front", fontsize=SMALL, color=QUIET)
    ticks = [0, 0.5, 1, 1.5]
    axis.set(xlabel="loss 1", xlim=(-0.04, LIMIT), ylim=(-0.04, LIMIT), xticks=ticks, yticks=ticks)
    axis.set_box_aspect(1)


def line_of_equal_sums(weights: tuple[float, float], point: list[float]) -> list[tuple[float, float]]:
    """Two points of the line through a point on which the weighted sum of the losses does not change."""
    x, y = weights
    total = x * point[0] + y * point[1]
    return [(0.0, total / y), (total / x, 0.0)]


if __name__ == "__main__":
    main()
