"""How large the page is, how long it takes to open, and how soon it answers a slider.

    python benchmarks/page.py                 # writes benchmarks/results/page.json; needs Chromium and playwright
    python benchmarks/page.py --out FOLDER

Chromium, without a window and without a GPU, opens the file from disk in a new tab each time. The tab is driven without
a debugger, like those of users. Two warm-up rounds are not counted. There are three kinds of rows.

"open the page": 5 runs of 25 models, 500 epochs each. Times go from the start of the navigation to the frame after

- "first words": the first text is visible;
- "open": the front is visible and usable: text, sliders and tables are present, and the models are drawn: in the plane
  for two tasks, in three projections for three, in parallel coordinates and in the plane for more;
- "in reach": all visible charts, and those up to one window further down, are drawn;
- "everything": all other charts are drawn, too, as for printing. Otherwise they are drawn lazily.

With three tasks, "space" is the time from a click on its tab until the 3D view is drawn; its pixels are read back to be
sure. The CPU time of the page's main thread until "in reach" is measured, too: it does not depend on other work on the
machine. With a debugger, which pages of Playwright have, V8 parses plotly's script again for errors that are caught
while it loads; "open" is also measured with it.

"a slider step": a slider goes through all of its stops. Times go from the "input" event to the end of the frame

- in which the headline has changed, and the marked row, line and tick have moved;
- after which all charts in reach are drawn again.

"In a drag", events come every 50 ms, whether the charts are drawn or not. The time then goes from the moment at which
an event was due, and includes the wait for a chart that was being drawn. If the next event is due before an overdue one
is handled, the overdue one is left out, as by a browser.

"a hostile page": 20 runs of 125 models, 8 tasks, 500 epochs, with names that are markup, formulas, right-to-left text
or far too long. The page should stay below 6 MB and open within two seconds. It must run nothing of these names, and
send no request.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
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
from paretomtl.front import Front
from paretomtl.report import write_page

RUNS, SOLUTIONS, EPOCHS, TIMES, WARM_UP = 5, 25, 500, 10, 2
DUE = 50  # milliseconds between two events of a drag
MOST_BYTES, MOST_OPEN, MOST_STEP = 6_000_000, 2_000, 100  # targets
HOSTILE = (
    "<script>window.hit=1</script>",
    "$y$ <img src=x onerror=window.hit=1> \"q\" 'q' & %{x}",
    "\u05e9\u05dc\u05d5\u05dd \u05e2\u05d5\u05dc\u05dd",
    "long " * 60,
    "</title><b onclick=window.hit=1>bold",
    "\u2028\u202eright to left",
    "https://example.com/a?b=c#d",
    "'; -- $(touch hit) `touch hit`",
)
_WATCH = """
window.times = {};
window.refused = 0;
addEventListener("securitypolicyviolation", () => { refused += 1; });
(function look() {
  requestAnimationFrame(() => {
    const count = (selector) => document.querySelectorAll(selector).length;
    const drawn = CHARTS.every((id) => count(`#${id} .scatterlayer .points path`) === MODELS + 1);
    const open = drawn && count("#models tbody tr") === ROWS && count("svg.parallel .line") === LINES;
    const reach = typeof Plotly === "object" && loaded && nextChart() === null;
    setTimeout(() => {
      if (open) times.open ??= performance.now();
      if (reach && open) times.reach ??= performance.now();
      else look();
    });
  });
})();
"""
_ASK = """({
  ...times, first: performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? null,
  hit: window.hit ?? null, refused,
})"""
_REST = """new Promise((done) => {
  const start = performance.now();
  drawWaiting();
  requestAnimationFrame(() => setTimeout(() => done(performance.now() - start)));
})"""
_SPACE = """new Promise((done) => {
  const start = performance.now();
  document.getElementById("tab-space").click();
  (function look() {
    requestAnimationFrame(() => setTimeout(() => {
      const gl = nextChart() === null ? document.querySelector("#space canvas")?.getContext("webgl") : null;
      if (!gl) return look();
      gl.readPixels(0, 0, 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, new Uint8Array(4));
      done(performance.now() - start);
    }));
  })();
})"""
_STEPS = """(async () => {
  const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  const slider = document.getElementById("SLIDER");
  const go = (stop) => {
    slider.value = stop;
    slider.dispatchEvent(new Event("input", { bubbles: true }));
  };
  const seen = () => [
    document.getElementById("headline").textContent,
    document.querySelector("tr.marked")?.dataset.model,
    document.querySelector("polyline.line[stroke-width='2.8']")?.getAttribute("points"),
    document.querySelector(".tick.on")?.style.left,
  ];
  const changed = (before, stop) => {
    const still = seen().findIndex((now, at) => now === before[at] && now !== undefined);
    if (still >= 0) throw new Error(`stop ${stop} must move everything; ${before[still]} stayed`);
  };
  const stops = [...Array(Number(slider.max) + 1).keys()];
  go(0);
  do await frame(); while (nextChart() !== null);
  const found = { stops: stops.length, painted: [], drawn: [], drag: [] };
  for (const stop of stops.slice(1)) {
    const before = seen();
    const start = performance.now();
    go(stop);
    await frame();
    found.painted.push(performance.now() - start);
    changed(before, stop);
    while (nextChart() !== null) await frame();
    found.drawn.push(performance.now() - start);
  }
  const start = performance.now();
  const due = () => Math.floor((performance.now() - start) / DUE);
  for (let at = 0; at < 2 * stops.length; at = due()) {
    go(at < stops.length ? stops.length - 1 - at : at - stops.length);
    await frame();
    found.drag.push(performance.now() - start - at * DUE);
    while (due() === at) await new Promise((done) => setTimeout(done, 1));
  }
  return found;
})()"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    out = parser.parse_args().out
    rows = []
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=installed(), args=list(FLAGS))
        for tasks in (2, 3, 5):
            rows.append(measure_opening(browser, Path(folder), tasks))
            print(rows[-1])
        for tasks, models, runs in ((5, 125, 1), (2, 25, RUNS)):
            rows.append(measure_slider(browser, Path(folder), tasks, models, runs))
            print(rows[-1])
        rows.append(measure_hostile(browser, Path(folder)))
        print(rows[-1])
        chromium = browser.version
        browser.close()
    common = environment()
    common["versions"] |= {"plotly": version_of("plotly"), "chromium": chromium}
    save_rows(out / "page.json", "page", "python benchmarks/page.py", [{**row, **common} for row in rows])
    print("\n".join(missed(rows)) or "All targets are met.")


