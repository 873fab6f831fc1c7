"""Labels, colours and markers of methods are those of the registry, on pages and in figures alike."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import paretomtl as pm
from _helpers.pages import page_front
from paretomtl.methods.registry import METHODS, REGISTRY, colour_of
from paretomtl.report.page._page import payload_of
from paretomtl.report.page.run_styles import SYMBOLS, run_styles
from paretomtl.report.page.view import view_of

PAGE = Path(pm.__file__).parent / "report" / "page"


@pytest.mark.parametrize("method", METHODS)
def test_page_and_figure_show_a_method_as_the_registry_says(method: str) -> None:
    from matplotlib.colors import to_hex

    entry, shown = REGISTRY[method], page_front(5, 2, method=method)
    (style,) = payload_of([view_of(shown, "run", "run")])["styles"]
    assert style == {
        "label": entry.label,
        "colour": {"light": entry.colour, "dark": entry.dark},
        "symbol": SYMBOLS[entry.marker],
    }
    figure = shown.plot()
    drawn = {to_hex(colour) for axis in figure.axes for part in axis.collections for colour in part.get_facecolor()}
    assert style["colour"]["light"] in drawn


def test_runs_of_one_method_are_told_apart() -> None:
    styles = run_styles(["pareto-mtl"] * 70)
    looks = [(style["colour"]["light"], style["symbol"]) for style in styles]
    assert looks[0] == (REGISTRY["pareto-mtl"].colour, "circle")
    assert len({colour for colour, _ in looks[:8]}) == len({symbol for _, symbol in looks[:8]}) == 8
    assert len(set(looks[:64])) == 64
    assert {style["label"] for style in styles} == {"Pareto MTL"}


def test_a_method_keeps_its_colour_whatever_else_is_on_the_page() -> None:
    styles = run_styles(["own", "mgda", "mgda", "own", "linear"])
    colours = [style["colour"]["light"] for style in styles]
    assert [colours[0], colours[1], colours[4]] == [colour_of("own"), colour_of("mgda"), colour_of("linear")]
    assert len(set(colours)) == 5
    assert styles[0]["label"] == "own"


def test_no_colour_or_label_of_a_method_stands_in_a_script() -> None:
    scripts = "\n".join(path.read_text(encoding="utf-8") for path in PAGE.glob("*.js")).lower()
    for entry in REGISTRY.values():
        assert entry.colour not in scripts
        assert entry.label.lower() not in scripts


def test_every_symbol_has_an_outline_and_a_shape_in_space() -> None:
    """Legends draw symbols themselves, and plotly has few of them in 3D."""
    script = (PAGE / "style.js").read_text(encoding="utf-8")
    outlines = re.findall(r'^  "?([a-z-]+)"?: "M', script, re.MULTILINE)
    assert set(outlines) == set(SYMBOLS.values())
    spatial = dict(re.findall(r'"?([a-z-]+)"?: "([a-z]+)"', script.partition("SPACE_SHAPES = {")[2].partition("}")[0]))
    assert {spatial.get(symbol, symbol) for symbol in SYMBOLS.values()} <= {"circle", "cross", "diamond", "square", "x"}


def contrast(one: str, other: str) -> float:
    """The contrast of two colours, as the guidelines for accessible pages define it."""

    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    bright, dim = sorted((luminance(one), luminance(other)), reverse=True)
    return (bright + 0.05) / (dim + 0.05)


@pytest.mark.parametrize("method", [*METHODS, "own"])
def test_colours_stand_out_on_light_and_on_dark_pages(method: str) -> None:
    css = (PAGE / "page.css").read_text(encoding="utf-8")
    light, dark = re.findall(r"--paper: *(#[0-9a-f]{6})", css)[:2]
    assert contrast(colour_of(method), light) >= 2.7
    assert contrast(colour_of(method, dark=True), dark) >= 4.5
