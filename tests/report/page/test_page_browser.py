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


def test_three_tasks_in_pairs_and_in_space(open_page: Opened) -> None:
    page = open_page(view_of(page_front(15, ["digit", "bright", "parity"]), "run", "run"))
    assert page.locator("#space").is_hidden(), "projections come first"
    assert [page.locator(f"#pair{i} .scatterlayer .points path").count() for i in range(3)] == [16, 16, 16]
    for plot in (page.locator(f"#pair{i}") for i in range(3)):
        room = plot.bounding_box()
        for title in (plot.locator(f".g-{side}title").bounding_box() for side in "xy"):
            for start, size in (("x", "width"), ("y", "height")):
                assert room[start] - 1 <= title[start], "the name of an axis is not cut off"
                assert title[start] + title[size] <= room[start] + room[size] + 1
    page.locator("#tab-pairs").focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_selector("#space canvas")
    settled(page)
    assert page.locator("#pairs").is_hidden()
    page.locator("#space").focus()
    before = page.evaluate("() => document.querySelector('#space')._fullLayout.scene.camera.eye.x")
    page.keyboard.press("ArrowRight")
    page.wait_for_function("(x) => document.querySelector('#space')._fullLayout.scene.camera.eye.x !== x", arg=before)
    front = page_front(15, ["x", "y", "z"])
    for losses in front.losses.values():
        losses[1, 2] = 900.0  # far beyond the reference point
    page.evaluate("(payload) => render(payload)", payload_of([view_of(front, "run", "run")]))
    for outliers, count in ((False, 14), (True, 15)):
        page.evaluate("(outliers) => { change({ outliers, kind: 'losses' }); pickModel(0, 1); }", outliers)
        settled(page)
        rows, farthest = page.evaluate(
            """() => {
                const { data } = byId("space");
                const places = data.flatMap((trace) => trace.z).filter((at) => at !== null);
                return [data.flatMap((trace) => trace.customdata || []).length, Math.max(...places)];
            }"""
        )
        assert rows == count
        assert (farthest < 3.0) is not outliers, "nothing else stretches the space: neither the mark nor the targets"
        assert ("Outliers are left out" in text(page, "#plane-hint")) is not outliers


def test_losses_in_different_units_have_a_logarithmic_axis_until_somebody_chooses(show: Opened) -> None:
    front = page_front(4, ["sentiment", "language", "price", "seconds"])
    axis = "() => document.querySelector('#losses')._fullLayout?.yaxis.type"
    for factor, kind in ((1.0, "linear"), (100.0, "log")):
        history = {**front.history, "losses": front.history["losses"] * torch.tensor([1.0, 1.0, factor, 1.0])}
        page = show(view_of(replace(front, history=history), "run", "run"))
        page.locator("#losses").scroll_into_view_if_needed()
        page.wait_for_function(f"(kind) => ({axis})() === kind", arg=kind)
        assert page.locator("[data-key='log']").is_checked() == (kind == "log")
    page.locator("[data-key='log']").uncheck()
    page.wait_for_function(f"() => ({axis})() === 'linear'")


