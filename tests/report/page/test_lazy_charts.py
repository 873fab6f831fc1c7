"""The page in a real browser: charts are drawn when they come near, or for paper, and always as they should be now."""

from __future__ import annotations

from typing import Any

import pytest

from _helpers.pages import page_front
from _helpers.screen import Opened, settled, two
from paretomtl.report.page import payload_of, view_of

pytestmark = pytest.mark.system
PLOTS = ("space", "pair0", "pair1", "pair2", "plane", "losses", "weights")
SPY = """
window.order = [];
let found;
Object.defineProperty(window, "Plotly", {
    get: () => found,
    set: (made) => {
        const { react } = made;
        made.react = (place, ...rest) => { window.order.push(place.id); return react(place, ...rest); };
        found = made;
    },
});
"""


def long_page(open_page: Opened, **options: Any) -> Any:
    """Three tasks on a narrow screen, many windows long."""
    return open_page(view_of(page_front(9, ["x", "y", "z"]), "run", "run"), width=360, **options)


def drawn(page: Any) -> list[str]:
    return page.evaluate("(ids) => ids.filter((id) => byId(id)._fullLayout)", list(PLOTS))


def come_to(page: Any, place: str) -> None:
    page.locator(f"#{place}").scroll_into_view_if_needed()
    page.wait_for_function("(id) => byId(id)._fullLayout && !waiting.has(id)", arg=place)
    settled(page)


def test_charts_are_drawn_when_somebody_comes_near(open_page: Opened) -> None:
    page = long_page(open_page)
    assert "space" in drawn(page)
    assert not {"plane", "losses", "weights"} & set(drawn(page))
    heights = page.evaluate("() => document.documentElement.scrollHeight")
    for place in ("losses", "plane"):
        come_to(page, place)
    assert page.locator("#losses .scatterlayer .lines path").count() >= 6
    assert page.locator("#plane .scatterlayer .points path").count() == 9 + 1
    assert page.evaluate("() => document.documentElement.scrollHeight") == heights, "nothing moves"


def test_space_is_drawn_after_all_else_in_reach(open_page: Opened) -> None:
    page = open_page(view_of(page_front(9, ["x", "y", "z"]), "run", "run"), script=SPY)
    order = page.evaluate("() => order")
    assert order[-1] == "space"
    assert set(order) >= {"pair0", "pair1", "pair2", "plane", "space"}
    assert len(order) == len(set(order)), "nothing is drawn twice"
    page.locator("#slider0").fill("1000")
    settled(page)
    again = page.evaluate("() => order")[len(order) :]
    assert again.index("space") < again.index("plane"), "later it has its turn like any other"


@pytest.mark.parametrize("how", ["event", "media", "pdf"])
def test_paper_shows_all_charts(open_page: Opened, how: str) -> None:
    page = long_page(open_page)
    assert len(drawn(page)) < len(PLOTS)
    if how == "event":
        page.evaluate("() => window.dispatchEvent(new Event('beforeprint'))")
    elif how == "media":
        page.emulate_media(media="print")
        page.wait_for_function("() => waiting.size === 0")
    else:
        page.pdf()
    assert drawn(page) == list(PLOTS)


def test_what_is_printed_is_what_was_chosen_last(open_page: Opened) -> None:
    page = long_page(open_page)
    come_to(page, "losses")
    page.evaluate("() => { window.scrollTo(0, 0); pickSolution(0, 8); }")
    settled(page)
    page.evaluate("() => window.dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate("() => byId('losses').data[1].y") == page.evaluate(
        "() => curve(payload.runs[0].history, 'losses', 8, 0)"
    )


def test_a_theme_that_is_switched_before_a_chart_is_drawn(open_page: Opened) -> None:
    page = long_page(open_page, color_scheme="dark")
    page.locator("#theme").click()
    settled(page)
    come_to(page, "losses")
    assert page.evaluate("() => [byId('losses')._fullLayout.font.color, ink('muted')]") == ["#5c6166", "#5c6166"]
    page.evaluate("() => { window.scrollTo(0, 0); change({ theme: 'dark' }); }")
    settled(page)
    come_to(page, "losses")
    assert page.evaluate("() => byId('losses')._fullLayout.font.color") == "#a3a8ad"


def test_news_reach_charts_out_of_sight(open_page: Opened) -> None:
    """As a page that is watched gets them: those drawn before and those not drawn yet, space too."""
    page = long_page(open_page)
    come_to(page, "losses")
    page.evaluate("() => window.scrollTo(0, 0)")
    for count in (12, 15):
        longer = view_of(page_front(count, ["x", "y", "z"], epochs=10 * count), "run", "run")
        page.evaluate("(payload) => render(payload)", payload_of([longer]))
        settled(page)
        shown = page.evaluate("() => byId('space').data.flatMap((trace) => trace.customdata || []).length")
        assert shown == count
    for place in ("losses", "weights"):
        come_to(page, place)
        last = page.evaluate("(id) => byId(id).data[1].x.at(-1)", place)
        assert last == longer["history"]["epochs"][-1]
    come_to(page, "plane")
    assert page.locator("#plane .scatterlayer .points path").count() == 15 + 1


def test_charts_of_other_tasks_are_forgotten(open_page: Opened) -> None:
    """Three tasks become two, and none, before space was drawn."""
    page = open_page(*two())
    three = payload_of([view_of(page_front(9, ["x", "y", "z"]), "run", "run")])
    page.evaluate("([one, other]) => { render(one); render(other); }", [three, payload_of(two())])
    settled(page)
    assert not page.evaluate("() => waiting.has('space')")
    assert "space" not in drawn(page)
    page.evaluate("([one, other]) => { render(one); render(other); }", [three, payload_of([])])
    page.evaluate("() => window.dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate("() => waiting.size") == 0
    page.evaluate("(payload) => render(payload)", three)
    settled(page)
    assert "space" in drawn(page)
