"""The page in a real browser: what is drawn of a front, and how a solution is chosen."""

from __future__ import annotations

import dataclasses
import shlex

import pytest
import torch

import paretomtl as pm
from _helpers.fronts import front_of
from _helpers.pages import page_front
from _helpers.screen import Opened, marked, settled, text, two
from _support.test_splits import front as ranked
from paretomtl.report.page import payload_of, view_of


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> pm.Front:
    return pm.fit(pm.problems.quadratic(), "pareto-mtl", 5, epochs=60, progress="quiet", device="cpu")


def test_a_trained_front_is_drawn(open_page: Opened, trained: pm.Front) -> None:
    page = open_page(view_of(trained, "run", "runs/run"))
    assert text(page, "h1") == trained.problem
    assert "5 solutions of one run of Pareto MTL" in text(page, "#lede")
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
            rows = torch.rand(count, tasks, generator=generator)
            rows[-1, 0] += 1e3 * (
                count == 9
            )  # diverged, and the best in the others: beyond a reference, if there is one
            rows[-1, 1:] /= 1.0 + 9.0 * (count == 9)
            reference = (1.0,) * tasks if tasks > 2 else None
            front = front_of(rows.tolist(), reference=reference)
            view = view_of(front, "x", "x", reference=(9e9,) * tasks)  # that of a page with other runs decides nothing
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
    for said in ("first", "direction (0.966, 0.259)", "left loss on validation: ", "right accuracy on validation: "):
        assert said in hovered
    assert "feasible, in its region on training" in hovered
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
    assert "on test" in text(page, "#plane .xtitle")
    assert page.locator("#handle").is_hidden(), "rays belong to planes of losses"
    page.locator("[data-key='run-second']").uncheck()
    settled(page)
    assert page.locator("#solutions tbody tr").count() == 7
    before = page.evaluate("() => JSON.stringify([choices.x, choices.split, [...choices.hidden], marked().i])")
    page.evaluate("(payload) => render(payload)", payload_of(two()))
    assert page.evaluate("() => JSON.stringify([choices.x, choices.split, [...choices.hidden], marked().i])") == before


def test_choices_go_by_validation_whatever_is_shown(show: Opened) -> None:
    """The best compromise on validation is 1, on test 0, on training 2. Without validation, training ranks."""
    front = ranked("val", "test")
    page = show(view_of(front, "run", "run"))
    assert page.evaluate("() => choices.split") == "val"
    assert marked(page) == ("run", 1)
    assert "on validation" in text(page, "#plane .xtitle")
    assert page.inner_text("#numbers thead").split() == ["validation", "test"]
    assert page.locator("#numbers tbody tr").first.inner_text().split() == ["a", "loss", "0.3", "0.95"]
    heads = " ".join(page.locator("#runs th").all_inner_texts())
    assert "hypervolume on validation hypervolume on test" in heads
    cells = page.locator("#runs tbody td").all_inner_texts()
    assert [float(cell) for cell in cells[4:6]] == [pytest.approx(front.hypervolume(split=s)) for s in ("val", "test")]
    heads = " ".join(page.locator("#solutions th").all_inner_texts())
    assert "a loss on validation" in heads
    assert "a loss on test" in heads
    page.locator("#splits input[value=test]").check()
    settled(page)
    assert marked(page) == ("run", 1), "test is shown, and does not choose"
    assert "the balanced one on validation" in text(page, "#lede")
    assert text(page, "#not-by-test") == "Charts show test. Solutions are chosen on validation, never on test."
    page.locator("#splits input[value=train]").check()
    settled(page)
    assert marked(page) == ("run", 2), "training was asked for"
    page = show(view_of(ranked("test"), "run", "run"))
    assert page.evaluate("() => choices.split") == "train"
    assert marked(page) == ("run", 2)
    page.locator("#splits input[value=test]").check()
    settled(page)
    assert marked(page) == ("run", 2)
    assert "the balanced one on training" in text(page, "#lede")


GIVEN = [[0.1, 0.9], [0.3, 0.4], [0.8, 0.2], [0.9, 0.9]]
GIVEN_NAMES = ["alpha=0", "<b>bold</b> & $x$", "alpha=1", "the last one"]


def test_solutions_go_by_the_names_that_they_were_given(show: Opened) -> None:
    front = pm.Front.from_losses({"test": GIVEN}, tasks=["left", "right"], names=GIVEN_NAMES, method="by hand")
    page = show(view_of(front, "mine", "runs/mine"))
    best = front.select(max_regret=True).k
    assert marked(page) == ("mine", best) == ("mine", 1)
    lede = text(page, "#lede")
    assert lede.startswith("4 solutions (by hand) on problem")
    assert "marked is solution 1 (<b>bold</b> & $x$) of mine, the balanced one on test." in lede
    assert text(page, "#chosen-name") == "Solution 1 (<b>bold</b> & $x$) of mine"
    assert "Against its neighbour alpha=0: " in text(page, "#words")
    assert text(page, "#plane .textpoint") == "<b>bold</b> & $x$"
    assert not page.is_visible("#export"), "there are no weights"
    assert not page.is_visible("#rays")
    assert not page.is_visible("#log")
    head = [text(page, f"#solutions th:nth-child({i})") for i in range(1, 7)]
    assert head == ["run", "k", "name", "left loss on test", "right loss on test", "status on test"]
    assert text(page, "#solutions tbody tr:nth-child(4)") == "mine3the last one0.90.9given, dominated"
    page.locator("#next").click()
    settled(page)
    assert marked(page) == ("mine", 2)


def test_fronts_with_and_without_preferences_share_a_page(show: Opened) -> None:
    names = [f"task {i}" for i in range(5)]
    front = pm.Front.from_losses([[float((i + k) % 3 + 1) for i in range(5)] for k in range(3)], tasks=names)
    assert "given" in text(show(view_of(front, "given", "runs/given")), "#solutions")
    given = pm.Front.from_losses({"val": GIVEN, "test": GIVEN}, tasks=["left", "right"], names=GIVEN_NAMES)
    page = show(two()[0], view_of(given, "given", "runs/given"))
    page.locator("#run-picker").select_option("given")
    settled(page)
    assert marked(page)[0] == "given"
    assert not page.is_visible("#export")
    assert "direction" in text(page, "#solutions thead")
    assert text(page, "#solutions tbody tr:nth-child(8)").startswith("given0alpha=0–")
