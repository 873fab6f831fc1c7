"""The page in a real browser."""

from __future__ import annotations

import dataclasses
import json
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import paretomtl as pm
from browser import Errors, chromium
from fronts import front_of
from pages import page_front
from paretomtl.report.page import View, page_text, payload_of, view_of

HOSTILE = (
    "<script>window.hit=1</script>",
    "$y$ <img src=x onerror=window.hit=1> \"q\" 'q' & %{x}",
    "שלום עולם",
    "long " * 60,
)

Opened = Callable[..., Any]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


@pytest.fixture
def open_page(browser: Any, tmp_path: Path) -> Iterator[Opened]:
    """Opens views as a page, ready when all charts are drawn; no page may complain."""
    errors = Errors()
    contexts = []

    def opened(*views: View, title: str | None = None, width: int = 1280, **options: Any) -> Any:
        path = tmp_path / f"page{len(contexts)}.html"
        path.write_text(page_text(payload_of(views, title)), encoding="utf-8")
        context = browser.new_context(viewport={"width": width, "height": 900}, **options)
        contexts.append(context)
        page = context.new_page()
        errors.listen(page)
        page.goto(path.as_uri())
        return page

    yield opened
    for context in contexts:
        context.close()
    assert not errors


@pytest.fixture(scope="module")
def shared(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, Errors]]:
    """One page for many tests: most of the time of opening a page goes into plotly."""
    path = tmp_path_factory.mktemp("shared") / "page.html"
    path.write_text(page_text(payload_of(two())), encoding="utf-8")
    errors = Errors()
    page = browser.new_page()
    errors.listen(page)
    page.goto(path.as_uri())
    page.evaluate("() => { window.fresh = JSON.stringify(choices); }")
    yield page, errors
    page.close()


@pytest.fixture
def show(shared: tuple[Any, Errors]) -> Iterator[Opened]:
    """Renders views in the shared page, with no choices made yet."""
    page, errors = shared

    def shown(*views: View, width: int = 1280) -> Any:
        page.set_viewport_size({"width": width, "height": 900})
        page.evaluate("() => Object.assign(choices, JSON.parse(window.fresh), { hidden: new Set() })")
        page.evaluate("(payload) => render(payload)", payload_of(views))
        settled(page)
        return page

    yield shown
    assert not errors


def settled(page: Any) -> None:
    """Wait until what was asked for is drawn."""
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def marked(page: Any) -> tuple[str, int]:
    """The run and the subproblem that are marked."""
    return tuple(page.evaluate("() => [marked().view.name, marked().view.subproblems[marked().i]]"))


def text(page: Any, selector: str) -> str:
    return " ".join(page.text_content(selector).translate({0x2068: None, 0x2069: None}).split())


def sides(page: Any) -> list[int]:
    return page.evaluate("() => [document.documentElement.scrollWidth, window.innerWidth]")


def two() -> list[View]:
    first = view_of(page_front(7, ["left", "right"]), "first", "runs/the first")
    second = page_front(7, ["left", "right"], seed=1, shift=0.1, method="linear", reading="importance")
    return [first, view_of(second, "second", "runs/second")]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> pm.Front:
    return pm.fit(pm.problems.quadratic(), preferences=5, epochs=60, progress="quiet", device="cpu")


def test_a_trained_front_is_drawn(open_page: Opened, trained: pm.Front) -> None:
    page = open_page(view_of(trained, "run", "runs/run"))
    assert text(page, "h1") == trained.problem
    assert "5 solutions of one run of pareto-mtl" in text(page, "#lede")
    best = trained.select(max_regret=True).k
    assert marked(page) == ("run", best)
    assert f"marked is subproblem {best} of run, the balanced one on training." in text(page, "#lede")
    assert page.locator("#plane .scatterlayer .points path").count() == 5 + 1, "each solution, and a ring around one"
    assert page.locator("#losses .scatterlayer .lines path").count() >= 4
    assert page.locator("#solutions tbody tr").count() == 5


def test_a_slider_picks_what_select_picks(show: Opened) -> None:
    """At every place of the slider the marked solution is that of Front.select, in the units of the run."""
    scale = torch.tensor([[2.0, 0.5]] * 7, dtype=torch.float64)
    front = dataclasses.replace(page_front(7, ["left", "right"]), scale=scale, ideal=(0.01, 0.02))
    page = show(view_of(front, "run", "runs/run"))
    words = set()
    ticks = page.evaluate(
        """() => {
            const { view } = marked();
            return candidates(view, "val").map((i) => placeOfAngle(view, "val", degreesAt(view, "val", i)));
        }"""
    )
    for place in [*ticks, 111, 666]:
        page.locator("#slider").fill(str(round(place)))
        settled(page)
        direction = page.evaluate("() => currentDirection()")
        assert marked(page)[1] == front.select(direction=direction, split="val").k
        words.add(text(page, "#words"))
        assert "nearest to the direction" in text(page, "#lede")
    assert len(words) == 6, "what is said changes with the solution; one of seven is dominated"