def test_many_tasks_side_by_side(show: Opened) -> None:
    """Best is up, names are whole, other runs are faded, lines take the colour of an axis, axes move."""
    names = ["clicks", "watch time", "shares of friends", "negative feedback"]
    first = page_front(9, names)
    first = replace(
        first,
        metrics={split: {**kept, "cost": kept["clicks accuracy"] * 90.0} for split, kept in first.metrics.items()},
        better={**first.better, "cost": "lower"},
    )
    other = page_front(9, names, shift=0.2, method="linear", reading="importance")
    page = show(view_of(first, "run", "run"), view_of(other, "other", "other"))
    tops = page.evaluate(
        """() => Object.fromEntries(parallelScales(parallelNames("val"), visibleRuns(), "val").map((scale) =>
            [scale.name, [scale.place(scale.best) < scale.place(scale.worst), scale.best < scale.worst]]))"""
    )
    assert tops == {**{f"{name} accuracy": [True, False] for name in names}, "cost": [True, True]}
    words = [" ".join(label.locator("tspan").all_text_contents()) for label in page.locator("svg.parallel .name").all()]
    assert words == [*(f"{name} accuracy" for name in names), "cost"], "no name is cut"
    faded = page.evaluate(
        """() => [0, 1].map((r) => Math.max(...[...document.querySelectorAll(`svg.parallel [data-line^="${r}-"]`)]
            .map((line) => Number(line.getAttribute("stroke-opacity")))))"""
    )
    assert faded[1] < 0.4 < faded[0]
    strokes = "() => [...document.querySelectorAll('svg.parallel .line')].map((line) => line.getAttribute('stroke'))"
    assert len(set(page.evaluate(strokes))) == 3, "two methods and the mark"
    page.locator("#colour").select_option("cost")
    settled(page)
    assert len(set(page.evaluate(strokes))) > 5
    page.locator("[data-key='axis-cost']").focus()
    page.keyboard.press("ArrowLeft")
    settled(page)
    assert page.evaluate("() => parallelNames('val')[3]") == "cost"
    assert page.evaluate("() => document.activeElement.dataset.key") == "axis-cost"
    source = page.locator("[data-key='axis-cost']").bounding_box()
    target = page.locator("[data-key='axis-clicks accuracy']").bounding_box()
    page.mouse.move(source["x"] + 5, source["y"] + 5)
    page.mouse.down()
    page.mouse.move(target["x"] + 5, target["y"] + 5, steps=5)
    page.mouse.up()
    settled(page)
    assert page.evaluate("() => parallelNames('val')") == ["cost", *(f"{name} accuracy" for name in names)]
    line = page.locator(".wide").nth(3)
    r, i = map(int, line.get_attribute("data-model").split("-"))
    line.dispatch_event("pointermove", {"clientX": 300, "clientY": 300})
    assert "favours: " in text(page, "#tip")
    line.dispatch_event("click")
    settled(page)
    assert page.evaluate("() => [marked().r, marked().i]") == [r, i]
    page.locator("#kind input[value=losses]").check()
    settled(page)
    page.locator("#show-targets").check()
    settled(page)
    assert page.locator("svg.parallel .target").count() == 1


@pytest.mark.parametrize("tasks", [2, 3, 5])
def test_targets_lie_on_the_rays(show: Opened, tasks: int) -> None:
    """The target of a model is the point of its ray that is nearest to its losses, for any number of tasks."""
    scale = torch.rand(6, tasks, generator=torch.Generator().manual_seed(0)).double() + 0.5
    front = replace(page_front(6, tasks), scale=scale, ideal=(0.01,) * tasks)
    view = view_of(front, "run", "run")
    page = show(view)
    for i in range(6):
        target = torch.tensor(page.evaluate("(i) => targetOf(marked().view, 'val', i)", i)).double()
        along = (target - 0.01) * scale[i]
        assert torch.allclose(along / along.norm(), front.preferences[i] / front.preferences[i].norm(), atol=1e-4)
        losses = front.losses["val"][i]
        ray = front.preferences[i] / scale[i]
        assert abs(float((losses - target) @ ray)) < 1e-5, "no point of the ray is nearer"


