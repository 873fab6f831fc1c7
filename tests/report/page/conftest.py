from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from _helpers.browser import Errors, chromium
from _helpers.screen import Opened, settled, two
from paretomtl.report.page import View, page_text, payload_of


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


@pytest.fixture
def open_page(browser: Any, tmp_path: Path) -> Iterator[Opened]:
    """Opens views as a page, ready when all charts in reach are drawn; no page may complain."""
    errors = Errors()
    contexts = []

    def opened(*views: View, title: str | None = None, width: int = 1280, script: str = "", **options: Any) -> Any:
        path = tmp_path / f"page{len(contexts)}.html"
        path.write_text(page_text(payload_of(views, title)), encoding="utf-8")
        context = browser.new_context(viewport={"width": width, "height": 900}, **options)
        contexts.append(context)
        context.add_init_script(script)
        page = context.new_page()
        errors.listen(page)
        page.goto(path.as_uri())
        settled(page)
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
        page.evaluate("() => window.scrollTo(0, 0)")
        page.evaluate("(payload) => render(payload)", payload_of(views))
        settled(page)
        return page

    yield shown
    assert not errors
