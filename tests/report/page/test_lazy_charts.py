"""The page in a real browser: charts are drawn when they come near, or for paper, and always as they should be now."""

from __future__ import annotations

from typing import Any

import pytest

from _helpers.pages import page_front
from _helpers.screen import Opened, settled, two
from paretomtl.report.page import payload_of, view_of

pytestmark = pytest.mark.system
PLOTS = ("pair0", "pair1", "pair2", "hypervolumes", "losses", "weights")
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
    return page.evaluate("(ids) => ids.filter((id) => byId(id)._fullLayout)", [*PLOTS, "space", "plane"])


def come_to(page: Any, place: str) -> None:
    page.locator(f"#{place}").scroll_into_view_if_needed()
    page.wait_for_function("(id) => byId(id)._fullLayout && !waiting.has(id)", arg=place)
    settled(page)


def test_charts_are_drawn_when_somebody_comes_near(open_page: Opened) -> None:
    page = long_page(open_page)
    assert not {"losses", "weights", "space", "plane"} & set(drawn(page))
    heights = page.evaluate("() => document.documentElement.scrollHeight")
    for place in ("losses", "pair2"):
        come_to(page, place)
    assert page.locator("#losses .scatterlayer .lines path").count() >= 6
    assert page.locator("#pair2 .scatterlayer .points path").count() == 9 + 1
    assert page.evaluate("() => document.documentElement.scrollHeight") == heights, "nothing moves"


def test_a_tab_is_drawn_when_somebody_opens_it(open_page: Opened) -> None:
    page = open_page(view_of(page_front(9, ["x", "y", "z"]), "run", "run"), script=SPY)
    order = page.evaluate("() => order")
    assert set(order) >= {"pair0", "pair1", "pair2"}
    assert not {"space", "plane"} & set(order)
    assert len(order) == len(set(order)), "nothing is drawn twice"
    for tab in ("space", "plane"):
        page.locator(f"#tab-{tab}").click()
        page.wait_for_function("(id) => byId(id)._fullLayout && !waiting.has(id)", arg=tab)
        settled(page)
    assert page.locator("#plane .scatterlayer .points path").count() == 9 + 1


def test_a_step_of_a_slider_shows_text_and_mark_before_charts(open_page: Opened) -> None:
    page = open_page(view_of(page_front(25, 5), "run", "run"), script=SPY)
    seen = page.evaluate(
        """() => new Promise((done) => {
            const before = order.length;
            const slider = byId("slider0");
            slider.value = slider.max;
            slider.dispatchEvent(new Event("input"));
            requestAnimationFrame(() => requestAnimationFrame(() => done({
                headline: byId("headline").textContent, marked: document.querySelector("tr.marked").dataset.model,
                line: document.querySelector(`[data-line="0-${marked().i}"]`).getAttribute("stroke-width"),
                own: marked().i, charts: order.length - before,
            })));
        })"""
    )
    assert seen["headline"].startswith(f"Your choice: model {seen['own']}.")
    assert seen["marked"] == f"0-{seen['own']}"
    assert seen["line"] == "2.8"
    assert seen["charts"] == 0, "they come after"
    settled(page)
    assert page.evaluate("() => order.at(-1)") in ("plane", "losses", "weights", "hypervolumes")


@pytest.mark.parametrize("how", ["event", "media", "pdf"])
def test_paper_shows_all_charts(open_page: Opened, how: str) -> None:
    page = long_page(open_page)
    assert len(drawn(page)) < len(PLOTS)
    if how == "event":
        page.evaluate("() => window.dispatchEvent(new Event('beforeprint'))")
    elif how == "media":
        page.emulate_media(media="print")
        page.wait_for_function("() => !['losses', 'weights'].some((id) => waiting.has(id))")
    else:
        page.pdf()
    assert drawn(page) == list(PLOTS), "and nothing that is behind a tab"


def test_what_is_printed_is_what_was_chosen_last(open_page: Opened) -> None:
    page = long_page(open_page)
    come_to(page, "losses")
    page.evaluate("() => { window.scrollTo(0, 0); pickModel(0, 8); }")
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
    page.locator("#tab-space").click()
    page.wait_for_selector("#space canvas")
    come_to(page, "losses")
    page.evaluate("() => window.scrollTo(0, 0)")
    for count in (12, 15):
        longer = view_of(page_front(count, ["x", "y", "z"], epochs=10 * count), "run", "run")
        page.evaluate("(payload) => render(payload)", payload_of([longer]))
        come_to(page, "space")
        shown = page.evaluate("() => byId('space').data.flatMap((trace) => trace.customdata || []).length")
        assert shown == count
    for place in ("losses", "weights"):
        come_to(page, place)
        last = page.evaluate("(id) => byId(id).data[1].x.at(-1)", place)
        assert last == longer["history"]["epochs"][-1]
    page.locator("#tab-plane").click()
    come_to(page, "plane")
    assert page.locator("#plane .scatterlayer .points path").count() == 15 + 1


def test_charts_of_other_tasks_are_forgotten(open_page: Opened) -> None:
    """Three tasks become two, and none, before space was drawn."""
    page = open_page(*two())
    three = payload_of([view_of(page_front(9, ["x", "y", "z"]), "run", "run")])
    page.evaluate("([one, other]) => { render(one); render(other); }", [three, payload_of(two())])
    settled(page)
    assert not page.evaluate("() => waiting.has('pair0')")
    assert page.locator("#pair0").is_hidden()
    page.evaluate("([one, other]) => { render(one); render(other); }", [three, payload_of([])])
    page.evaluate("() => window.dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate("() => waiting.size") == 0
    page.evaluate("(payload) => render(payload)", three)
    settled(page)
    assert "pair0" in drawn(page)
