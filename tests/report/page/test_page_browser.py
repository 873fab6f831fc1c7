"""The page in a real browser: any number of tasks and solutions, any names, any screen, paper, and bad news."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from _helpers.fronts import front_of
from _helpers.pages import page_front
from _helpers.screen import Opened, marked, settled, sides, text, two
from paretomtl.report.page import page_text, payload_of, read_views, view_of

pytestmark = pytest.mark.system
HOSTILE = (
    "<script>window.hit=1</script>",
    "$y$ <img src=x onerror=window.hit=1> \"q\" 'q' & %{x}",
    "שלום עולם",
    "long " * 60,
)


def test_three_tasks_in_space(open_page: Opened) -> None:
    page = open_page(view_of(page_front(15, ["digit", "bright", "parity"]), "run", "run"))
    assert page.locator("#space canvas").count() >= 1
    assert [page.locator(f"#pair{i} .scatterlayer .points path").count() for i in range(3)] == [16, 16, 16]
    for plot in (page.locator(f"#pair{i}") for i in range(3)):
        room = plot.bounding_box()
        for title in (plot.locator(f".g-{side}title").bounding_box() for side in "xy"):
            for start, size in (("x", "width"), ("y", "height")):
                assert room[start] - 1 <= title[start], "the name of an axis is not cut off"
                assert title[start] + title[size] <= room[start] + room[size] + 1
    page.locator("#space").focus()
    before = page.evaluate("() => document.querySelector('#space')._fullLayout.scene.camera.eye.x")
    page.keyboard.press("ArrowRight")
    page.wait_for_function("(x) => document.querySelector('#space')._fullLayout.scene.camera.eye.x !== x", arg=before)
    page.locator("#slider0").fill("1000")
    settled(page)
    assert page.evaluate(
        """() => {
            const { view, i } = marked();
            return lossesAt(view, "val", i)[0] < lossesAt(view, "val", balanced(view, "val"))[0];
        }"""
    )
    front = page_front(15, ["x", "y", "z"])
    for losses in front.losses.values():
        losses[1, 2] = 900.0  # far beyond the reference point
    page.evaluate("(payload) => render(payload)", payload_of([view_of(front, "run", "run")]))
    for beyond, count in ((False, 14), (True, 15)):
        page.evaluate("(beyond) => { change({ beyond }); pickSolution(0, 1); }", beyond)
        settled(page)
        rows, farthest = page.evaluate(
            """() => {
                const { data } = byId("space");
                const places = data.flatMap((trace) => trace.z).filter((at) => at !== null);
                return [data.flatMap((trace) => trace.customdata || []).length, Math.max(...places)];
            }"""
        )
        assert rows == count
        assert (farthest < 3.0) is not beyond, "nothing else stretches the space: neither the mark nor the rays"
        assert ("left out of the 3D view" in text(page, "#space-hint")) is not beyond


def test_losses_in_different_units_have_a_logarithmic_axis_until_somebody_chooses(show: Opened) -> None:
    front = page_front(4, ["sentiment", "language", "price", "seconds"])
    axis = "() => document.querySelector('#losses')._fullLayout.yaxis.type"
    for factor, kind in ((1.0, "linear"), (100.0, "log")):
        history = {**front.history, "losses": front.history["losses"] * torch.tensor([1.0, 1.0, factor, 1.0])}
        page = show(view_of(replace(front, history=history), "run", "run"))
        page.locator("#losses").scroll_into_view_if_needed()
        page.wait_for_function(f"(kind) => ({axis})() === kind", arg=kind)
        assert page.locator("[data-key='log']").is_checked() == (kind == "log")
    assert page.locator("svg.parallel .name").all_text_contents() == [f"{task}{task}\u0020loss" for task in front.tasks]
    page.locator("[data-key='log']").uncheck()
    page.wait_for_function(f"() => ({axis})() === 'linear'")


def test_five_tasks_with_brushes(show: Opened) -> None:
    view = view_of(page_front(25, 5), "run", "run")
    page = show(view)
    assert page.locator("svg.parallel .line").count() == 25
    catch = page.locator(".catch").first.bounding_box()
    x = catch["x"] + catch["width"] / 2
    page.mouse.move(x, catch["y"] + catch["height"] * 0.72)
    page.mouse.down()
    page.mouse.move(x, catch["y"] + catch["height"] + 4, steps=4)
    page.mouse.up()
    settled(page)
    low, high = page.evaluate("() => choices.brushes['loss:task 0']")
    inside = sum(low <= loss <= high for loss in view["values"]["val"]["loss:task 0"])
    assert 0 < inside < 25
    assert text(page, "#brushed") == f"Values on validation. {inside} of 25 solutions lie within the brushes."
    assert page.locator("svg.parallel .wide").count() == inside
    assert page.locator("#solutions tr.out").count() == 25 - inside
    page.locator("[data-key='brush-to-loss:task 1']").focus()
    page.keyboard.press("ArrowDown")
    settled(page)
    assert page.evaluate("() => Object.keys(choices.brushes).length") == 2
    assert page.evaluate("() => document.activeElement.dataset.key") == "brush-to-loss:task 1"
    page.locator("#clear-brushes").click()
    settled(page)
    line = page.locator(".wide").nth(3)
    r, i = map(int, line.get_attribute("data-solution").split("-"))
    line.dispatch_event("pointermove", {"clientX": 300, "clientY": 300})
    assert "direction (" in text(page, ".tip")
    line.dispatch_event("click")
    settled(page)
    assert page.evaluate("() => [marked().r, marked().i]") == [r, i]


@pytest.mark.parametrize("tasks", [2, 3, 5])
@pytest.mark.parametrize("count", [1, 125])
def test_one_and_many_solutions(show: Opened, tasks: int, count: int) -> None:
    page = show(view_of(page_front(count, tasks, epochs=3), "run", "run"))
    assert page.locator("#solutions tbody tr").count() == count
    assert page.locator("#plane .scatterlayer .points path").count() == count + 1
    said = text(page, "#words")
    assert ("only solution of this run" in said) == (count == 1)


@pytest.mark.parametrize("tasks", [2, 3, 5])
def test_names_are_text(open_page: Opened, tasks: int) -> None:
    names = [*HOSTILE, "plain"][:tasks]
    fronts = [page_front(4, names, problem=HOSTILE[0], method=HOSTILE[1]), page_front(4, names, method=HOSTILE[3])]
    page = open_page(*[view_of(f, name, name) for f, name in zip(fronts, HOSTILE[1:], strict=False)], title=HOSTILE[0])
    assert page.evaluate("() => window.hit") is None
    assert page.title() == HOSTILE[0]
    assert text(page, "h1") == HOSTILE[0]
    assert page.locator("h1 script, main script, main img").count() == 0
    assert shlex.split(page.inner_text("#command"))[2] == HOSTILE[1]
    page.evaluate(
        """() => {
            const own = document.querySelector("#plane").data.findIndex((trace) => trace.text && trace.x.length);
            Plotly.Fx.hover("plane", [{ curveNumber: own, pointNumber: 0 }]);
        }"""
    )
    if tasks == 3:
        shown = page.evaluate("() => document.querySelector('#space')._fullLayout.scene.xaxis.title.text")
        assert shown.replace("\u2060", "") == f"{HOSTILE[0]} loss"[:23] + "…, val", "space reads no entities"
        assert not re.search("<[a-z]", shown)
    if tasks == 2:
        assert HOSTILE[1][:40] in text(page, "#plane .hoverlayer")
    assert page.evaluate("() => window.hit") is None
    for width in (1280, 360):
        page.set_viewport_size({"width": width, "height": 800})
        page.wait_for_function("(width) => document.documentElement.scrollWidth <= width", arg=width)


def test_light_dark_and_the_toggle(open_page: Opened) -> None:
    def ground(page: Any) -> int:
        return sum(
            json.loads(
                page.evaluate("() => getComputedStyle(document.body).backgroundColor")
                .replace("rgb(", "[")
                .replace(")", "]")
            )
        )

    page = open_page(*two(), color_scheme="dark")
    assert ground(page) < 150
    page.locator("#theme").click()
    settled(page)
    assert ground(page) > 600
    light = open_page(*two(), color_scheme="light")
    assert ground(light) > 600


def test_paper_is_light_and_has_no_controls(open_page: Opened) -> None:
    page = open_page(*two(), color_scheme="dark", width=760)
    page.emulate_media(media="print")
    page.wait_for_function("() => document.documentElement.dataset.theme === 'light'")
    for selector in ("#theme", "#controls", "#sliders", "#copy", "#handle"):
        assert page.locator(selector).is_hidden()
    assert page.locator("#command").is_visible()
    assert sides(page)[0] <= 760
    assert page.evaluate("() => document.querySelector('#plane svg').getBoundingClientRect().width") <= 760
    assert len(page.pdf()) > 10_000


@pytest.mark.parametrize("tasks", [2, 5, 8])
def test_wide_tables_fit_on_paper(open_page: Opened, tasks: int) -> None:
    page = open_page(view_of(page_front(9, tasks), "run", "run"), width=718)  # A4
    page.emulate_media(media="print")
    for table in ("#solutions", "#runs"):
        assert page.evaluate("(name) => document.querySelector(name).getBoundingClientRect().right", table) <= 719


@pytest.mark.parametrize("tasks", [2, 3, 5])
def test_narrow_screens(show: Opened, tasks: int) -> None:
    page = show(view_of(page_front(9, tasks), "run", "run"), width=360)
    assert sides(page) == [360, 360]
    page.locator("#plane").scroll_into_view_if_needed()
    page.wait_for_function("() => document.querySelector('#plane .main-svg').getBoundingClientRect().right <= 360")


def test_runs_are_measured_against_each_other(show: Opened, tmp_path: Path) -> None:
    """Three more columns if runs share a problem, and a sentence that says what they mean; none on other pages."""
    assert "regret" not in text(show(*two()), "#runs")
    for number, method in enumerate(("linear", "mgda", "single-task")):
        front = page_front(5, 2)
        worse = {split: losses * (1 + 0.1 * number) for split, losses in front.losses.items()}
        replace(front, losses=worse, method=method).save(tmp_path / method)
    views = read_views([tmp_path / name for name in ("linear", "mgda", "single-task")])
    page = show(*views)
    heads = page.locator("#runs th").all_inner_texts()
    place = next(i for i, head in enumerate(heads) if head.startswith("regret"))
    split = {"test": "test", "val": "validation", "train": "training"}[views[0]["union"]["split"]]
    assert heads[place : place + 3] == [f"{name} on {split}" for name in ("regret", "R2", "IGD+")]
    rows = [row.locator("td").all_inner_texts()[place : place + 3] for row in page.locator("#runs tbody tr").all()]
    for cells, view in zip(rows[:2], views, strict=False):
        values = [view["union"][name] for name in ("regret", "r2", "igd_plus")]
        assert [float(cell) for cell in cells] == pytest.approx(values, abs=5e-5)
    assert rows[2] == ["–"] * 3, "separate networks are not a front"
    assert "Regret: what users with random utilities lose who choose from one run" in text(page, "#runs-hint")
    page.locator("#runs th button[data-key=runs-regret]").click()
    assert page.locator("#runs tbody tr").first.inner_text().startswith("linear")


def test_nothing_there_yet_and_then_something(show: Opened) -> None:
    full = two()[0]
    empty = {
        **full,
        "values": {},
        "nondominated": {},
        "in_region": {},
        "angles": {},
        "hypervolume": {},
        "state": "training",
        "epoch": 0,
        "epochs": 30,
    }
    empty["history"] = {"epochs": [], "losses": [], "weights": [], "val": None}
    page = show(empty)
    assert "There is nothing to show yet of first" in text(page, "#notices")
    assert page.locator("#main").is_hidden()
    page.evaluate("(view) => render({ ...payload, runs: [view] })", full)
    assert page.locator("#main").is_visible()
    assert text(page, "#notices") == ""
    assert marked(page)[0] == "first"


def test_what_cannot_be_chosen_is_said(show: Opened) -> None:
    lost = view_of(front_of([[torch.nan, 1.0], [torch.inf, 2.0]]), "lost", "lost")
    worse = view_of(front_of([[2.0, 2.0], [3.0, 3.0], [torch.nan, 1.0]]), "worse", "worse")
    best = view_of(front_of([[0.1, 1.0], [1.0, 0.1], [0.4, 0.4]], complete=False), "best", "best")
    page = show(lost)
    assert "No solution of lost has finite losses on training: there is nothing to draw or to choose." in text(
        page, "#notices"
    )
    assert "No solution is marked." in text(page, "#chosen")
    page = show(lost, worse, best)
    said = text(page, "#notices")
    assert "1 solution of worse has losses on training that are not finite, and is left out." in said
    assert "Subproblem 0 dominates all other solutions of worse on training: there is no trade-off to choose." in said
    assert "Every solution of worse is dominated by one of best on training." in said
    assert "best was stopped early, after 0 epochs." in said
    assert marked(page) == ("worse", 0)


def test_without_plotly_words_and_tables_are_there(browser: Any, tmp_path: Path) -> None:
    whole = page_text(payload_of(two()))
    start = whole.index("<script>/**")
    broken = whole[:start] + "<script>" + whole[whole.index("</script>", start) :]
    (tmp_path / "page.html").write_text(broken, encoding="utf-8")
    page = browser.new_page()
    page.goto((tmp_path / "page.html").as_uri())
    page.evaluate("() => refresh()")
    assert "This chart could not be drawn" in text(page, "#plane")
    assert page.locator("#solutions tbody tr").count() == 14
    assert "Against its neighbour" in text(page, "#words")
    page.close()
