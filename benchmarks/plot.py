"""How the cost of a step grows with the number of models: the figure of the documentation.

    python benchmarks/plot.py                 # reads benchmarks/results/front-cuda.json, writes front-cuda.png and .svg

Needs matplotlib (`pip install '.[figures]'`).
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

import matplotlib.pyplot as plt

from paretomtl.compare import Row, load_rows
from paretomtl.report.figures.style import paper_style, save_figure

RESULTS = Path(__file__).parent / "results"
STYLES: dict[str, tuple[str, str, str]] = {
    "graphed": ("this library, graphed", "#c1272d", "o"),
    "sequential": ("this library, one after another", "#c98a00", "v"),
    "paper": ("the paper's pattern", "#333333", "s"),
    "torchjd": ("TorchJD, MGDA", "#8e5ea2", "D"),
    "sum": ("weighted sum, one after another", "#0b5fa5", "^"),
}


def main() -> None:
    rows = [r for r in load_rows(RESULTS / "front-cuda.json") if r["precision"] == "float32" and r["milliseconds"]]
    networks = list(dict.fromkeys(row["model"] for row in rows))
    with paper_style():
        figure, axes = plt.subplots(1, len(networks), figsize=(3.1 * len(networks), 3.0), sharey=True)
        for axis, network in zip(axes, networks, strict=True):
            draw(axis, network, [row for row in rows if row["model"] == network])
        axes[0].set_ylabel("milliseconds a step of all models")
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="upper center", ncols=3, bbox_to_anchor=(0.5, 1.14))
        for path in save_figure(figure, RESULTS, "front-cuda"):
            print(path)


def draw(axis: Any, network: str, rows: list[Row]) -> None:
    tasks = rows[0]["tasks"]
    mine = [row for row in rows if row["tasks"] == tasks]
    for name, (label, colour, marker) in STYLES.items():
        points = sorted((row["models"], row["milliseconds"]) for row in mine if row["contender"] == name)
        axis.plot(*zip(*points, strict=True), color=colour, marker=marker, markersize=4, linewidth=1.2, label=label)
    floor = sorted({(row["models"], row["floor_milliseconds"]) for row in mine})
    axis.plot(*zip(*floor, strict=True), color="0.6", linestyle=(0, (4, 3)), linewidth=1.0, label="floor")
    axis.set(xscale="log", yscale="log", xlabel="models", title=f"{network}, {tasks} tasks")
    axis.set_xticks([1, 5, 25, 125], ["1", "5", "25", "125"])
    axis.minorticks_off()


if __name__ == "__main__":
    main()
