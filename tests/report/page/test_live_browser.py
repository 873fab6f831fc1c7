"""The live page in a real browser, with a run in another process."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from _helpers.browser import Errors, chromium
from _helpers.runs import training
from paretomtl.report.page import PageServer, Watched
from report.page.test_live import cut, fit

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


@pytest.fixture
def errors() -> Errors:
    return Errors()


@pytest.fixture
def page(browser: Any, errors: Errors) -> Iterator[Any]:
    made = browser.new_page()
    errors.listen(made)
    yield made
    made.close()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[PageServer]:
    """The page of the folder "run", which is not there yet."""
    with PageServer(Watched([tmp_path / "run"])) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def cells(page: Any) -> str:
    """The models as the table has them."""
    return str(page.inner_text("#models"))


def news(page: Any, state: str) -> str:
    """What is said of the run, as soon as it is in this state."""
    page.wait_for_selector(f'#progress [data-state="{state}"]', timeout=60_000)
    return str(page.inner_text("#progress"))


def moved(page: Any) -> None:
    """Wait until the front is another one than now."""
    page.wait_for_function(
        "before => document.getElementById('models').innerText !== before", arg=cells(page), timeout=60_000
    )


def test_a_front_is_seen_to_form(page: Any, errors: Errors, served: PageServer, tmp_path: Path) -> None:
    page.goto(served.url)
    assert "no run yet" in news(page, "waiting")
    with training(tmp_path / "run") as process:
        assert "last news" in news(page, "training")
        page.wait_for_function("() => document.querySelector('#progress').innerText.includes('left, last news')")
        page.wait_for_function("() => document.querySelector('progress').position > 0")
        page.wait_for_selector("#main:not([hidden])", timeout=60_000)
        moved(page)
        assert page.locator("#export").is_hidden(), "there is nothing to export yet"
        page.click("#models tbody tr >> nth=2")
        page.wait_for_function("() => document.getElementById('headline').innerText.includes('Your choice')")
        chosen = page.inner_text("#chosen-name")
        moved(page)
        assert page.inner_text("#chosen-name") == chosen, "the user's choice stays"
        process.send_signal(signal.SIGKILL)
        process.wait()
        said = news(page, "broken")
    assert "no news for" in said
    assert "the process is gone" in said
    with training(tmp_path / "run") as process:
        news(page, "training")
        moved(page)
        process.send_signal(signal.SIGINT)
        process.wait()
        assert "stopped" in news(page, "stopped")
        assert page.locator("#export").is_visible()
    assert page.inner_text("#chosen-name") == chosen
    assert [each for each in errors if not each.startswith(f"request: {served.url}")] == [], (
        "nobody else is asked, nothing complains"
    )


def test_news_do_not_swallow_a_click(page: Any, served: PageServer, tmp_path: Path) -> None:
    """They come between press and release; the row that was pressed is the one that is picked."""
    fit(tmp_path / "run")
    lines = cut(tmp_path / "run", 3)
    page.goto(served.url)
    page.wait_for_selector("#main:not([hidden])")
    page.wait_for_function("() => served.tag !== null")
    page.locator("#models tbody tr >> nth=2").scroll_into_view_if_needed()
    page.locator("#models tbody tr >> nth=2").hover()
    before = cells(page)
    page.mouse.down()
    with (tmp_path / "run" / "log.jsonl").open("a") as file:
        file.write(lines[3])
    page.wait_for_function("() => served.waiting")
    assert cells(page) == before, "nothing is drawn anew under the finger"
    page.mouse.up()
    page.wait_for_function(
        "() => document.getElementById('headline').innerText.includes('Your choice')", timeout=10_000
    )
    page.wait_for_function("before => document.getElementById('models').innerText !== before", arg=before)


def test_news_reach_charts_out_of_sight(page: Any, errors: Errors, served: PageServer, tmp_path: Path) -> None:
    fit(tmp_path / "run")
    lines = cut(tmp_path / "run", 3)
    page.set_viewport_size({"width": 360, "height": 300})
    page.goto(served.url)
    page.wait_for_selector("#main:not([hidden])")
    assert page.evaluate("() => waiting.has('losses')")
    before = cells(page)
    with (tmp_path / "run" / "log.jsonl").open("a") as file:
        file.write(lines[3])
    page.wait_for_function("before => document.getElementById('models').innerText !== before", arg=before)
    page.locator("#losses").scroll_into_view_if_needed()
    page.wait_for_function("() => byId('losses').data?.[1].x.length === payload.runs[0].history.epochs.length")
    assert [each for each in errors if not each.startswith(f"request: {served.url}")] == []


def test_axes_stay_while_points_move_within_them(page: Any, served: PageServer, tmp_path: Path) -> None:
    """They change when a point leaves them, or when points fill less than half of them."""
    fit(tmp_path / "run")
    cut(tmp_path / "run", 3)
    page.goto(served.url)
    page.wait_for_selector("#main:not([hidden])")
    held = "([low, high]) => steady('axis', [low, high])"
    assert page.evaluate(held, [0.0, 1.0]) == [0.0, 1.0]
    assert page.evaluate(held, [0.1, 0.8]) == [0.0, 1.0]
    assert page.evaluate(held, [0.1, 1.1]) == [0.1, 1.1]
    assert page.evaluate(held, [0.2, 0.6]) == [0.2, 0.6]
    page.evaluate("() => { payload.live = null; }")
    assert page.evaluate(held, [0.3, 0.6]) == [0.3, 0.6], "a page of stored runs has nothing to hold"


def test_a_hidden_page_does_not_ask(page: Any, served: PageServer, tmp_path: Path) -> None:
    fit(tmp_path / "run", epochs=2)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(served.url)
    news(page, "finished")
    hide = """value => {
        Object.defineProperty(document, "hidden", { value, configurable: true });
        document.dispatchEvent(new Event("visibilitychange"));
    }"""
    page.evaluate(hide, True)
    page.wait_for_timeout(1500)
    before = len(asked)
    page.wait_for_timeout(2500)
    assert len(asked) == before
    with page.expect_request("**/data.json"):
        page.evaluate(hide, False)


def test_a_server_that_ended_is_said(page: Any, tmp_path: Path) -> None:
    fit(tmp_path / "run", epochs=2)
    with PageServer(Watched([tmp_path / "run"])) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        page.goto(server.url)
        news(page, "finished")
        server.shutdown()
        thread.join()
    assert "The server does not answer" in news(page, "lost")
    assert "finished" in page.inner_text("#progress")


def test_hostile_names_are_text(page: Any, errors: Errors, served: PageServer, tmp_path: Path) -> None:
    fit(tmp_path / "run")
    lines = cut(tmp_path / "run", 3)
    hostile = "<img src=x onerror=document.title='hit'></script><script>document.title='hit'</script>"
    path = tmp_path / "run" / "config.json"
    path.write_text(
        json.dumps({**json.loads(path.read_text()), "tasks": [hostile, "b"], "problem": "</title>" + hostile})
    )
    page.goto(served.url)
    page.wait_for_selector("#main:not([hidden])")
    with (tmp_path / "run" / "log.jsonl").open("a") as file:
        file.write(lines[3])
    moved(page)
    assert page.locator("img[src=x]").count() == 0
    assert page.title() != "hit"
    assert [each for each in errors if not each.startswith(f"request: {served.url}")] == [], (
        "nobody else is asked, nothing complains"
    )