def missed(rows: list[Row]) -> list[str]:
    """The targets that were missed, in words."""
    limits = {
        "open the page": {"milliseconds": MOST_OPEN, "bytes": MOST_BYTES},
        "a slider step": {"milliseconds": MOST_STEP, "milliseconds_95": MOST_STEP},
        "a hostile page": {"milliseconds": MOST_OPEN, "bytes": MOST_BYTES},
    }
    return [
        f"Missed: {row['what']}, {row['tasks']} tasks: '{name}' must be below {most:,}. Got {row[name]:,}."
        for row in rows
        for name, most in limits[row["what"]].items()
        if row[name] >= most
    ]


def measure_opening(browser: Browser, folder: Path, tasks: int) -> Row:
    page = Page(write_fronts(folder, tasks, SOLUTIONS, RUNS), tasks, RUNS * SOLUTIONS, RUNS * SOLUTIONS)
    times = [opened(browser, page) for _ in range(WARM_UP + TIMES)][WARM_UP:]
    debugged = [opened(browser, page, debugged=True) for _ in range(WARM_UP + TIMES)][WARM_UP:]
    return {
        "what": "open the page",
        "tasks": tasks,
        "runs": RUNS,
        "solutions": SOLUTIONS,
        "epochs": EPOCHS,
        **summary(page, times),
        "debugged_milliseconds": middle(each.open for each in debugged),
        "space_milliseconds": middle(each.space for each in times) if tasks == 3 else None,
        "load": round(os.getloadavg()[0], 1),
    }


