"""The figures of the synthetic study, drawn only from its stored rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from paretomtl._support.significance import mean
from paretomtl.compare import Row
from paretomtl.core import in_region
from paretomtl.methods.registry import colour_of, label_of, marker_of
from paretomtl.paper.panels import grid, legend, panel_title
from paretomtl.paper.rows import column
from paretomtl.paper.study import Draw
from paretomtl.problems import TrueFront, synthetic
from paretomtl.report.figures.style import INK, QUIET, RAY, SMALL, TRUTH, add_caption, better_arrow

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_METHODS = ("random-search", "mgda", "pareto-mtl")
_END = 0.05  # a loss at an end of the front is at most this share of the worst one
_CORNERS = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.5, math.sqrt(0.75)]], dtype=torch.float64)


def _draw_convergence(rows: Sequence[Row]) -> Figure | None:
    shown = _first_seeds(rows, [{"part": "convergence", "method": method} for method in _METHODS])
    if not shown:
        return None
    figure, axes = _plane(shown)
    for axis, row in zip(axes, shown, strict=True):
        panel_title(axis, _label(row), _where(row))
        if row["method"] == "random-search":
            _count_ends(axis, row)
    _name_front(axes[0])
    expected = {"random-search": 0.0, "mgda": 1.0, "pareto-mtl": 1.0}
    story = {row["method"]: _share(row) for row in shown} == expected
    add_caption(
        figure,
        "Linear scalarization finds the ends, MOO-MTL the middle, Pareto MTL the whole front"
        if story
        else "Three methods on a concave front",
        "Two losses with a concave front. Each point is a trained model. Pareto MTL asks each of its models for a "
        "ratio of the losses, a dashed line, and keeps it in the region around this line.",
    )
    return figure


def _draw_initialization(rows: Sequence[Row]) -> Figure | None:
    parts = {
        "MOO-MTL": {"part": "convergence", "method": "mgda"},
        "Without the initial phase": {"part": "no initial phase", "method": "pareto-mtl"},
        "With the initial phase": {"part": "convergence", "method": "pareto-mtl"},
    }
    found = {title: shown for title, fields in parts.items() for shown in _first_seeds(rows, [fields])}
    if not found:
        return None
    figure, axes = _plane(list(found.values()))
    for axis, (title, row) in zip(axes, found.items(), strict=True):
        panel_title(axis, title, _where(row))
    _name_front(axes[0])
    shares = [_share(row) for title, row in found.items() if title.endswith("initial phase")]
    add_caption(
        figure,
        f"Without its initial phase, {100 * shares[0]:.0f} % of Pareto MTL's models are in their region, not "
        f"{100 * shares[1]:.0f} %"
        if len(shares) == 2 and shares[0] < shares[1]
        else "Pareto MTL without and with its initial phase",
        "The initial phase moves each model into the region around its dashed line, before it lowers the losses. "
        "Crosses are models outside of their region.",
    )
    return figure


def _draw_difficulty(rows: Sequence[Row]) -> Figure | None:
    """A line of panels for each ratio of the losses, with the hypervolumes of all seeds."""
    mine = [row for row in rows if row["part"] == "difficulty" and row["stage"] == "final"]
    ratios = sorted({row["ratio"] for row in mine})
    fields = [{"part": "difficulty", "method": method, "ratio": ratio} for ratio in ratios for method in _METHODS]
    shown = _first_seeds(mine, fields)
    if not shown:
        return None
    figure, axes = _plane(shown, height=1.85, shape=0.66)
    for number, (axis, row) in enumerate(zip(axes, shown, strict=True)):
        same = [each for each in mine if (each["method"], each["ratio"]) == (row["method"], row["ratio"])]
        volume = mean(column(same, "hypervolume")) / row["ratio"]
        title = _label(row) if number < len(_METHODS) else ""
        panel_title(axis, title, f"ratio {row['ratio']:g}, hypervolume {volume:.2f}")
        if number < len(shown) - len(_METHODS):
            axis.set_xlabel("")
    add_caption(
        figure,
        f"One loss up to {ratios[-1]:g} times as large as the other",
        "The ratio is that of the largest loss 1 to the largest loss 2. Hypervolumes are shares of the "
        f"box of both, as means over {len({row['seed'] for row in mine})} seeds; the points are those of the first.",
    )
    return figure


def _draw_preferences(rows: Sequence[Row]) -> Figure | None:
    shown = [row for row in rows if row["part"] == "preferences" and row["seed"] == 0]
    if not shown:
        return None
    figure, axes = _plane(shown)
    for axis, row in zip(axes, shown, strict=True):
        panel_title(axis, f"{row['preferences']} {_kind(row)} vectors", _where(row))
    add_caption(
        figure,
        f"The models of Pareto MTL follow {len(shown)} sets of preference vectors"
        if all(_share(row) == 1.0 for row in shown)
        else "The models of Pareto MTL for several sets of preference vectors",
        "Each dashed line is a preference vector, which asks one model for a ratio of the two losses. "
        "The grey curve is the true front.",
    )
    return figure


def _draw_three_objectives(rows: Sequence[Row]) -> Figure | None:
    """Shares of the three losses in a triangle, in which the borders of regions are straight lines."""
    shown = [row for row in rows if row["tasks"] == 3 and row["seed"] == 0 and row["stage"] == "final"]
    if not shown:
        return None
    figure, axes = grid(1, 3, len(shown), height=3.15)
    for axis, row in zip(axes, shown, strict=True):
        _draw_triangle(axis, row)
        released = ", released" if row["part"].endswith("released") else ""
        inside, near, count = row["in_region"], row["near_front"], row["preferences"]
        notes = (f"{inside} of {count} in their own region", f"{near} of {count} on the front")
        panel_title(axis, f"{count} {_kind(row)} vectors{released}", *notes)
    legend(figure)
    first = shown[0]
    add_caption(
        figure,
        f"With three losses, the front meets {first['reachable']} of {first['preferences']} {_kind(first)} regions",
        "A place in the triangle is each loss's share of the sum: at a corner, the other two are zero. Regions outside "
        "of the grey area hold no model of the front. Released models may leave their regions at the end.",
    )
    return figure


def _first_seeds(rows: Sequence[Row], wanted: Sequence[dict[str, Any]]) -> list[Row]:
    """For each set of fields the final row of the first seed, if there is one."""
    first = [row for row in rows if row["seed"] == 0 and row["stage"] == "final"]
    found = (next((row for row in first if fields.items() <= row.items()), None) for fields in wanted)
    return [row for row in found if row is not None]


def _plane(shown: Sequence[Row], *, height: float = 2.95, shape: float = 1.0) -> tuple[Figure, list[Axes]]:
    """Panels of two losses, three in a line, with the models of a row in each."""
    figure, axes = grid(-(-len(shown) // 3), 3, len(shown), height=height)
    for number, (axis, row) in enumerate(zip(axes, shown, strict=True)):
        _draw_models(axis, row)
        axis.set_box_aspect(shape)
        axis.set(xlabel="loss 1", ylabel="" if number % 3 else "loss 2")
    if shown[0]["method"] != "pareto-mtl":  # its rays begin where the arrow ends
        better_arrow(axes[0])
    return figure, axes


def _draw_models(axis: Axes, row: Row) -> None:
    """Draw the true front, the rays that models were asked for, and the models; crosses are outside of their region."""
    worst = torch.tensor(row["reference"], dtype=torch.float64)
    front = _truth(difficulties=[row["ratio"], 1.0]).front(400)
    axis.plot(*front.T.numpy(), **TRUTH)
    if row["method"] == "pareto-mtl":
        for x, y in row["vectors"]:
            axis.plot([0, 2 * float(worst.max()) * x], [0, 2 * float(worst.max()) * y], **RAY)
    points, inside = _models(row)
    _scatter(axis, points.T.numpy(), inside.numpy(), _shown_as(row))
    ends = [(-0.06 * end, 1.08 * end) for end in worst.tolist()]
    axis.set(xlim=ends[0], ylim=ends[1], xticks=[0, row["ratio"] / 2, row["ratio"]], yticks=[0, 0.5, 1])


def _scatter(axis: Axes, places: Any, inside: Any, method: str) -> None:
    """Draw models at places in the panel, as crosses if they are outside of their region."""
    point: dict[str, Any] = {"color": colour_of(method), "marker": marker_of(method), "edgecolor": "white", "s": 50}
    axis.scatter(*places[:, inside], linewidth=0.6, zorder=3, label="in its own region", **point)
    cross: dict[str, Any] = {"color": INK, "marker": "x", "s": 32}
    axis.scatter(*places[:, ~inside], linewidth=1.4, zorder=3, label="outside of its region", **cross)


def _name_front(axis: Axes) -> None:
    axis.text(0.68, 0.68, "true front", fontsize=SMALL, color=QUIET)


def _count_ends(axis: Axes, row: Row) -> None:
    """Write the number of models at either end of the front next to it: their points cover each other."""
    losses = torch.tensor(row["losses"])
    at_end = (losses <= _END * torch.tensor(row["reference"])).sum(0).tolist()
    places: list[dict[str, Any]] = [
        {"x": 0.06, "y": 1.0, "ha": "left", "va": "bottom"},
        {"x": 0.9, "y": 0.0, "ha": "right", "va": "center"},
    ]
    for count, place in zip(at_end, places, strict=True):
        axis.text(s=f"{count} models", fontsize=SMALL, color=INK, **place)


def _where(row: Row) -> str:
    """Where the models of a row are, in a few words."""
    words = "in their own region" if row["method"] == "pareto-mtl" else "in the middle"
    return f"{_placed(row)} of {row['preferences']} {words}"


def _placed(row: Row) -> int:
    """How many models are in their own region; for methods without regions, how many in the middle of the front."""
    if row["method"] == "pareto-mtl":
        return int(row["in_region"])
    least = (torch.tensor(row["losses"]) / torch.tensor(row["reference"])).min(-1).values
    return int((least > 0.5).sum())


def _share(row: Row) -> float:
    return _placed(row) / float(row["preferences"])


def _models(row: Row) -> tuple[Tensor, Tensor]:
    """The losses of the models, and whether each is in its own region; where there are no regions, all are."""
    points = torch.tensor(row["losses"], dtype=torch.float64)
    if row["method"] != "pareto-mtl":
        return points, torch.ones(len(points), dtype=torch.bool)
    return points, in_region(torch.tensor(row["vectors"], dtype=torch.float64), points)


def _draw_triangle(axis: Axes, row: Row) -> None:
    """Draw regions, the reach of the front and the models of a row by their shares of the sum of losses."""
    _draw_borders(axis, torch.tensor(row["vectors"], dtype=torch.float64))
    share = torch.linspace(0, 1, 101, dtype=torch.float64)
    edge = torch.stack([1 - share, share, torch.zeros_like(share)], -1)
    rim = _truth(tasks=3).point(torch.cat([edge.roll(turn, -1) for turn in range(3)]))
    axis.fill(*_place(rim), facecolor="0.87", edgecolor="0.62", linewidth=1.0, zorder=0, label="reach of the front")
    points, inside = _models(row)
    _scatter(axis, _place(points), inside.numpy(), row["method"])
    axis.set_aspect("equal")
    axis.set(xlim=(-0.04, 1.04), ylim=(-0.12, 0.94))
    axis.axis("off")
    for number, ((x, y), side) in enumerate(zip(_CORNERS.tolist(), ("left", "right", "center"), strict=True), start=1):
        name: dict[str, Any] = {"ha": side, "va": "bottom" if y > 0 else "top", "fontsize": SMALL}
        axis.text(x, y + math.copysign(0.03, y - 0.1), f"loss {number}", **name)


def _draw_borders(axis: Axes, vectors: Tensor) -> None:
    """Draw the region of each vector: the part of the triangle in which its product with the losses is the largest."""
    for number, vector in enumerate(vectors):
        region = torch.eye(3, dtype=torch.float64)
        for other in vectors:
            region = _cut(region, vector - other)
        label = "border of a region" if number == 0 else None
        axis.plot(*_place(torch.cat([region, region[:1]])), color="0.7", linewidth=0.7, zorder=1, label=label)


def _cut(polygon: Tensor, normal: Tensor) -> Tensor:
    """The part of a polygon on one side of a plane through the origin."""
    kept = []
    for start, end in zip(polygon, polygon.roll(-1, 0), strict=True):
        before, after = float(start @ normal), float(end @ normal)
        if before >= 0:
            kept.append(start)
        if before * after < 0:
            kept.append(start + (end - start) * before / (before - after))
    return torch.stack(kept) if kept else polygon[:0]


def _place(losses: Tensor) -> Any:
    """The places of losses in the triangle, as rows of x and y."""
    return ((losses / losses.sum(-1, keepdim=True)) @ _CORNERS).T.numpy()


def _truth(**options: Any) -> TrueFront:
    truth = synthetic(**options).truth
    assert truth is not None
    return truth


def _kind(row: Row) -> str:
    """Whether vectors begin at an axis, or are gathered around one of them."""
    return "even" if row["vectors"][0][0] == 1.0 else "gathered"


def _shown_as(row: Row) -> str:
    """The method that a row is shown as; the paper's figure 2 shows random weights as linear scalarization."""
    return "linear" if row["method"] == "random-search" else str(row["method"])


def _label(row: Row) -> str:
    return label_of(_shown_as(row))


FIGURES: dict[str, Draw] = {
    "synthetic-convergence": _draw_convergence,
    "synthetic-initialization": _draw_initialization,
    "synthetic-difficulty": _draw_difficulty,
    "synthetic-preferences": _draw_preferences,
    "synthetic-three-objectives": _draw_three_objectives,
}
