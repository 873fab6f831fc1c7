"""How large the page is, and how long it takes to open: 5 runs of 25 solutions, 500 epochs each.

    python benchmarks/page.py                 # writes benchmarks/results/page.json; needs Chromium and playwright
    python benchmarks/page.py --out FOLDER

Chromium, without a window and without a GPU, opens the file from disk in a new tab each time. Times go from the start
of the navigation to the frame after

- "first words": the first text is visible;
- "open": the front is visible and usable: text, sliders and tables are present, and the scatter plot of the front (with
  three tasks also the three projections; with five the parallel coordinates) is drawn;
- "in reach": all visible charts, and those up to one window further down, are drawn; with three tasks that includes the
  3D view, whose pixels are read back to be sure;
- "everything": all other charts are drawn, too, as for printing. Otherwise they are drawn lazily.

The CPU time of the page's main thread until "in reach" is measured, too: it does not depend on other work on the
machine. The tab is driven without a debugger, like those of users. With a debugger, which pages of Playwright have, V8
parses plotly's script again for errors that are caught while it loads; "open" is also measured with it. Two warm-up
rounds are not counted.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from playwright.sync_api import Browser, sync_playwright

from _helpers.browser import FLAGS, installed
from _helpers.pages import page_front
from paretomtl._support.imports.optional_packages import version_of
from paretomtl.compare import Row, environment, save_rows
from paretomtl.report import write_page

RUNS, SOLUTIONS, EPOCHS, TIMES, WARM_UP = 5, 25, 500, 10, 2
_WATCH = """
window.times = {};
(function look() {
  requestAnimationFrame(() => {
    const marks = document.querySelectorAll("#plane .scatterlayer .points path").length;
    const open = marks === MARKS && document.querySelectorAll("#solutions tbody tr").length === MARKS - 1;
    const reach = typeof Plotly === "object" && nextChart() === null;
    setTimeout(() => {
      const gl = reach ? document.querySelector("#space canvas")?.getContext("webgl") : null;
      if (gl) gl.readPixels(0, 0, 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, new Uint8Array(4));
      if (open) times.open ??= performance.now();
      if (reach && open) times.reach ??= performance.now();
      else look();
    });
  });
})();
"""
_ASK = """({
  ...times, first: performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? null,
  shaded: Boolean(document.querySelector("#space canvas")),
})"""
_REST = """new Promise((done) => {
  const start = performance.now();
  drawWaiting();
  requestAnimationFrame(() => setTimeout(() => done(performance.now() - start)));
})"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    out = parser.parse_args().out
    rows = []
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=installed(), args=list(FLAGS))
        for tasks in (2, 3, 5):
            rows.append(measure(browser, Path(folder), tasks))
            print(rows[-1])
        chromium = browser.version
        browser.close()
    common = environment()
    common["versions"] |= {"plotly": version_of("plotly"), "chromium": chromium}
    save_rows(out / "page.json", "page", "python benchmarks/page.py", [{**row, **common} for row in rows])


def measure(browser: Browser, folder: Path, tasks: int) -> Row:
    runs = []
    for seed in range(RUNS):
        front = page_front(SOLUTIONS, tasks, seed=seed, shift=0.02 * seed, epochs=EPOCHS)
        front.save(folder / f"{tasks}-{seed}")
        runs.append(folder / f"{tasks}-{seed}")
    path = write_page(runs, folder / f"{tasks}.html")
    times = [opened(browser, path, tasks) for _ in range(WARM_UP + TIMES)][WARM_UP:]
    debugged = [opened(browser, path, tasks, debugged=True) for _ in range(WARM_UP + TIMES)][WARM_UP:]
    opens = sorted(each.open for each in times)
    return {
        "what": "open the page",
        "tasks": tasks,
        "runs": RUNS,
        "solutions": SOLUTIONS,
        "epochs": EPOCHS,
        "bytes": path.stat().st_size,
        "times": TIMES,
        "first_words_milliseconds": round(statistics.median(each.first for each in times)),
        "milliseconds": round(statistics.median(opens)),
        "milliseconds_least": round(opens[0]),
        "milliseconds_most": round(opens[-1]),
        "debugged_milliseconds": round(statistics.median(each.open for each in debugged)),
        "in_reach_milliseconds": round(statistics.median(each.reach for each in times)),
        "everything_milliseconds": round(statistics.median(each.everything for each in times)),
        "cpu_milliseconds": round(statistics.median(each.cpu for each in times)),
        "load": round(os.getloadavg()[0], 1),
    }