def test_every_rule_is_that_of_the_front(show: Opened) -> None:
    """The nearest to random directions, the balanced one and non-dominance, for random losses of 2 to 5 tasks."""
    generator = torch.Generator().manual_seed(0)
    page = show(*two())
    for tasks in (2, 3, 5):
        for count in (1, 2, 9):
            front = front_of(torch.rand(count, tasks, generator=generator).tolist())
            view = view_of(front, "x", "x")
            assert (
                page.evaluate("(view) => view.subproblems[balanced(view, 'train')]", view)
                == front.select(max_regret=True).k
            )
            for direction in torch.rand(10, tasks, generator=generator).tolist():
                found = page.evaluate("([view, d]) => view.subproblems[nearest(view, 'train', d)]", [view, direction])
                assert found == front.select(direction=direction).k


def test_the_words_are_true(show: Opened) -> None:
    front = front_of(
        [[0.2, 0.9], [0.5, 0.5], [0.9, 0.2]],
        metrics={"train": {"a accuracy": torch.tensor([0.91, 0.889, 0.7])}},
        better={"a accuracy": "higher"},
    )
    page = show(view_of(front, "run", "runs/run"))
    assert marked(page)[1] == 1
    assert "It is the balanced one" in text(page, "#words")
    assert "Against its neighbour 0: 0.4 (44 %) better on b loss, 2.1 points worse on a accuracy." in text(
        page, "#words"
    )
    page.locator("#previous").click()
    settled(page)
    assert "Against the balanced one, 1: 2.1 points better on a accuracy, 0.4 (80 %) worse on b loss." in text(
        page, "#words"
    )
    assert "marked is subproblem 0 of run, which you picked" in text(page, "#lede")


def test_the_command_exports_the_marked_solution(open_page: Opened) -> None:
    page = open_page(*two())
    command = shlex.split(page.inner_text("#command"))
    assert command[:5] == ["paretomtl", "select", "runs/the first", "--k", str(marked(page)[1])]
    assert command[5] == "--export"
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.locator("#copy").click()
    page.wait_for_function("() => document.querySelector('#copy').textContent === 'Copied'")
    assert shlex.split(page.evaluate("() => navigator.clipboard.readText()")) == command


def test_hover_click_and_drag_in_the_plane(open_page: Opened) -> None:
    page = open_page(*two())
    places = page.evaluate(
        """() => {
            const { xaxis, yaxis } = document.querySelector("#plane")._fullLayout;
            const box = document.querySelector("#plane").getBoundingClientRect();
            const view = payload.runs[0];
            return view.subproblems.map((_, i) => pointAt(view, "val", i, choices.x, choices.y)).map(([x, y]) =>
                [box.left + xaxis._offset + xaxis.l2p(x), box.top + yaxis._offset + yaxis.l2p(y)]);
        }"""
    )
    page.mouse.move(*places[1])
    page.wait_for_selector("#plane .hoverlayer .hovertext")
    hovered = text(page, "#plane .hoverlayer")
    for said in ("first", "direction (0.966, 0.259)", "left loss: ", "right accuracy: ", "feasible, in its region on"):
        assert said in hovered
    page.mouse.click(*places[1])
    page.wait_for_function("() => choices.pick.how === 'solution'")
    settled(page)
    assert marked(page) == ("first", 1)
    box = page.locator("#handle").bounding_box()
    page.mouse.move(box["x"] + 11, box["y"] + 11)
    page.mouse.down()
    page.mouse.move(places[5][0], places[5][1], steps=4)
    page.mouse.up()
    settled(page)
    assert marked(page) == ("first", 5)
    assert page.evaluate("() => choices.pick.how") == "direction"


