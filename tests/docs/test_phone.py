"""The built site in a real browser: no page is wider than a phone, and none needs the network."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from _helpers.browser import chromium
from _helpers.doc_pages import PAGES, name
from _helpers.places import DOCS, ROOT

SITE = ROOT / "out" / "docs"


@pytest.fixture(scope="module")
def phone() -> Iterator[Any]:
    """A page of a browser, as narrow as a phone."""
    if not (SITE / "index.html").is_file():
        pytest.skip("no built documentation: run `make docs` first")
    with chromium() as browser:
        page = browser.new_page(viewport={"width": 390, "height": 844})
        yield page


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_a_page_fits_a_phone_without_the_network(path: Any, phone: Any) -> None:
    asked: list[str] = []
    phone.on("request", lambda request: asked.append(request.url))
    phone.goto((SITE / path.relative_to(DOCS)).with_suffix(".html").as_uri())
    assert phone.evaluate("document.documentElement.scrollWidth") <= 390
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
