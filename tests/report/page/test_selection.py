"""The page in a real browser: the answer, what is drawn of a front, and how a model is chosen."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
import torch

import paretomtl as pm
from _helpers.fronts import front_of
from _helpers.pages import page_front
from _helpers.screen import Opened, marked, settled, text, two
from _support.test_splits import front as ranked
from paretomtl.report.page import payload_of, read_views, view_of


@pytest.fixture(scope="module")
def trained() -> pm.Front:
    return pm.fit(pm.problems.quadratic(), "pareto-mtl", 5, epochs=60, progress="quiet", device="cpu")


def test_a_trained_front_is_answered_and_drawn(open_page: Opened, trained: pm.Front) -> None:
    page = open_page(view_of(trained, "run", "runs/run"))
    assert text(page, "h1") == trained.problem
    assert text(page, "#lede").startswith("5 models, trade-offs between ")
    best = trained.select(max_regret=True).k
    assert marked(page) == ("run", best)
    first, second = (f"{float(trained.losses['train'][best, t]):.3g}" for t in (0, 1))
    tasks = trained.tasks
    assert text(page, "#headline") == f"Recommended: model {best}. {first} {tasks[0]} loss, {second} {tasks[1]} loss"
    assert text(page, "#why").startswith("It gives up least: ")
    assert page.inner_text("#command") == f"paretomtl select runs/run --max-regret --export run-k{best}"
    assert page.locator("#plane .scatterlayer .points path").count() == 5 + 1, "each model, and a ring around one"
    numbers = page.locator("#plane .textpoint").all_text_contents()
    assert sorted(filter(None, numbers)) == ["0", "1", "2", "3", "4"], "up to a dozen points have their numbers"
    page.locator("#losses").scroll_into_view_if_needed()
    settled(page)
    assert page.locator("#losses .scatterlayer .lines path").count() >= 4
    assert page.locator("#models tbody tr").count() == 5


def test_metrics_come_first_and_losses_are_one_click_away(open_page: Opened) -> None:
    page = open_page(*two())
    assert "left accuracy on validation" in text(page, "#plane .xtitle")
    assert "right accuracy on validation" in text(page, "#plane .ytitle")
    assert all("%" in tick for tick in page.locator("#plane .xtick text").all_text_contents())
    assert not page.locator("#show-targets").count(), "targets are of losses"
    page.locator("#kind input[value=losses]").check()
    settled(page)
    assert "left loss on validation" in text(page, "#plane .xtitle")
    drawn = len(page.evaluate("() => byId('plane').data"))
    page.locator("#show-targets").check()
    settled(page)
    assert len(page.evaluate("() => byId('plane').data")) > drawn + 7, "rays, regions, and a target for each model"


def test_the_run_with_the_largest_hypervolume_is_recommended(show: Opened) -> None:
    worse, better = page_front(5, 2, shift=0.2), page_front(5, 2, seed=1, method="linear", reading="importance")
    alone = page_front(2, 2, method="single-task", shift=-0.04)
    views = [view_of(f, n, n) for f, n in ((worse, "worse"), (better, "better"), (alone, "separate"))]
    assert marked(show(*views))[0] == "better", "separate networks are not a front"
    assert marked(show(views[0], views[2]))[0] == "worse"
    page = show(*views)
    page.locator("[data-key='run-better']").uncheck()
    settled(page)
    assert marked(page)[0] == "worse", "what is hidden is not recommended"


@pytest.mark.parametrize(("mine", "said"), [(0.4, "a lower loss"), (0.5, "a lower or equal loss"), (0.6, None)])
def test_a_model_of_another_run_that_is_better_is_named(
    show: Opened, tmp_path: Path, mine: float, said: str | None
) -> None:
    """The front has the larger hypervolume, but a model tuned by hand, without a reference point, beats its middle."""
    front_of([[0.2, 0.9], [0.5, 0.5], [0.9, 0.2]], reference=(1.5, 1.5)).save(tmp_path / "front of three")
    front_of([[0.4, mine]]).save(tmp_path / "mine")
    views, verdict = read_views([tmp_path / "front of three", tmp_path / "mine"])
    assert verdict.startswith("front of three has the largest hypervolume on training, ")
    page = show(*views)
    assert marked(page) == ("front of three", 1)
    sentence = f" Model 0 of mine has {said} in every task on training."
    assert text(page, "#why").endswith(sentence) == (said is not None)
    assert "Model 0 of mine" in text(page, "#why") or said is None
    notes = [row.locator("td").last.inner_text() for row in page.locator("#models tbody tr").all()]
    assert notes == ["", "dominated by another run" if said else "", "", ""]
    page.evaluate("() => change({ limits: { 'loss:a': { least: 0.45 } } })")
    settled(page)
    assert marked(page) == ("front of three", 1)
    assert "mine" not in text(page, "#why"), "it is not within the limits"
    page.evaluate("() => { change({ limits: {} }); pickModel(1, 0); }")
    settled(page)
    assert "front of three has" not in text(page, "#why"), "nothing is better than that one"


def test_a_reference_that_no_run_came_with_makes_no_outliers(show: Opened, tmp_path: Path) -> None:
    front_of([[0.2, 0.9], [0.9, 0.2], [5.0, 5.0]]).save(tmp_path / "one")
    front_of([[0.3, 0.8]]).save(tmp_path / "two")
    page = show(*read_views([tmp_path / "one", tmp_path / "two"])[0])
    assert "Outliers" not in text(page, "#plane-hint")
    assert page.locator("#plane .scatterlayer .points path").count() == 4 + 1, "each model, and a ring around one"


def test_a_slider_stops_at_models_only(show: Opened) -> None:
    front = page_front(7, ["left", "right"])
    page = show(view_of(front, "run", "runs/run"))
    order = [int(k) for k in front.losses["val"][:, 0].argsort() if front.nondominated("val")[k]]
    assert len(order) == 6, "one of seven is dominated"
    assert page.locator("#slider").get_attribute("max") == "5"
    assert page.locator("#slider").get_attribute("step") == "1"
    words = set()
    for stop, k in enumerate(order):
        page.locator("#slider").fill(str(stop))
        settled(page)
        assert marked(page)[1] == k
        assert page.locator("#slider").get_attribute("aria-valuetext") == f"model {k}"
        words.add(text(page, "#words"))
    assert len(words) == 6, "what is said changes with the model"


def test_each_task_has_a_slider_from_its_worst_to_its_best_model(show: Opened) -> None:
    front = page_front(15, ["digit", "bright", "parity"])
    page = show(view_of(front, "run", "runs/run"))
    kept = [k for k in range(15) if front.nondominated("val")[k]]
    for t, task in enumerate(front.tasks):
        order = sorted(kept, key=lambda k: float(front.metrics["val"][f"{task} accuracy"][k]))
        for stop in (0, 3, len(order) - 1):
            page.locator(f"#slider{t}").fill(str(stop))
            settled(page)
            assert marked(page)[1] == order[stop]
            shown = [float(text(page, f"#value{s}").removesuffix(" %")) for s in range(3)]
            truth = [100 * float(front.metrics["val"][f"{each} accuracy"][order[stop]]) for each in front.tasks]
            assert shown == pytest.approx(truth, abs=0.051)


def test_the_words_are_true(show: Opened) -> None:
    front = front_of(
        [[0.2, 0.9], [0.5, 0.5], [0.9, 0.2]],
        metrics={"train": {"a accuracy": torch.tensor([0.91, 0.889, 0.7])}},
        better={"a accuracy": "higher"},
    )
    page = show(view_of(front, "run", "runs/run"))
    assert marked(page)[1] == 1
    assert text(page, "#headline") == "Recommended: model 1. 88.9 % a accuracy, 0.5 b loss"
    assert text(page, "#why") == (
        "By losses, it gives up least: 2.1 points behind the best a accuracy, 0.3 behind the best b loss."
    )
    assert "Against its neighbour 0: 0.4 (44 %) better on b loss, 2.1 points worse on a accuracy." in text(
        page, "#words"
    )
    page.locator("#previous").click()
    settled(page)
    assert text(page, "#headline").startswith("Your choice: model 0. 91.0 % a accuracy, 0.9 b loss")
    assert text(page, "#why") == (
        "Against the recommended model 1 on training: 2.1 points better on a accuracy, 0.4 (80 %) worse on b loss."
    )


def test_many_tasks_are_summed_up_by_the_worst_one(show: Opened) -> None:
    page = show(view_of(page_front(25, 5), "run", "run"))
    said = text(page, "#why")
    assert said.startswith("By losses, it gives up least: in no task is it farther than ")
    assert said.endswith(" accuracy).")
    assert text(page, "#headline").count(" %") == 5


def test_a_model_favours_tasks_in_words(show: Opened) -> None:
    page = show(*two())
    heads = page.locator("#models th").all_inner_texts()
    at = next(i for i, head in enumerate(heads) if head.startswith("favours"))
    cells = [row.locator("td").nth(at) for row in page.locator("#models tbody tr").all()]
    assert [cell.inner_text() for cell in (cells[0], cells[6])] == ["right", "left"], "directions of losses"
    assert [cell.inner_text() for cell in (cells[7], cells[13])] == ["left", "right"], "importances"
    tips = [cells[i].locator("span").get_attribute("title") for i in (0, 7)]
    assert tips == ["direction (1, 0)", "importance (1, 0)"]
    shown = page.inner_text("body").lower()
    assert not [word for word in ("subproblem", "feasible", "solution", "preference") if word in shown]
    page.locator("#targets summary").click()
    page.wait_for_function("() => document.querySelector('#targets-table').textContent.includes('on target')")


def test_the_command_exports_the_marked_model(open_page: Opened) -> None:
    page = open_page(*two())
    command = shlex.split(page.inner_text("#command"))
    assert command[:4] == ["paretomtl", "select", "runs/the first", "--max-regret"]
    page.locator("[data-key='pick-1-2']").click()
    settled(page)
    command = shlex.split(page.inner_text("#command"))
    assert command == ["paretomtl", "select", "runs/second", "--k", "2", "--export", "second-k2"]
    page.locator("#splits input[value=train]").check()
    settled(page)
    page.locator("#balanced").click()
    settled(page)
    assert "--max-regret --split train --export" in page.inner_text("#command")


def test_hover_and_click_in_the_plane(open_page: Opened) -> None:
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
    page.wait_for_selector("#tip:not([hidden])")
    hovered = text(page, "#tip")
    for said in ("first, model 1", "favours: right", "left loss on validation: ", "right accuracy on validation: "):
        assert said in hovered
    page.mouse.click(*places[1])
    page.wait_for_function("() => choices.pick.how === 'model'")
    settled(page)
    assert marked(page) == ("first", 1)


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
    page.locator("[data-key='models-loss:left']").focus()
    page.keyboard.press("Enter")
    settled(page)
    assert page.locator("#models th[aria-sort=ascending]").count() == 1
    assert page.evaluate("() => document.activeElement.dataset.key") == "models-loss:left"
    page.locator("[data-key='pick-1-2']").focus()
    page.keyboard.press("Enter")
    settled(page)
    assert marked(page) == ("second", 2)
    page.locator("[data-key='limit-least-left accuracy']").focus()
    page.keyboard.type("60")
    settled(page)
    assert page.evaluate("() => choices.limits['left accuracy'].least") == 0.6
    assert page.evaluate("() => document.activeElement.dataset.key") == "limit-least-left accuracy", "typing goes on"


def test_tables_sort_both_ways(show: Opened) -> None:
    view = view_of(front_of([[0.3, 1.0], [torch.nan, 0.5], [10.0, 0.3], [2.0, 0.1]]), "run", "run")
    page = show(view)

    def column() -> list[str]:
        return page.locator("#models tbody tr td:nth-child(4)").all_inner_texts()

    page.locator("[data-key='models-loss:a']").click()
    settled(page)
    assert column() == ["0.3", "2", "10", "–"]
    page.locator("[data-key='models-loss:a']").click()
    settled(page)
    assert column() == ["10", "2", "0.3", "–"], "what is unknown stays at the end"
    assert page.locator("#models th[aria-sort=descending]").count() == 1


def test_axes_splits_and_runs(show: Opened) -> None:
    page = show(*two())
    assert page.evaluate("() => choices.split") == "val"
    page.locator("#splits input[value=test]").check()
    page.locator("#axis-x").select_option("loss:left")
    settled(page)
    assert "left loss" in text(page, "#plane .xtitle")
    assert "on test" in text(page, "#plane .xtitle")
    page.locator("[data-key='run-second']").uncheck()
    settled(page)
    assert page.locator("#models tbody tr").count() == 7
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
    assert page.locator("#numbers tbody tr").nth(1).inner_text().split() == ["a", "loss", "0.3", "0.95"]
    heads = [" ".join(head.split()) for head in page.locator("#runs th").all_inner_texts()]
    at = heads.index("hypervolume on validation")
    assert heads[at + 1] == "hypervolume on test"
    cells = page.locator("#runs tbody td").all_inner_texts()
    volumes = [pytest.approx(front.hypervolume(split=split)) for split in ("val", "test")]
    assert [float(cell) for cell in cells[at : at + 2]] == volumes
    heads = " ".join(page.locator("#models th").all_inner_texts())
    assert "a loss on validation" in heads
    assert "a loss on test" in heads
    page.locator("#splits input[value=test]").check()
    settled(page)
    assert marked(page) == ("run", 1), "test is shown, and does not choose"
    assert "Chosen on validation" in text(page, "#lede")
    assert text(page, "#not-by-test") == "Charts show test. Models are chosen on validation, never on test."
    page.locator("#splits input[value=train]").check()
    settled(page)
    assert marked(page) == ("run", 2), "training was asked for"
    page = show(view_of(ranked("test"), "run", "run"))
    assert page.evaluate("() => choices.split") == "train"
    assert marked(page) == ("run", 2)
    page.locator("#splits input[value=test]").check()
    settled(page)
    assert marked(page) == ("run", 2)
    assert "Chosen on training" in text(page, "#lede")


GIVEN = [[0.1, 0.9], [0.3, 0.4], [0.8, 0.2], [0.9, 0.9]]
GIVEN_NAMES = ["alpha=0", "<b>bold</b> & $x$", "alpha=1", "the last one"]


def test_models_go_by_the_names_that_they_were_given(show: Opened) -> None:
    front = pm.Front.from_losses({"test": GIVEN}, tasks=["left", "right"], names=GIVEN_NAMES, method="by hand")
    page = show(view_of(front, "mine", "runs/mine"))
    best = front.select(max_regret=True).k
    assert marked(page) == ("mine", best) == ("mine", 1)
    assert text(page, "#headline").startswith("Recommended: model 1 (<b>bold</b> & $x$). ")
    assert text(page, "#chosen-name") == "Model 1 (<b>bold</b> & $x$) of mine"
    assert "Against its neighbour alpha=0: " in text(page, "#words")
    assert "<b>bold</b> & $" in " ".join(page.locator("#plane .textpoint").all_text_contents())
    assert page.inner_text("#command") == "paretomtl select runs/mine --max-regret", "there are no weights to export"
    assert "Only test values are available" in text(page, "#chosen")
    head = [text(page, f"#models th:nth-child({i})") for i in range(1, 7)]
    assert head == ["run", "model", "name", "left loss on test", "right loss on test", "note"]
    assert text(page, "#models tbody tr:nth-child(4)") == "mine3the last one0.90.9dominated"
    page.locator("#next").click()
    settled(page)
    assert marked(page) == ("mine", 2)


def test_fronts_with_and_without_preferences_share_a_page(show: Opened) -> None:
    names = [f"task {i}" for i in range(5)]
    front = pm.Front.from_losses([[float((i + k) % 3 + 1) for i in range(5)] for k in range(3)], tasks=names)
    assert "favours" not in text(show(view_of(front, "given", "runs/given")), "#models thead")
    given = pm.Front.from_losses({"val": GIVEN, "test": GIVEN}, tasks=["left", "right"], names=GIVEN_NAMES)
    page = show(two()[0], view_of(given, "given", "runs/given"))
    page.locator("#run-picker").select_option("given")
    settled(page)
    assert marked(page)[0] == "given"
    assert "--export" not in page.inner_text("#command")
    assert "favours" in text(page, "#models thead")
    assert text(page, "#models tbody tr:nth-child(8)").startswith("given0alpha=0–")
