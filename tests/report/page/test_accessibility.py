"""The page for everybody: axe-core finds nothing serious, and every control works without a mouse."""

from __future__ import annotations

from typing import Any

import pytest

from _helpers.pages import page_front
from _helpers.screen import Opened, settled, two
from paretomtl.report.page import view_of

pytestmark = pytest.mark.system
FOLDS = "() => document.querySelectorAll('details').forEach((fold) => { fold.open = true; })"


def findings(page: Any) -> list[str]:
    """What axe-core finds that is serious or critical, with the elements."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed").Axe()
    result = axe.run(page).response["violations"]
    return [
        f"{found['id']}: {node['target']} {node['failureSummary']}"
        for found in result
        if found["impact"] in ("serious", "critical")
        for node in found["nodes"]
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("tasks", "width"), [(2, 1440), (3, 1024), (5, 1440), (5, 390)])
def test_nothing_serious_is_found(open_page: Opened, tasks: int, width: int, scheme: str) -> None:
    fronts = [page_front(7, tasks), page_front(7, tasks, seed=1, shift=0.1, method="linear", reading="importance")]
    views = [view_of(front, name, name) for front, name in zip(fronts, ("first", "second"), strict=True)]
    page = open_page(*views, width=width, color_scheme=scheme, bypass_csp=True)
    assert findings(page) == []
    page.evaluate(FOLDS)
    page.evaluate("() => change({ limits: { 'task 0 accuracy': { least: 0.6, most: null } } })")
    settled(page)
    assert findings(page) == []
    page.evaluate("() => change({ limits: { 'task 0 accuracy': { least: 0.9999, most: null } } })")
    settled(page)
    assert findings(page) == []


def test_a_finding_would_be_seen(open_page: Opened) -> None:
    page = open_page(*two(), bypass_csp=True)
    page.evaluate("() => byId('slider').removeAttribute('aria-label')")
    assert any("slider" in found for found in findings(page))


@pytest.mark.parametrize("tasks", [2, 3, 5])
def test_every_control_is_reached_by_the_keyboard(open_page: Opened, tasks: int) -> None:
    """Tab visits every control that can be seen; focus is never lost on the way."""
    page = open_page(view_of(page_front(4, tasks), "run", "run"))
    page.evaluate(FOLDS)
    count = page.evaluate(
        """() => {
            const kinds = "button, input:not([type=radio]), select, summary, [tabindex='0']";
            const seen = [...document.querySelectorAll(kinds)].filter((one) =>
                one.checkVisibility() && !one.disabled && one.tabIndex >= 0 && !one.closest(".modebar"));
            seen.forEach((one, at) => { one.dataset.reach = at; });
            return seen.length;
        }"""
    )
    assert count > 20
    reached = set()
    page.evaluate("() => { document.activeElement.blur(); window.scrollTo(0, 0); }")
    for _ in range(3 * count):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("() => document.activeElement.dataset.reach ?? null"))
        if len(reached - {None}) == count:
            break
    assert len(reached - {None}) == count
