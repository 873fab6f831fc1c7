"""The style of all figures: sizes and fonts, dark pages, and readers who see fewer colours or none."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest
import torch
from matplotlib import pyplot
from PIL import Image

from _helpers.fronts import front_of
from _helpers.pages import page_front
from paretomtl.methods.registry import METHODS, REGISTRY, colour_of, marker_of, symbol_of
from paretomtl.report.figures.dark import PAPER, dark_colour, darken
from paretomtl.report.figures.style import SMALL, WIDTH, better_arrow, figure_style, plain, save_figure
from report.page.test_run_styles import contrast
from vision import KINDS, seen_by

mpl.use("Agg")
ROOT = Path(__file__).parents[3]
NEAR = 0.12  # of the linear light: colours that are nearer than this are told apart by their markers alone
DRAWN = [
    path
    for folder in ("docs", "benchmarks/results", "experiments/results")
    for path in sorted((ROOT / folder).rglob("*.png"))
    if not path.name.endswith("-sheet.png") and not path.name.startswith("explorer")
]


@pytest.fixture(autouse=True)
def closed() -> Any:
    yield
    pyplot.close("all")


def texts(figure: Any) -> list[Any]:
    return [text for text in figure.findobj(mpl.text.Text) if text.get_text().strip() and text.get_visible()]


@pytest.mark.parametrize("tasks", [2, 3, 5])
def test_figures_fit_a_page_and_can_be_read(tasks: int) -> None:
    figure = page_front(7, tasks).plot()
    assert figure.get_figwidth() <= WIDTH
    assert min(text.get_fontsize() for text in texts(figure)) >= SMALL
    assert {text.get_fontfamily()[0] for text in texts(figure)} <= {"sans-serif", "DejaVu Sans"}


@pytest.mark.parametrize("path", DRAWN, ids=lambda path: path.stem)
def test_stored_figures_fit_a_page_in_light_and_dark(path: Path) -> None:
    with Image.open(path) as image:
        dots = image.info["dpi"][0]
        assert image.width / dots < WIDTH + 0.6, "tight boxes may be a little wider than the panels"
        corner = "#{:02x}{:02x}{:02x}".format(*image.convert("RGB").getpixel((1, 1)))
    if path.stem.endswith("-dark"):
        assert contrast(corner, PAPER) < 1.02
    else:
        assert corner == "#ffffff"
        assert path.with_name(f"{path.stem}-dark.png") in DRAWN


def test_every_figure_of_the_documentation_has_this_style() -> None:
    """What pages show is what the test above looks at, or a picture of the explorer."""
    shown = set()
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(
            r"!\[[^\]]*\]\(([^)\s]+\.png)\)|\{figure\} (\S+\.png)", page.read_text(encoding="utf-8")
        ):
            shown.add((page.parent / (target[0] or target[1])).resolve())
    pictures = {path for path in shown if path.name.endswith("-sheet.png") or path.name.startswith("explorer")}
    assert shown - pictures <= set(DRAWN)


def test_pdf_files_embed_their_fonts(tmp_path: Path) -> None:
    page_front(5, 2).plot(tmp_path / "front.pdf")
    content = (tmp_path / "front.pdf").read_bytes()
    assert b"/FontFile2" in content, "TrueType, embedded"
    assert b"/Type3" not in content, "which publishers refuse"


@pytest.mark.parametrize("tasks", [2, 3, 5])
def test_a_dark_figure_has_the_colours_of_dark_pages(tasks: int) -> None:
    figure = page_front(6, tasks, method="pareto-mtl").plot(dark=True)
    assert mpl.colors.to_hex(figure.get_facecolor()) != "#ffffff"
    assert contrast(mpl.colors.to_hex(figure.get_facecolor()), PAPER) < 1.02
    for text in texts(figure):
        assert contrast(mpl.colors.to_hex(text.get_color()), PAPER) > 4, text
    drawn = {mpl.colors.to_hex(c) for axis in figure.axes for part in axis.collections for c in part.get_facecolor()}
    drawn |= {mpl.colors.to_hex(line.get_color()) for axis in figure.axes for line in axis.lines}
    assert colour_of("pareto-mtl", dark=True) in drawn
    assert colour_of("pareto-mtl") not in drawn


def test_boxes_arrows_legends_and_ticks_are_recoloured() -> None:
    with figure_style():
        figure, axis = pyplot.subplots()
        axis.plot([0, 1], [0, 1], color=colour_of("mgda"), label="line")
        axis.text(0.5, 0.5, "boxed", bbox={"facecolor": "white", "edgecolor": "black"})
        axis.annotate("arrow", (0, 0), (1, 1), arrowprops={"arrowstyle": "->", "color": "0.2"})
        figure.legend()
    darken(figure)
    boxed, arrow = axis.texts
    assert max(boxed.get_bbox_patch().get_facecolor()[:3]) < 0.15
    assert min(boxed.get_bbox_patch().get_edgecolor()[:3]) > 0.85
    assert min(arrow.arrow_patch.get_edgecolor()[:3]) > 0.7
    (line,) = figure.legends[0].get_lines()
    assert mpl.colors.to_hex(line.get_color()) == colour_of("mgda", dark=True)
    assert min(mpl.colors.to_rgb(axis.xaxis.get_major_ticks()[0].tick1line.get_color())) > 0.5
    assert max(figure.get_facecolor()[:3]) < 0.15
    assert max(axis.get_facecolor()[:3]) < 0.15


def test_light_becomes_dark_and_hues_stay() -> None:
    for grey in (0.0, 0.3, 0.62, 0.93, 1.0):
        lighter, darker = dark_colour((grey, grey, grey, 1.0))[0], dark_colour((min(1, grey + 0.05),) * 3 + (1.0,))[0]
        assert lighter >= darker, "the order of greys is turned"
    red, green, blue, alpha = dark_colour((0.7, 0.1, 0.1, 0.5))
    assert red > max(green, blue)
    assert alpha == 0.5


def test_the_same_figure_has_the_same_bytes(tmp_path: Path) -> None:
    with figure_style():
        first, second = (save_figure(page_front(5, 2).plot(), tmp_path / name, "x") for name in ("one", "two"))
    assert [path.name for path in first] == ["x.png", "x-dark.png", "x.svg"]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


@pytest.mark.parametrize("losses", [[[0.0, 1.0], [1.0, 0.0]], [[0.05, 0.05], [0.06, 0.9], [0.9, 0.06]]])
def test_the_arrow_covers_no_model(losses: list[list[float]]) -> None:
    figure = front_of(losses).plot()
    (axis,) = figure.axes
    figure.canvas.draw()
    word = next(text for text in axis.texts if text.get_text() == "better")
    box = word.get_window_extent()
    for part in axis.collections:
        x, y = axis.transData.transform(part.get_offsets()[0])
        assert not (box.x0 <= x <= box.x1 and box.y0 <= y <= box.y1)
    better_arrow(axis, (0.9, 0.9), (0.7, 0.7))


@pytest.mark.parametrize("kind", [*KINDS, "grey"])
@pytest.mark.parametrize("dark", [False, True])
def test_methods_are_told_apart_with_any_eyes(kind: str, dark: bool) -> None:
    """Two methods that look alike have different markers, and all stand out from the background."""
    paper = PAPER if dark else "#ffffff"
    colours = {method: seen_by(kind, colour_of(method, dark=dark)) for method in METHODS}
    for one, other in itertools.combinations(METHODS, 2):
        apart = torch.dist(
            torch.tensor(mpl.colors.to_rgb(colours[one])), torch.tensor(mpl.colors.to_rgb(colours[other]))
        )
        assert apart > NEAR or marker_of(one) != marker_of(other)
    assert all(contrast(colour, seen_by(kind, paper)) >= 2.4 for colour in colours.values())


def test_every_marker_is_used_once_and_has_a_name_in_plotly() -> None:
    assert len({entry.marker for entry in REGISTRY.values()}) == len(REGISTRY)
    assert len({symbol_of(method) for method in METHODS}) == len(METHODS)
    assert symbol_of("mine") == "x"


def test_names_are_text() -> None:
    assert plain("a$b") == r"a\$b"
    assert len(plain("x" * 100)) == 32