@pytest.mark.parametrize("tasks", [2, 3, 5])
@pytest.mark.parametrize("count", [1, 125])
def test_one_and_many_solutions(show: Opened, tasks: int, count: int) -> None:
    page = show(view_of(page_front(count, tasks, epochs=3), "run", "run"))
    assert page.locator("#models tbody tr").count() == count
    assert page.locator(f"{'#pair0' if tasks == 3 else '#plane'} .scatterlayer .points path").count() == count + 1
    assert ("only model of this run" in text(page, "#words")) == (count == 1)
    assert text(page, "#headline").startswith("Recommended: model ")
    assert (text(page, "#why") == "It is the only model.") == (count == 1)


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
    page.evaluate("() => showTip(0, 0, {})")
    assert HOSTILE[1][:40] in text(page, "#tip")
    if tasks == 3:
        page.locator("#tab-space").click()
        page.wait_for_function("() => document.querySelector('#space')._fullLayout?.scene?.xaxis.title")
        shown = page.evaluate("() => document.querySelector('#space')._fullLayout.scene.xaxis.title.text")
        assert shown.replace("\u2060", "") == f"{HOSTILE[0]} accuracy"[:23] + "…, val", "space reads no entities"
        assert not re.search("<[a-z]", shown)
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
    for selector in ("#theme", "#controls", "#sliders", "#limits", "#copy", "#bar"):
        assert page.locator(selector).is_hidden()
    assert page.locator("#command").is_visible()
    assert sides(page)[0] <= 760
    assert page.evaluate("() => document.querySelector('#plane svg').getBoundingClientRect().width") <= 760
    assert len(page.pdf()) > 10_000


@pytest.mark.parametrize("tasks", [2, 3, 5])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_charts_are_whole_in_a_pdf_that_a_program_makes(open_page: Opened, tasks: int, scheme: str) -> None:
    """Nobody scrolled before, and the window is wider than A4: every chart is drawn, light, and fits the paper."""
    page = open_page(view_of(page_front(9, tasks), "run", "run"), width=1440, color_scheme=scheme)
    page.evaluate(
        """() => window.addEventListener("beforeprint", () => {
            const drawn = (id) => byId(id).querySelectorAll(".main-svg").length > 0;
            window.paper = {
                theme: theme(),
                charts: [...document.querySelectorAll(".plot")].filter((one) => one.checkVisibility())
                    .map(({ id }) => [id, drawn(id)]),
            };
        })"""
    )
    assert len(page.pdf(format="A4")) > 10_000
    paper = page.evaluate("() => window.paper")
    assert paper["theme"] == "light"
    assert len(paper["charts"]) >= 4
    assert all(drawn for _, drawn in paper["charts"]), paper["charts"]
    page.set_viewport_size({"width": 718, "height": 1000})  # A4
    page.emulate_media(media="print")
    settled(page)
    for place in page.locator(".js-plotly-plot").all():
        if place.is_visible():
            room, drawing = place.bounding_box(), place.locator(".main-svg").first.bounding_box()
            assert drawing["x"] + drawing["width"] <= 719
            assert drawing["height"] <= room["height"] + 1


@pytest.mark.parametrize("tasks", [2, 5, 8])
def test_wide_tables_fit_on_paper(open_page: Opened, tasks: int) -> None:
    page = open_page(view_of(page_front(9, tasks), "run", "run"), width=718)  # A4
    page.emulate_media(media="print")
    for table in ("#models", "#runs"):
        assert page.evaluate("(name) => document.querySelector(name).getBoundingClientRect().right", table) <= 719


@pytest.mark.parametrize("tasks", [2, 3, 5])
def test_narrow_screens(show: Opened, tasks: int) -> None:
    show(view_of(page_front(9, 2), "run", "run"))
    show(view_of(page_front(9, 3), "run", "run"))  # hides the plane, which is to have another width when it is back
    page = show(view_of(page_front(9, tasks), "run", "run"), width=360)
    assert sides(page) == [360, 360]
    chart = "#pair2" if tasks == 3 else "#plane"
    page.locator(chart).scroll_into_view_if_needed()
    page.wait_for_function(
        "(id) => document.querySelector(`${id} .main-svg`)?.getBoundingClientRect().right <= 360", arg=chart
    )
    assert page.locator("#bar").is_visible(), "slider and numbers stay at hand"
    assert page.locator("#bar").bounding_box()["y"] + page.locator("#bar").bounding_box()["height"] == pytest.approx(
        900
    )
    before = marked(page)
    page.locator("#bar-slider").fill("0")
    settled(page)
    assert marked(page) != before
    assert text(page, "#bar-text").startswith(f"Model {marked(page)[1]}: ")