@dataclass(frozen=True)
class Opening:
    """Milliseconds until each stage, and of CPU time."""

    first: float
    open: float
    reach: float
    everything: float
    cpu: float


class Tab:
    """A tab of the browser's own context, in which Playwright does not enable a debugger."""

    def __init__(self, browser: Browser) -> None:
        self._session: Any = browser.new_browser_cdp_session()
        self._answers: dict[int, Any] = {}
        self._session.on("Target.receivedMessageFromTarget", self._receive)
        self._target = self._session.send("Target.createTarget", {"url": "about:blank"})["targetId"]
        attached = self._session.send("Target.attachToTarget", {"targetId": self._target, "flatten": False})
        self._id, self._asked = attached["sessionId"], 0

    def _receive(self, event: Any) -> None:
        answer = json.loads(event["message"])
        if "id" in answer:
            self._answers[answer["id"]] = answer

    def ask(self, method: str, **params: Any) -> Any:
        self._asked += 1
        message = json.dumps({"id": self._asked, "method": method, "params": params})
        self._session.send("Target.sendMessageToTarget", {"sessionId": self._id, "message": message})
        while self._asked not in self._answers:
            self._session.send("Target.getTargets")  # answers of the tab come with those of the browser
            time.sleep(0.02)
        answer = self._answers.pop(self._asked)
        if "error" in answer:
            raise RuntimeError(f"'{method}' must succeed. Got {answer['error']} instead.")
        return answer["result"]

    def value(self, expression: str) -> Any:
        found = self.ask("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in found:
            raise RuntimeError(f"The page must not fail. Got {found['exceptionDetails']} instead.")
        return found["result"].get("value")

    def close(self) -> None:
        self._session.send("Target.closeTarget", {"targetId": self._target})
        self._session.detach()


def opened(browser: Browser, path: Path, tasks: int, *, debugged: bool = False) -> Opening:
    tab = Tab(browser)
    if debugged:
        tab.ask("Runtime.enable")
    tab.ask("Emulation.setDeviceMetricsOverride", width=1280, height=900, deviceScaleFactor=1, mobile=False)
    tab.ask("Page.enable")
    tab.ask("Page.addScriptToEvaluateOnNewDocument", source=_WATCH.replace("MARKS", str(RUNS * SOLUTIONS + 1)))
    tab.ask("Performance.enable", timeDomain="threadTicks")
    tab.ask("Page.navigate", url=path.as_uri())
    found, until = {}, time.monotonic() + 60
    while found.get("reach") is None:
        time.sleep(0.3)
        found = tab.value(_ASK)
        if time.monotonic() > until:
            raise RuntimeError(f"'{path}' must show {RUNS * SOLUTIONS} solutions. Got {found} after a minute instead.")
    if found["shaded"] != (tasks == 3):
        raise RuntimeError(f"'{path}' must have a view in space for three tasks alone. Got {found} instead.")
    metrics = {each["name"]: each["value"] for each in tab.ask("Performance.getMetrics")["metrics"]}
    rest = tab.value(_REST)
    tab.close()
    first = found["open"] if found["first"] is None else found["first"]
    return Opening(first, found["open"], found["reach"], found["reach"] + rest, 1e3 * metrics["TaskDuration"])


if __name__ == "__main__":
    main()
