"""Queries of a page in a browser."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from _helpers.pages import page_front
from paretomtl.report.page import View, view_of

Opened: TypeAlias = Callable[..., Any]
"""Shows views as a page."""


def settled(page: Any) -> None:
    """Wait until all charts in reach are drawn."""
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    page.wait_for_function("() => loaded && nextChart() === null")


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
