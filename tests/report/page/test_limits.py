"""Limits on the page: every metric and loss, brushes, what is left, and the command that selects the same model."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

import paretomtl as pm
from _helpers.fronts import front_of
from _helpers.pages import page_front
from _helpers.screen import Opened, marked, settled, text, two
from paretomtl.cli._app import app
from paretomtl.report.page import view_of

pytestmark = pytest.mark.system
TASKS = ["top-left", "bottom-right"]


def selected(page: Any) -> int | None:
    """What the command of the page selects."""
    words = shlex.split(page.inner_text("#command"))
    assert words[:2] == ["paretomtl", "select"]
    kept = words[1 : words.index("--export")] if "--export" in words else words[1:]
    result = CliRunner().invoke(app, [*kept, "--json"])
    assert result.exit_code in (0, 3), result.output
    return json.loads(result.stdout)["k"]


def limit(page: Any, name: str, side: str, value: float | str) -> None:
    page.locator("#limits").get_by_label(f"{name} at {side}").fill(str(value))
    settled(page)


def test_a_reader_finds_the_best_model_within_a_limit(open_page: Opened, tmp_path: Path) -> None:
    """In three actions: a limit, "Best", "Copy". The command selects the same model."""
    front = page_front(9, TASKS)
    front.save(tmp_path / "run")
    page = open_page(view_of(front, "run", str(tmp_path / "run")))
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    accuracy = front.metrics["val"]
    page.get_by_label("top-left accuracy at least").fill("75")
    page.get_by_role("button", name="Take the best bottom-right accuracy").click()
    page.get_by_role("button", name="Copy").click()
    page.wait_for_function("() => document.querySelector('#copy').textContent === 'Copied'")
    fits = [k for k in range(9) if accuracy["top-left accuracy"][k] >= 0.75]
    best = max(fits, key=lambda k: float(accuracy["bottom-right accuracy"][k]))
    assert 1 < len(fits) < 9
    assert marked(page) == ("run", best)
    assert text(page, "#headline").startswith(f"Best bottom-right accuracy: model {best}. ")
    said = f"It has the best bottom-right accuracy of {len(fits)} models within your limits on validation."
    assert text(page, "#why") == said
    copied = page.evaluate("() => navigator.clipboard.readText()")
    assert "--at-least 'top-left accuracy=0.75' --best 'bottom-right accuracy'" in copied
    assert copied == page.inner_text("#command")
    assert selected(page) == best


def test_every_rule_within_limits_is_that_of_the_front(show: Opened) -> None:
    """Balanced, best and nearest, for random losses, metrics and limits of 2 to 5 tasks."""
    generator = torch.Generator().manual_seed(0)
    page = show(*two())
    found = {"k": 0, "nearest": 0}
    for tasks in (2, 3, 5):
        for count in (1, 2, 9):
            rows = torch.rand(count, tasks, generator=generator)
            if count == 9:
                rows = (4 * rows).ceil() / 4  # ties
                rows[-1] = torch.tensor([1e3, *[0.01] * (tasks - 1)])  # diverged in one task
            scores = torch.rand(count, generator=generator).float()
            front = front_of(
                rows.tolist(),
                reference=(1.0,) * tasks if tasks > 2 else None,
                metrics={"train": {"score": scores}},
                better={"score": "higher"},
            )
            view = view_of(front, "x", "x", reference=(9e9,) * tasks)  # the page's own reference decides nothing
            page.evaluate("(payload) => render({ ...payload, live: null })", {**_payload(page), "runs": [view]})
            for least, most in torch.rand(12, 2, generator=generator).tolist():
                limits = {"score": {"least": round(least, 3)}, "loss:a": {"most": round(most * 1.3, 3)}}
                bounds = {"at_least": {"score": round(least, 3)}, "at_most": {"a": round(most * 1.3, 3)}}
                picked = page.evaluate(
                    """([view, limits]) => [
                        balanced(view, 'train', limits), bestBy(view, 'train', 'loss:b', limits),
                        nearestToLimits(view, 'train', limits),
                    ]""",
                    [view, limits],
                )
                choice = front.select(max_regret=True, **bounds)
                assert picked[:2] == [choice.k, front.select(best="b", **bounds).k]
                if choice.k is None:
                    assert picked[2] == choice.nearest
                found["k" if choice.k is not None else "nearest"] += 1
    assert min(found.values()) > 10


def _payload(page: Any) -> dict[str, Any]:
    return page.evaluate("() => ({ ...payload, shares: undefined })")


@pytest.mark.parametrize("tasks", [2, 3, 5])
def test_everything_works_on_what_is_left(show: Opened, tmp_path: Path, tasks: int) -> None:
    front = page_front(25, tasks)
    front.save(tmp_path / "run")
    page = show(view_of(front, "run", str(tmp_path / "run")))
    values = front.metrics["val"]["task 0 accuracy"]
    middle = round(float(values.median()), 4)
    limit(page, "task 0 accuracy", "least", round(100 * middle, 4))
    left = [k for k in range(25) if float(f"{values[k]:.6g}") >= middle]
    assert 1 < len(left) < 25
    assert f"{len(left)} of 25 models within the limits on validation." in text(page, "#left")
    assert text(page, "#headline").startswith("Recommended within your limits: model ")
    assert marked(page)[1] == front.select(at_least={"task 0 accuracy": middle}, max_regret=True).k == selected(page)
    stops = page.evaluate("() => ordered(marked().view, 'val').map((i) => marked().view.subproblems[i])")
    assert set(stops) <= set(left)
    slider = page.locator("#slider" if tasks == 2 else "#slider0")
    assert int(slider.get_attribute("max")) == len(stops) - 1, "a slider stops at models, and nowhere else"
    for stop in (0, len(stops) - 1):
        slider.fill(str(stop))
        settled(page)
        assert marked(page)[1] in left
        assert selected(page) == marked(page)[1]
    page.locator("#balanced").click()
    settled(page)
    for _ in range(25):
        page.locator("#next").click()
    settled(page)
    assert marked(page)[1] == stops[-1]
    notes = page.locator("#models tbody tr td:last-child").all_inner_texts()
    assert sum(note == "outside your limits" for note in notes) == 25 - len(left)
    page.locator("#clear-limits").click()
    settled(page)
    assert page.evaluate("() => choices.limits") == {}
    assert page.locator("#limits").get_by_label("task 0 accuracy at least").input_value() == ""


def test_a_limit_that_nothing_keeps_says_which_one_binds(show: Opened) -> None:
    front = front_of(
        [[0.2, 0.9], [0.5, 0.5], [0.9, 0.2]],
        metrics={"train": {"a accuracy": torch.tensor([0.91, 0.88, 0.7]), "b accuracy": torch.tensor([0.5, 0.8, 0.9])}},
        better={"a accuracy": "higher", "b accuracy": "higher"},
    )
    page = show(view_of(front, "run", "runs/run"))
    limit(page, "a accuracy", "least", 90)
    limit(page, "b accuracy", "least", 85)
    none = front.select(at_least={"a accuracy": 0.9, "b accuracy": 0.85}, max_regret=True)
    assert none.nearest == 1
    assert text(page, "#headline") == "No model is within your limits."
    said = text(page, "#why")
    assert "Model 1 comes nearest: its a accuracy is 88.0 %, 2.0 points too low for at least 90.0 %" in said
    assert "and its b accuracy is 80.0 %, 5.0 points too low for at least 85.0 %." in said
    assert page.locator("#export").is_hidden()
    page.get_by_role("button", name="Relax b accuracy to 80.0 %").click()
    settled(page)
    assert page.evaluate("() => choices.limits['b accuracy'].least") == 0.8
    page.get_by_role("button", name="Relax a accuracy to 88.0 %").click()
    settled(page)
    assert marked(page) == ("run", 1)


@pytest.mark.parametrize("width", [1280, 390])
def test_limits_that_leave_nothing_can_be_taken_back(show: Opened, width: int) -> None:
    page = show(view_of(page_front(9, TASKS), "run", "run"), width=width)
    before = (marked(page), text(page, "#bar-text"))
    page.evaluate("() => change({ limits: { 'top-left accuracy': { least: 2, most: null } } })")
    settled(page)
    assert text(page, "#headline") == "No model is within your limits."
    assert page.locator("#bar").is_hidden()
    page.evaluate("() => clearLimits()")
    settled(page)
    assert (marked(page), text(page, "#bar-text")) == before
    assert page.locator("#bar-slider").count() == 1


def test_the_best_of_what_nobody_knows_is_no_model(show: Opened) -> None:
    front = front_of([[0.1, 0.9], [0.9, 0.1]], metrics={"train": {"speed": torch.full((2,), torch.nan)}})
    page = show(view_of(front, "run", "run"))
    page.evaluate("() => change({ pick: { how: 'best', name: 'speed' } })")
    settled(page)
    assert text(page, "#headline") == "No model has a known speed on training."
    assert front.select(best="speed").k is None
    assert page.locator("#export").is_hidden()


def test_a_dominated_model_is_chosen_if_only_it_keeps_the_limits(show: Opened) -> None:
    front = front_of([[0.1, 0.1], [0.2, 0.2]], metrics={"train": {"speed": torch.tensor([1.0, 9.0])}})
    page = show(view_of(front, "run", "runs/run"))
    assert marked(page) == ("run", 0)
    limit(page, "speed", "least", 5)
    assert marked(page) == ("run", 1)
    assert front.select(max_regret=True, at_least={"speed": 5.0}).k == 1


def test_a_choice_by_hand_gives_way_to_a_limit(show: Opened) -> None:
    page = show(view_of(page_front(9, TASKS), "run", "run"))
    page.evaluate("() => pickModel(0, 0)")
    settled(page)
    assert text(page, "#headline").startswith("Your choice: model 0.")
    assert "--k 0" in page.inner_text("#command")
    page.locator("#loss-limits summary").click()
    limit(page, "top-left loss", "most", 0.4)
    assert text(page, "#headline").startswith("Recommended within your limits: ")
    assert "--at-most top-left=0.4 --max-regret" in page.inner_text("#command")


def test_the_best_of_all_runs_is_found_where_no_run_was_picked(show: Opened) -> None:
    page = show(*two())
    name = "left accuracy"
    page.get_by_role("button", name=f"Take the best {name}").click()
    settled(page)
    best = page.evaluate("(name) => Math.max(...payload.runs.flatMap((view) => view.values.val[name]))", name)
    assert page.evaluate("(name) => valueAt(marked().view, 'val', name, marked().i)", name) == best
    page.locator("#run-picker").select_option("second")
    settled(page)
    assert marked(page)[0] == "second"
    assert "runs/second" in page.inner_text("#command")


def test_brushes_are_the_same_limits(show: Opened) -> None:
    view = view_of(page_front(25, 5), "run", "run")
    page = show(view)
    assert page.locator("svg.parallel .line").count() == 25
    catch = page.locator(".catch").first.bounding_box()
    x = catch["x"] + catch["width"] / 2
    page.mouse.move(x, catch["y"] + catch["height"] * 0.3)
    page.mouse.down()
    page.mouse.move(x, catch["y"] - 4, steps=4)
    page.mouse.up()
    settled(page)
    least, most = page.evaluate(
        "() => [choices.limits['task 0 accuracy'].least, choices.limits['task 0 accuracy'].most]"
    )
    assert most is None, "best is up, and the brush goes beyond the best model"
    inside = sum(value >= least for value in view["values"]["val"]["task 0 accuracy"])
    assert 0 < inside < 25
    assert f"{inside} of 25 models" in text(page, "#left")
    assert page.locator("svg.parallel .wide").count() == inside
    shown = page.locator("#limits").get_by_label("task 0 accuracy at least").input_value()
    assert float(shown) == pytest.approx(100 * least)
    page.locator("[data-key='brush-most-task 1 accuracy']").focus()
    page.keyboard.press("ArrowDown")
    settled(page)
    assert page.evaluate("() => Object.keys(choices.limits).length") == 2
    assert page.evaluate("() => document.activeElement.dataset.key") == "brush-most-task 1 accuracy"
    page.locator("#clear-limits").click()
    settled(page)
    assert page.locator("svg.parallel .brush").count() == 0


def test_moving_on_from_a_model(show: Opened) -> None:
    front = front_of([[0.1, 0.9, 0.5], [0.5, 0.5, 0.4], [0.4, 0.8, 0.1], [0.9, 0.1, 0.45]])
    page = show(view_of(front, "run", "run"))
    page.evaluate("() => { byId('mover').open = true; pickModel(0, 1); }")
    settled(page)

    def wish(**wishes: str) -> str:
        for task in "abc":
            page.locator(f"[data-wish='loss:{task}']").select_option(wishes.get(task, "free"))
        page.locator("#go").click()
        settled(page)
        return text(page, "#moved")

    assert wish() == "Say first what should improve."
    said = wish(c="improve", a="keep")
    assert marked(page)[1] == 2
    assert said.startswith("From model 1 to model 2: 0.1 (20 %) better on a loss, 0.3 (75 %) better on c loss, ")
    assert wish(a="improve", b="improve", c="improve") == "No model improves all of these."
    said = wish(a="improve", c="keep")
    assert "No model improves this and keeps that. Model 0 comes nearest: " in said
    assert marked(page)[1] == 2
    page.locator("#moved button").click()
    settled(page)
    assert marked(page)[1] == 0


def test_names_with_everything_in_them_survive_the_command(show: Opened, tmp_path: Path) -> None:
    tasks = ['it\'s = a "task" & more', "-dash"]
    front = page_front(5, tasks)
    front.save(tmp_path / "run")
    page = show(view_of(front, "run", str(tmp_path / "run")))
    page.evaluate(
        """(name) => change({
            limits: { [name]: { least: 0.5, most: null } }, pick: { how: 'best', name: 'loss:-dash' },
        })""",
        f"{tasks[0]} accuracy",
    )
    settled(page)
    expected = front.select(at_least={f"{tasks[0]} accuracy": 0.5}, best="-dash").k
    assert selected(page) == marked(page)[1] == expected
    assert pm.Front.load(tmp_path / "run").tasks == tuple(tasks)
