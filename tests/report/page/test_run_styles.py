"""Labels and colours of methods are those of the registry, on pages and in figures alike; symbols are seeds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import paretomtl as pm
from _helpers.pages import page_front
from paretomtl.methods.registry import METHODS, REGISTRY, colour_of
from paretomtl.report.page._page import payload_of
from paretomtl.report.page.run_styles import SYMBOLS, run_styles
from paretomtl.report.page.view import view_of

ASSETS = Path(pm.__file__).parent / "report" / "page" / "assets"
RUNS = st.lists(st.tuples(st.sampled_from(["mgda", "linear", "own", "auto"]), st.integers(0, 4)), max_size=12)


@pytest.mark.parametrize("method", METHODS)
def test_page_and_figure_show_a_method_as_the_registry_says(method: str) -> None:
    from matplotlib.colors import to_hex

    entry, shown = REGISTRY[method], page_front(5, 2, method=method)
    (style,) = payload_of([view_of(shown, "run", "run")])["styles"]
    assert style == {"label": entry.label, "colour": {"light": entry.colour, "dark": entry.dark}, "symbol": "circle"}
    figure = shown.plot()
    drawn = {to_hex(colour) for axis in figure.axes for part in axis.collections for colour in part.get_facecolor()}
    assert style["colour"]["light"] in drawn


@given(RUNS)
def test_a_colour_is_a_method(runs: list[tuple[str, int]]) -> None:
    for (method, _), style in zip(runs, run_styles(runs), strict=True):
        assert style["colour"] == {"light": colour_of(method), "dark": colour_of(method, dark=True)}


@given(RUNS)
def test_a_symbol_is_a_seed(runs: list[tuple[str, int]]) -> None:
    """Unless each method has one run: then symbols tell methods apart. Equal methods and seeds differ in symbols."""
    symbols = [style["symbol"] for style in run_styles(runs)]
    methods = [method for method, _ in runs]
    if len(set(methods)) == len(methods):
        assert len(set(symbols)) == len(symbols)
        return
    seeds = list(dict.fromkeys(seed for _, seed in runs))
    first = {run: symbols[r] for r, run in reversed(list(enumerate(runs)))}
    assert all(symbol == SYMBOLS[seeds.index(seed)] for (_, seed), symbol in first.items())
    for method in set(methods):
        own = [symbol for symbol, each in zip(symbols, methods, strict=True) if each == method]
        assert len(set(own)) == len(own) or len(own) + len(seeds) > len(SYMBOLS)


def test_no_colour_or_label_of_a_method_stands_in_a_script() -> None:
    scripts = "\n".join(path.read_text(encoding="utf-8") for path in ASSETS.glob("*.js")).lower()
    assert len(scripts) > 10_000
    for entry in REGISTRY.values():
        assert entry.colour not in scripts
        assert entry.label.lower() not in scripts


def test_every_symbol_is_the_same_in_two_and_three_dimensions() -> None:
    """Legends draw symbols themselves, and plotly has few of them in 3D."""
    script = (ASSETS / "style.js").read_text(encoding="utf-8")
    outlines = re.findall(r'^  "?([a-z-]+)"?: "M', script, re.MULTILINE)
    assert set(outlines) == set(SYMBOLS) == {"circle", "cross", "diamond", "square", "x"}


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
    css = (ASSETS / "page.css").read_text(encoding="utf-8")
    light, dark = re.findall(r"--paper: *(#[0-9a-f]{6})", css)[:2]
    assert contrast(colour_of(method), light) >= 2.7
    assert contrast(colour_of(method, dark=True), dark) >= 4.5
