"""The style of all figures: sans, legible at the width of a web page, in light and dark, without colour vision."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paretomtl._support.files.atomic_files import whole_file
from paretomtl._support.imports.optional_packages import require
from paretomtl._support.terminal import escaped
from paretomtl._support.text import shorten
from paretomtl.report.figures.dark import darken

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH = 7.6
"""The widest figure in inches: a column of text on a web page is about 730 pixels wide, and a pixel is 1/96 inch."""
SMALL = 8.0
"""The smallest text in points, about 11 pixels: legends, and words next to data."""
INK, QUIET = "0.13", "0.4"
"""The colours of text, and of captions and notes."""
TRUTH: dict[str, Any] = {"color": "0.62", "linewidth": 1.4, "zorder": 1}
RAY: dict[str, Any] = {"color": "0.78", "linewidth": 0.7, "linestyle": (0, (5, 3)), "zorder": 0}

Place = tuple[float, float]
"""A place in a panel: its shares of width and height."""

_DPI = 200
_COLOURS = 255  # of a PNG file


@contextmanager
def figure_style() -> Iterator[None]:
    """Apply the settings of the library's figures, and restore the old ones afterwards.

    DejaVu Sans comes with matplotlib, so a figure is the same on every machine. PDF files embed it.
    """
    matplotlib = require("matplotlib", "figures")
    settings = {
        "font.family": "sans-serif",
        "font.sans-serif": ["DejaVu Sans"],
        "mathtext.fontset": "dejavusans",
        "font.size": 9,
        "text.color": INK,
        "axes.labelcolor": INK,
        "axes.edgecolor": QUIET,
        "axes.labelsize": 9,
        "axes.titlesize": 9.5,
        "axes.titleweight": "bold",
        "axes.titlelocation": "left",
        "axes.linewidth": 0.8,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "figure.titlesize": 10.5,
        "figure.titleweight": "bold",
        "xtick.color": QUIET,
        "ytick.color": QUIET,
        "xtick.labelcolor": INK,
        "ytick.labelcolor": INK,
        "xtick.labelsize": SMALL,
        "ytick.labelsize": SMALL,
        "xtick.major.width": 0.8,
        "ytick.major.width": 0.8,
        "legend.frameon": False,
        "legend.fontsize": SMALL,
        "legend.title_fontsize": SMALL,
        "pdf.fonttype": 42,
        "ps.fonttype": 42,
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
    return shorten(escaped(name, lines=False), most).replace("$", r"\$")


def add_caption(figure: Figure, title: str, text: str, width: float | None = None) -> None:
    """Write a title and, below it, a caption that says what is seen, above all panels.

    Args:
        figure: with the constrained layout, which makes room.
        title: in bold; names of users must be :func:`plain` already.
        text: a sentence or two, wrapped to the width.
        width: that of the text in inches; by default that of the figure.
    """
    letters = int(14.8 * (width or figure.get_figwidth()))  # of the caption's font in an inch
    lines = textwrap.wrap(text, letters)
    inches = 0.32 + 0.165 * len(lines)
    height = figure.get_figheight() + inches
    figure.set_figheight(height)
    engine: Any = figure.get_layout_engine()
    engine.set(rect=(0, 0, 1, 1 - inches / height))
    figure.text(0.012, 1 - 0.06 / height, title, ha="left", va="top", fontsize=10.5, fontweight="bold")
    style: dict[str, Any] = {"ha": "left", "va": "top", "fontsize": 8.5, "color": QUIET, "linespacing": 1.35}
    figure.text(0.012, 1 - 0.29 / height, "\n".join(lines), **style)


def better_arrow(axis: Any, corner: Place | None = None, start: Place = (0.2, 0.2)) -> None:
    """Draw an arrow to where both axes are better, with the word "better".

    Args:
        axis: where to draw; its limits and its points must be there already.
        corner: the tip of the arrow. By default it points to the lower left, from a place without points.
        start: the other end.
    """
    if corner is None:
        corner, start = _free_place(axis)
    arrow = {"arrowstyle": "-|>", "color": QUIET, "linewidth": 1.0, "shrinkA": 0, "shrinkB": 0}
    place: dict[str, Any] = {"xycoords": "axes fraction", "textcoords": "axes fraction"}
    axis.annotate("better", corner, start, fontsize=SMALL, color=QUIET, arrowprops=arrow, zorder=1.5, **place)


_PLACES: tuple[tuple[Place, Place], ...] = (
    ((0.05, 0.05), (0.2, 0.2)),
    ((0.74, 0.74), (0.87, 0.88)),
    ((0.44, 0.74), (0.57, 0.88)),
    ((0.74, 0.44), (0.87, 0.58)),
)


def _free_place(axis: Any) -> tuple[Place, Place]:
    """Return the first place for an arrow that covers no point; the second one if each covers some."""
    points = [
        tuple(axis.transAxes.inverted().transform(axis.transData.transform(offset)))
        for each in axis.collections
        for offset in each.get_offsets()
    ]
    for tip, start in _PLACES:
        (left, low), (right, high) = (tip[0] - 0.06, tip[1] - 0.06), (start[0] + 0.2, start[1] + 0.1)
        if not any(left <= x <= right and low <= y <= high for x, y in points):
            return tip, start
    return _PLACES[1]


def save_figure(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Write a figure for light and for dark pages as PNG, and as SVG; the same figure gives the same bytes.

    The figure itself is dark afterwards.
    """
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}.png", folder / f"{name}-dark.png", folder / f"{name}.svg"]
    figure.savefig(paths[2], bbox_inches="tight", metadata={"Date": None, "Creator": None})
    _save_png(figure, paths[0])
    darken(figure)
    _save_png(figure, paths[1])
    return paths


def check_figure_file(name: str, path: Path) -> None:
    """Refuse a file whose suffix is no format of matplotlib, which must be installed."""
    known = require("matplotlib.figure", "figures").Figure().canvas.get_supported_filetypes()
    if path.suffix.removeprefix(".").lower() not in known:
        formats = ", ".join(f".{each}" for each in sorted(known))
        raise ValueError(f"'{name}' must end in one of {formats}. Got '{path}'.")


def finish_figure(figure: Figure, path: Path | None, *, dark: bool) -> None:
    """Recolour a figure if it is dark; write it in the format of the path's suffix, and close it, if there is a path.

    The same figure gives the same bytes.
    """
    pyplot = require("matplotlib.pyplot", "figures")
    if dark:
        darken(figure)
    if path is None:
        return
    try:
        check_figure_file("path", path)
        kind = path.suffix.removeprefix(".").lower()
        without = {"png": ["Software"], "svg": ["Date", "Creator"], "pdf": ["CreationDate", "Creator", "Producer"]}
        options: dict[str, Any] = {"bbox_inches": "tight", "metadata": dict.fromkeys(without.get(kind, [])) or None}
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=_DPI, facecolor=figure.get_facecolor(), **options)
    finally:
        pyplot.close(figure)


def _save_png(figure: Figure, path: Path) -> None:
    """Write a PNG file with a palette, a third of the size of one without."""
    image = require("PIL.Image", "figures")
    raw = BytesIO()
    figure.savefig(raw, format="png", dpi=_DPI, bbox_inches="tight", facecolor=figure.get_facecolor())
    with image.open(raw) as full, whole_file(path) as file:
        small = full.convert("RGB").quantize(_COLOURS, dither=image.Dither.NONE)
        small.save(file, "png", optimize=True, dpi=(_DPI, _DPI))
