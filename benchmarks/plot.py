"""How the cost of a step grows with the number of models: the figure of the documentation.

    python benchmarks/plot.py    # reads results/front-cuda.json, writes front-cuda.png, -dark.png and .svg there

Needs matplotlib (`pip install '.[figures]'`).
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

from paretomtl.compare import Row, load_rows
from paretomtl.paper.panels import grid, legend, panel_title
from paretomtl.report.figures.style import add_caption, figure_style, save_figure

RESULTS = Path(__file__).parent / "results"
STYLES: dict[str, tuple[str, str, str]] = {
    "paper": ("the paper's pattern", "#333333", "s"),
    "torchjd": ("TorchJD, MGDA", "#8e5ea2", "D"),
    "sequential": ("this library, one after another", "#c98a00", "v"),
    "sum": ("weighted sum, one after another", "#0b5fa5", "^"),
    "graphed": ("this library, as one graphed stack", "#c1272d", "o"),
}
COMPARED = 25  # models whose speeds the title has


def main() -> None:
    rows = [r for r in load_rows(RESULTS / "front-cuda.json") if r["precision"] == "float32" and r["milliseconds"]]
    first = {row["model"]: row["tasks"] for row in reversed(rows)}  # the first number of tasks of each network
    shown: dict[str, list[Row]] = {}
    for row in rows:
        if row["tasks"] == first[row["model"]]:
            shown.setdefault(row["model"], []).append(row)
    with figure_style():
        figure, axes = grid(2, 2, len(shown), height=2.5)
        for axis, (network, own) in zip(axes, shown.items(), strict=True):
            draw(axis, own)
            panel_title(axis, network, f"{own[0]['tasks']} tasks")
        for axis in axes[::2]:
            axis.set_ylabel("milliseconds")
        for axis in axes[2:]:
            axis.set_xlabel("models")
        legend(figure, columns=2)
        factors = [factor(own) for own in shown.values()]
        add_caption(
            figure,
            f"{COMPARED} models as one stack are {min(factors):.1f} to {max(factors):.0f} times as fast as in turn",
            f"Time of a step of all models on a batch of 256, in float32, on {rows[0]['hardware'].split(';')[0]}; both "
            "axes are logarithmic. The floor is the least that arithmetic and memory of this GPU allow.",
        )
        for path in save_figure(figure, RESULTS, "front-cuda"):
            print(path)


def factor(rows: list[Row]) -> float:
    """How many times as long the models take in turn as they take in one stack."""
    times = {row["contender"]: float(row["milliseconds"]) for row in rows if row["models"] == COMPARED}
    return times["sequential"] / times["graphed"]


def draw(axis: Any, rows: list[Row]) -> None:
    """Draw the lines of one network."""
    for name, (label, colour, marker) in STYLES.items():
        points = sorted((row["models"], row["milliseconds"]) for row in rows if row["contender"] == name)
        axis.plot(*zip(*points, strict=True), color=colour, marker=marker, markersize=5, linewidth=1.4, label=label)
    floor = sorted({(row["models"], row["floor_milliseconds"]) for row in rows})
    axis.plot(*zip(*floor, strict=True), color="0.6", linestyle=(0, (4, 3)), linewidth=1.2, label="floor")
    axis.set(xscale="log", yscale="log", xlim=(0.85, 150), ylim=(0.03, 3000))
    axis.set_xticks([1, 5, 25, 125], ["1", "5", "25", "125"])
    axis.set_yticks([0.1, 1, 10, 100, 1000], ["0.1", "1", "10", "100", "1000"])
    axis.minorticks_off()


if __name__ == "__main__":
    main()
