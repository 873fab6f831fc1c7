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
    """The solutions as the table has them."""
    return str(page.inner_text("#solutions"))


def news(page: Any, state: str) -> str:
    """What is said of the run, as soon as it is in this state."""
    page.wait_for_selector(f'#news p[data-state="{state}"]', timeout=60_000)
    return str(page.inner_text("#news"))


def moved(page: Any) -> None:
    """Wait until the front is another one than now."""
    page.wait_for_function(
        "before => document.getElementById('solutions').innerText !== before", arg=cells(page), timeout=60_000
    )


def test_a_front_is_seen_to_form(page: Any, errors: Errors, served: PageServer, tmp_path: Path) -> None:
    page.goto(served.url)
    assert "no run yet" in news(page, "waiting")
    with training(tmp_path / "run") as process:
        assert "last news" in news(page, "training")
        page.wait_for_selector("#main:not([hidden])", timeout=60_000)
        moved(page)
        assert page.locator("#export").is_hidden(), "there is nothing to export yet"
        page.click("#solutions tbody tr >> nth=2")
        page.wait_for_function("() => document.getElementById('lede').innerText.includes('which you picked')")
        chosen = page.inner_text("#lede strong")
        moved(page)
        assert page.inner_text("#lede strong") == chosen, "the user's choice stays"
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
    assert page.inner_text("#lede strong") == chosen
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
    page.locator("#solutions tbody tr >> nth=2").scroll_into_view_if_needed()
    page.locator("#solutions tbody tr >> nth=2").hover()
    before = cells(page)
    page.mouse.down()
    with (tmp_path / "run" / "log.jsonl").open("a") as file:
        file.write(lines[3])
    page.wait_for_function("() => served.waiting")
    assert cells(page) == before, "nothing is drawn anew under the finger"
    page.mouse.up()
    page.wait_for_function(
        "() => document.getElementById('lede').innerText.includes('which you picked')", timeout=10_000
    )
    page.wait_for_function("before => document.getElementById('solutions').innerText !== before", arg=before)


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
    page.wait_for_function("before => document.getElementById('solutions').innerText !== before", arg=before)
    page.locator("#losses").scroll_into_view_if_needed()
    page.wait_for_function("() => byId('losses').data?.[1].x.length === payload.runs[0].history.epochs.length")
    assert [each for each in errors if not each.startswith(f"request: {served.url}")] == []


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
    assert "finished" in page.inner_text("#news")


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
