"""The figure of docs/cheaper-fronts.md: what a branch and an average change, from the stored benchmark.

python docs/cheaper.py    # writes docs/cheaper-fronts.png; seconds
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent / "src"), str(HERE)]

from cheaper_tables import rows_of, variant  # noqa: E402

from paretomtl.report.figures.style import paper_style  # noqa: E402

COLOURS = {"constant": "tab:blue", "cosine": "tab:orange"}


def main() -> None:
    """Draw the figure."""
    with paper_style():
        figure, axis = pyplot.subplots(figsize=(6.4, 2.9), layout="constrained")
        names: list[str] = []
        for shift, (rate, colour) in zip((0.14, -0.14), COLOURS.items(), strict=True):
            found = [row for row in rows_of("test", rate) if "difference" in row]
            names = [variant(row) for row in found] if len(found) > len(names) else names
            for row in found:
                height = len(names) - 1 - names.index(variant(row)) + shift
                label = f"{rate} learning rate" if row is found[0] else None
                axis.errorbar(row["difference"], height, xerr=row["half_width"], fmt="o", color=colour, label=label)
        axis.axvline(0.0, color="0.6", linewidth=0.8, zorder=0)
        axis.set_yticks(range(len(names)), names[::-1])
        axis.set_xlabel("hypervolume on test, less that of a plain run (10 paired seeds, 95 %)")
        axis.legend(loc="upper right", fontsize=8)
        figure.savefig(HERE / "cheaper-fronts.png", dpi=150)


if __name__ == "__main__":
    main()