def test_runs_are_measured_against_each_other(show: Opened, tmp_path: Path) -> None:
    """Three more columns if runs share a problem, and a sentence that says what they mean; none on other pages."""
    assert "regret" not in text(show(*two()), "#runs")
    for number, method in enumerate(("linear", "mgda", "single-task")):
        front = page_front(5, 2)
        worse = {split: losses * (1 + 0.1 * number) for split, losses in front.losses.items()}
        replace(front, losses=worse, method=method).save(tmp_path / method)
    views, _ = read_views([tmp_path / name for name in ("linear", "mgda", "single-task")])
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
    assert "Regret: what users with random wishes lose who choose from one run" in text(page, "#runs-hint")
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
    assert "No model of lost has finite losses on training: there is nothing to draw or to choose." in text(
        page, "#notices"
    )
    assert text(page, "#headline") == "There is nothing to choose from yet."
    assert page.locator("#export").is_hidden()
    page = show(lost, worse, best)
    said = text(page, "#notices")
    assert "1 model of worse has losses on training that are not finite, and is left out." in said
    assert "Model 0 dominates all other models of worse on training: there is no trade-off to choose." in said
    assert "Every model of worse is dominated by one of another run on training." in said
    assert "best was stopped early, after 0 epochs." in said
    assert marked(page)[0] == "best"


def test_runs_of_different_problems_are_not_compared(show: Opened) -> None:
    fronts = [page_front(5, 2), page_front(5, 2, seed=1, problem="another", shift=0.2)]
    page = show(*[view_of(front, name, name) for front, name in zip(fronts, ("one", "two"), strict=True)])
    assert text(page, "#verdict") == (
        "These runs are of different problems (made up, another): their numbers do not compare, and the recommendation "
        "is for made up alone."
    )
    assert "dominated by one of another run" not in text(page, "#notices")


def test_a_run_without_validation_is_left_out_of_the_choice(show: Opened) -> None:
    front = page_front(5, 2)
    without = replace(
        page_front(5, 2, seed=1, shift=-0.03),
        losses={"train": front.losses["train"]},
        metrics={"train": front.metrics["train"]},
    )
    page = show(view_of(front, "whole", "whole"), view_of(without, "without", "without"))
    assert "without has no values on validation, and is left out of the choice." in text(page, "#notices")
    assert marked(page)[0] == "whole"


def test_without_plotly_words_and_tables_are_there(browser: Any, tmp_path: Path) -> None:
    whole = page_text(payload_of(two()))
    start = whole.index('id="plotly">')
    broken = whole[:start] + 'id="plotly">' + whole[whole.index("</script>", start) :]
    (tmp_path / "page.html").write_text(broken, encoding="utf-8")
    page = browser.new_page()
    page.goto((tmp_path / "page.html").as_uri())
    page.wait_for_function("() => loaded")
    assert "This chart could not be drawn" in text(page, "#plane")
    assert page.locator("#models tbody tr").count() == 14
    assert text(page, "#headline").startswith("Recommended: model ")
    page.close()


def test_a_large_hostile_page_is_small_and_sends_nothing(open_page: Opened, tmp_path: Path) -> None:
    """20 runs of 125 models and 8 tasks. That it sends no request is watched on every page."""
    names = [f"{HOSTILE[i % 4]} {i}" for i in range(8)]
    fronts = [
        page_front(125, names, seed=seed, shift=0.002 * seed, method=["linear", HOSTILE[0]][seed % 2], epochs=40)
        for seed in range(20)
    ]
    views = [view_of(front, f"{HOSTILE[1]} {i}", "x", points=10, runs=20) for i, front in enumerate(fronts)]
    assert len(page_text(payload_of(views))) < 6_000_000
    page = open_page(*views)
    assert page.evaluate("() => window.hit") is None
    assert text(page, "#headline").startswith("Recommended: model ")
    assert page.locator("#models tbody tr").count() == 125, "those of one run"
    page.locator("#all-rows").click()
    settled(page)
    assert page.locator("#models tbody tr").count() == 2500