def measure_slider(browser: Browser, folder: Path, tasks: int, models: int, runs: int) -> Row:
    page = Page(write_fronts(folder, tasks, models, runs), tasks, runs * models, runs * models)
    slider = "slider" if tasks == 2 else "slider0"
    found = [stepped(browser, page, slider) for _ in range(1 + TIMES)][1:]
    row: Row = {"what": "a slider step", "tasks": tasks, "runs": runs, "solutions": models, "epochs": EPOCHS}
    row |= {"times": TIMES, "stops": found[0]["stops"]}
    for name, key in (("", "painted"), ("drawn_", "drawn"), ("drag_", "drag")):
        row[f"{name}milliseconds"] = middle((share(each[key], 0.5) for each in found), 1)
        row[f"{name}milliseconds_95"] = middle((share(each[key], 0.95) for each in found), 1)
    return row | {"load": round(os.getloadavg()[0], 1)}


def measure_hostile(browser: Browser, folder: Path) -> Row:
    runs, models, tasks = 20, 125, len(HOSTILE)
    names = [f"{k} {HOSTILE[k % tasks]}" for k in range(models)]
    folders = []
    for seed in range(runs):
        method, name = HOSTILE[seed % 4], HOSTILE[seed % tasks].replace("/", "")[:80]
        fields = {"epochs": EPOCHS, "method": method, "problem": HOSTILE[0], "names": names}
        front = page_front(models, HOSTILE, seed=seed, shift=0.02 * seed, **fields)
        folders.append(stored(front, folder / f"{seed} {name}"))
    start = time.perf_counter()
    path = write_page(folders, folder / "hostile.html", title=HOSTILE[0])
    seconds = time.perf_counter() - start
    page = Page(path, tasks, runs * models, models)
    times = [opened(browser, page) for _ in range(WARM_UP + TIMES)][WARM_UP:]
    return {
        "what": "a hostile page",
        "tasks": tasks,
        "runs": runs,
        "solutions": models,
        "epochs": EPOCHS,
        **summary(page, times),
        "requests": count_requests(browser, page),
        "write_seconds": round(seconds, 1),
        "load": round(os.getloadavg()[0], 1),
    }


def write_fronts(folder: Path, tasks: int, models: int, runs: int) -> Path:
    folders = []
    for seed in range(runs):
        front = page_front(models, tasks, seed=seed, shift=0.02 * seed, epochs=EPOCHS)
        folders.append(stored(front, folder / f"{tasks}-{models}-{seed}"))
    return write_page(folders, folder / f"{tasks}-{models}-{runs}.html")


def stored(front: Front, folder: Path) -> Path:
    front.save(folder)
    return folder


def summary(page: Page, times: list[Opening]) -> Row:
    opens = sorted(each.open for each in times)
    return {
        "bytes": page.path.stat().st_size,
        "times": len(times),
        "first_words_milliseconds": middle(each.first for each in times),
        "milliseconds": middle(opens),
        "milliseconds_least": round(opens[0]),
        "milliseconds_most": round(opens[-1]),
        "in_reach_milliseconds": middle(each.reach for each in times),
        "everything_milliseconds": middle(each.everything for each in times),
        "cpu_milliseconds": middle(each.cpu for each in times),
    }


def middle(numbers: Iterable[float], digits: int | None = None) -> float:
    return round(statistics.median(numbers), digits)


def share(numbers: Sequence[float], part: float) -> float:
    """The value below which a part of the numbers lies."""
    return sorted(numbers)[min(len(numbers) - 1, int(part * len(numbers)))]