def test_the_handle_stays_at_the_end_of_its_ray(open_page: Opened) -> None:
    """Also where plotly draws by itself: in a new width, and closer."""
    page = open_page(*two())
    page.set_viewport_size({"width": 360, "height": 800})
    page.wait_for_function("() => document.documentElement.scrollWidth <= 360")
    page.evaluate("() => Plotly.relayout('plane', { 'xaxis.range': [0, 0.2], 'yaxis.range': [0, 2] })")
    handle, panel = (page.locator(place).bounding_box() for place in ("#handle", "#plane .nsewdrag"))
    across, up = page.evaluate("() => currentDirection()")
    assert 0.2 * up / across < 2, "the ray leaves on the right"
    middle = [handle[side] + handle[size] / 2 - panel[side] for side, size in (("x", "width"), ("y", "height"))]
    assert middle[0] == pytest.approx(0.97 * panel["width"], abs=3)
    assert middle[1] == pytest.approx((1 - 0.97 * 0.2 * up / across / 2) * panel["height"], abs=3)


def test_everything_by_keyboard(show: Opened) -> None:
    page = show(*two())
    order = page.evaluate("() => ordered(payload.runs[0], 'val').map((i) => payload.runs[0].subproblems[i])")
    page.locator("#slider").focus()
    for _ in range(8):
        page.keyboard.press("ArrowLeft")
        settled(page)
    assert marked(page)[1] == order[0]
    page.locator("#plane").focus()
    for k in order[1:]:
        page.keyboard.press("ArrowRight")
        settled(page)
        assert marked(page)[1] == k
    page.locator("#handle").focus()
    page.keyboard.press("ArrowLeft")
    settled(page)
    assert page.evaluate("() => choices.pick.how") == "direction"
    page.locator("[data-key='solutions-loss:left']").focus()
    page.keyboard.press("Enter")
    settled(page)
    assert page.locator("th[aria-sort=ascending]").count() == 1
    assert page.evaluate("() => document.activeElement.dataset.key") == "solutions-loss:left"
    page.locator("[data-key='pick-1-2']").focus()
    page.keyboard.press("Enter")
    settled(page)
    assert marked(page) == ("second", 2)
    assert page.locator("#run-picker").input_value() == "second"


def test_tables_sort_both_ways(show: Opened) -> None:
    view = view_of(front_of([[0.3, 1.0], [torch.nan, 0.5], [10.0, 0.3], [2.0, 0.1]]), "run", "run")
    page = show(view)

    def column() -> list[str]:
        return page.locator("#solutions tbody tr td:nth-child(4)").all_inner_texts()

    page.locator("[data-key='solutions-loss:a']").click()
    settled(page)
    assert column() == ["0.3", "2", "10", "–"]
    page.locator("[data-key='solutions-loss:a']").click()
    settled(page)
    assert column() == ["10", "2", "0.3", "–"], "what is unknown stays at the end"
    assert page.locator("#solutions th[aria-sort=descending]").count() == 1


def test_axes_splits_and_runs(show: Opened) -> None:
    page = show(*two())
    assert page.evaluate("() => choices.split") == "val"
    page.locator("#splits input[value=test]").check()
    page.locator("#axis-x").select_option("left accuracy")
    settled(page)
    assert "left accuracy" in text(page, "#plane .xtitle")
    assert "on test" in text(page, "#lede")
    assert page.locator("#handle").is_hidden(), "rays belong to planes of losses"
    page.locator("[data-key='run-second']").uncheck()
    settled(page)
    assert page.locator("#solutions tbody tr").count() == 7
    before = page.evaluate("() => JSON.stringify([choices.x, choices.split, [...choices.hidden], marked().i])")
    page.evaluate("(payload) => render(payload)", payload_of(two()))
    assert page.evaluate("() => JSON.stringify([choices.x, choices.split, [...choices.hidden], marked().i])") == before


def test_three_tasks_in_space(open_page: Opened) -> None:
    page = open_page(view_of(page_front(15, ["x", "y", "z"]), "run", "run"))
    assert page.locator("#space canvas").count() >= 1
    assert [page.locator(f"#pair{i} .scatterlayer .points path").count() for i in range(3)] == [16, 16, 16]
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
    assert text(page, "#brushed") == f"{inside} of 25 solutions lie within the brushes."
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
        assert shown.replace("\u2060", "") == f"{HOSTILE[0]} loss"[:23] + "…", "space reads no entities"
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


@pytest.mark.parametrize("tasks", [2, 3, 5])
def test_narrow_screens(show: Opened, tasks: int) -> None:
    page = show(view_of(page_front(9, tasks), "run", "run"), width=360)
    assert sides(page) == [360, 360]
    page.wait_for_function("() => document.querySelector('#plane .main-svg').getBoundingClientRect().right <= 360")


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
    assert "Nothing is there yet of first" in text(page, "#notices")
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
