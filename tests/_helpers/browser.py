"""A real browser for the tests: Chromium, driven by Playwright; skips, with the reason, if there is none."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FLAGS = (
    "--no-sandbox",
    "--enable-unsafe-swiftshader",
    "--use-gl=angle",
    "--use-angle=swiftshader",
    "--disable-gpu-compositing",  # only 3D charts need OpenGL, which is slow without a GPU
)


def installed() -> str | None:
    """The browser to drive: $CHROMIUM, or one that is installed; None leaves it to Playwright."""
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


@contextmanager
def chromium() -> Iterator[Any]:
    """Chromium without a window."""
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    with playwright.sync_playwright() as driver:
        try:
            browser = driver.chromium.launch(executable_path=installed(), args=list(FLAGS))
        except playwright.Error as error:
            pytest.skip(f"no Chromium that runs here: {str(error).splitlines()[0]}")
        try:
            yield browser
        finally:
            browser.close()


class Errors(list[str]):
    """Errors and warnings of a page; those about slow software rendering are ignored."""

    def listen(self, page: Any) -> None:
        """Collect from now on: errors and warnings on the console, exceptions, and every request but the page's own."""
        page.on("console", lambda said: self._add(said.type, said.text))
        page.on("pageerror", lambda error: self.append(f"exception: {error}"))
        page.on("request", self._ask)

    def _add(self, kind: str, text: str) -> None:
        slow = "GPU stall" in text or "willReadFrequently" in text
        if kind in ("error", "warning", "trace") and not slow:
            self.append(f"{kind}: {text}")

    def _ask(self, asked: Any) -> None:
        if not asked.url.startswith(("file:", "data:", "blob:")):
            self.append(f"request: {asked.url}")
