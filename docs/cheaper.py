"""The figure of docs/evidence/cheaper-fronts.md: what a branch and an average change, from the stored benchmark.

python docs/cheaper.py    # writes docs/cheaper-fronts.png and docs/cheaper-fronts-dark.png; seconds
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent / "src"), str(HERE)]

from cheaper_tables import rows_of, variant  # noqa: E402

from paretomtl.paper.panels import grid, legend, name_lines  # noqa: E402
from paretomtl.report.figures.style import QUIET, add_caption, figure_style, save_figure  # noqa: E402

BLUE = "#2f6db5"
LOOKS: dict[str, dict[str, Any]] = {
    "constant": {"marker": "o", "markerfacecolor": BLUE},
    "cosine": {"marker": "s", "markerfacecolor": "white"},
}


def main() -> None:
    """Draw the figure."""
    found = {rate: [row for row in rows_of("test", rate) if "difference" in row] for rate in LOOKS}
    names = list(dict.fromkeys(variant(row) for rows in found.values() for row in rows))[::-1]
    with figure_style():
        figure, (axis,) = grid(1, 1, height=2.9)
        name_lines(axis, names)
        for shift, (rate, rows) in zip((0.16, -0.16), found.items(), strict=True):
            places = {"y": [names.index(variant(row)) + shift for row in rows]}
            means = {"x": [row["difference"] for row in rows], "xerr": [row["half_width"] for row in rows]}
            style: dict[str, Any] = {"color": BLUE, "linestyle": "none", "markersize": 6, "elinewidth": 1.6}
            axis.errorbar(**means, **places, **style, **LOOKS[rate], label=f"{rate} learning rate")
        axis.axvline(0.0, color=QUIET, linewidth=1.0, zorder=1)
        axis.set_xlabel("hypervolume on test, less that of a plain front")
        legend(figure)
        averages = [row["difference"] for row in found["constant"] if row["average"] and not row["branch"]]
        add_caption(
            figure,
            f"With a constant learning rate, averages gain {min(averages):.2f} to {max(averages):.2f} of hypervolume",
            f"Differences to a front without options, paired by seed: means of {found['constant'][0]['seeds']} seeds "
            "with 95 % intervals. Right of the line is better.",
        )
        save_figure(figure, HERE, "cheaper-fronts")


if __name__ == "__main__":
    main()