@dataclass(frozen=True)
class Page:
    """A page, how many models it shows, and how many rows its table has at first."""

    path: Path
    tasks: int
    models: int
    rows: int

    def watch(self) -> str:
        """The script that notes when the page is open."""
        charts = [f"pair{i}" for i in range(3)] if self.tasks == 3 else ["plane"]
        lines = self.models if self.tasks > 3 else 0
        return (
            _WATCH.replace("CHARTS", json.dumps(charts))
            .replace("MODELS", str(self.models))
            .replace("LINES", str(lines))
            .replace("ROWS", str(self.rows))
        )


@dataclass(frozen=True)
class Opening:
    """Milliseconds until each stage, and of CPU time."""

    first: float
    open: float
    reach: float
    everything: float
    cpu: float
    space: float


class Tab:
    """A tab of the browser's own context, in which Playwright does not enable a debugger."""

    def __init__(self, browser: Browser) -> None:
        self._session: Any = browser.new_browser_cdp_session()
        self._answers: dict[int, Any] = {}
        self.events: list[Any] = []
        self._session.on("Target.receivedMessageFromTarget", self._receive)
        self._target = self._session.send("Target.createTarget", {"url": "about:blank"})["targetId"]
        attached = self._session.send("Target.attachToTarget", {"targetId": self._target, "flatten": False})
        self._id, self._asked = attached["sessionId"], 0

    def _receive(self, event: Any) -> None:
        answer = json.loads(event["message"])
        if "id" in answer:
            self._answers[answer["id"]] = answer
        else:
            self.events.append(answer)

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


def opened(browser: Browser, page: Page, *, debugged: bool = False) -> Opening:
    tab = Tab(browser)
    if debugged:
        tab.ask("Runtime.enable")
    tab.ask("Performance.enable", timeDomain="threadTicks")
    found = navigate(tab, page)
    metrics = {each["name"]: each["value"] for each in tab.ask("Performance.getMetrics")["metrics"]}
    rest = tab.value(_REST)
    space = tab.value(_SPACE) if page.tasks == 3 else 0.0
    tab.close()
    first = found["open"] if found["first"] is None else found["first"]
    return Opening(first, found["open"], found["reach"], found["reach"] + rest, 1e3 * metrics["TaskDuration"], space)


def navigate(tab: Tab, page: Page) -> Any:
    """Open a page and wait until all charts in reach are drawn. Return what it noted."""
    tab.ask("Emulation.setDeviceMetricsOverride", width=1280, height=900, deviceScaleFactor=1, mobile=False)
    tab.ask("Page.enable")
    tab.ask("Page.addScriptToEvaluateOnNewDocument", source=page.watch())
    tab.ask("Page.navigate", url=page.path.as_uri())
    found, until = {}, time.monotonic() + 60
    while found.get("reach") is None:
        time.sleep(0.3)
        found = tab.value(_ASK)
        if time.monotonic() > until:
            raise RuntimeError(f"'{page.path}' must show {page.models} models. Got {found} after a minute instead.")
    if found["hit"] is not None or found["refused"]:
        raise RuntimeError(f"'{page.path}' must run no script of a name and ask for nothing. Got {found} instead.")
    return found


def stepped(browser: Browser, page: Page, slider: str) -> Any:
    """Milliseconds of each step of a slider through all of its stops."""
    tab = Tab(browser)
    navigate(tab, page)
    found = tab.value(_STEPS.replace("SLIDER", slider).replace("DUE", str(DUE)))
    tab.close()
    return found


def count_requests(browser: Browser, page: Page) -> int:
    """How many requests an opening sends, besides that for the file itself."""
    tab = Tab(browser)
    tab.ask("Network.enable")
    navigate(tab, page)
    tab.value(_REST)
    asked = [each["params"]["request"]["url"] for each in tab.events if each["method"] == "Network.requestWillBeSent"]
    tab.close()
    if page.path.as_uri() not in asked:
        raise RuntimeError(f"The file itself must be among the requests. Got {asked} instead.")
    return len([url for url in asked if url != page.path.as_uri() and not url.startswith(("data:", "blob:"))])


if __name__ == "__main__":
    main()
