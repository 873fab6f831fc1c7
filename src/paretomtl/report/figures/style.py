"""The style of figures: like those of a paper, readable in print and without colour vision."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paretomtl._support.imports.optional_packages import require
from paretomtl._support.terminal import escaped
from paretomtl._support.text import shorten

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SMALL = 8.5  # points: text in legends and next to data
TRUTH: dict[str, Any] = {"color": "0.62", "linewidth": 1.4, "zorder": 1}
RAY: dict[str, Any] = {"color": "0.8", "linewidth": 0.6, "linestyle": (0, (5, 3)), "zorder": 0}


@contextmanager
def paper_style() -> Iterator[None]:
    """Apply the settings of the library's figures, and restore the old ones afterwards."""
    matplotlib = require("matplotlib", "figures")
    settings = {
        "font.family": "serif",
        "font.serif": ["STIXGeneral", "DejaVu Serif"],
        "mathtext.fontset": "stix",
        "font.size": 10,
        "axes.titlesize": 10.5,
        "axes.linewidth": 0.7,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "xtick.direction": "out",
        "xtick.major.width": 0.7,
        "ytick.major.width": 0.7,
        "legend.frameon": False,
        "svg.hashsalt": "paretomtl",
        "svg.fonttype": "path",
    }
    with matplotlib.rc_context(settings):
        yield


def plain(name: str, most: int = 32) -> str:
    r"""Make a user's name plain text for a figure: cut it if it is long, and escape dollars, which begin formulas.

    Characters that do not print are escaped as in Python: fonts have no glyph for them, and half of a surrogate
    pair is an error.

    Example:
        >>> plain("cost in $", 8)
        'cost in…'
        >>> plain("$x")
        '\\$x'
    """
    return shorten(escaped(name), most).replace("$", r"\$")


def save_figure(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Write a figure as PNG and as SVG; the same figure gives the same bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}.png", folder / f"{name}.svg"]
    figure.savefig(paths[0], dpi=200, bbox_inches="tight", metadata={"Software": None})
    figure.savefig(paths[1], bbox_inches="tight", metadata={"Date": None, "Creator": None})
    return paths
