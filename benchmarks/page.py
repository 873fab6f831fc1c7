"""How large the page is, and how long it takes to open: 5 runs of 25 solutions, 500 epochs each.

    python benchmarks/page.py                 # writes benchmarks/results/page.json; needs Chromium and playwright
    python benchmarks/page.py --out FOLDER

Chromium, without a window and without a GPU, opens the file from disk in a new context each time, so that nothing is
cached but the file itself. The time goes from the start of the navigation to the frame after all charts and tables are
drawn; the first words are painted before that. Beside it stands the time that the page's main thread had a processor,
which other work on the machine does not lengthen. Two times come first that are not counted.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from playwright.sync_api import Browser, sync_playwright

from browser import FLAGS, installed
from pages import page_front
from paretomtl._extras import version_of
from paretomtl.experiments import Row, environment, save_rows
from paretomtl.report import write_page

RUNS, SOLUTIONS, EPOCHS, TIMES, WARM_UP = 5, 25, 500, 10, 2
_DRAWN = """() => new Promise((done) => requestAnimationFrame(() => setTimeout(() => done([
    performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? null, performance.now(),
    document.querySelectorAll("#plane .scatterlayer .points path").length]))))"""


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
    times = [opened(browser, path, RUNS * SOLUTIONS + 1) for _ in range(WARM_UP + TIMES)][WARM_UP:]
    drawn = sorted(time.drawn for time in times)
    return {
        "what": "open the page",
        "tasks": tasks,
        "runs": RUNS,
        "solutions": SOLUTIONS,
        "epochs": EPOCHS,
        "bytes": path.stat().st_size,
        "times": TIMES,
        "milliseconds": round(statistics.median(drawn)),
        "milliseconds_least": round(drawn[0]),
        "milliseconds_most": round(drawn[-1]),
        "first_words_milliseconds": round(statistics.median(time.first for time in times)),
        "cpu_milliseconds": round(statistics.median(time.cpu for time in times)),
        "load": round(os.getloadavg()[0], 1),
    }


@dataclass(frozen=True)
class Opening:
    """Milliseconds until the first words, until everything, and on the processor."""

    first: float
    drawn: float
    cpu: float


def opened(browser: Browser, path: Path, expected: int) -> Opening:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page: Any = context.new_page()
    session = context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    page.goto(path.as_uri())
    first, drawn, points = page.evaluate(_DRAWN)
    metrics = {each["name"]: each["value"] for each in session.send("Performance.getMetrics")["metrics"]}
    context.close()
    if points != expected:
        raise RuntimeError(f"'{path}' must show {expected} marks. Got {points} instead.")
    return Opening(drawn if first is None else first, drawn, 1e3 * metrics["TaskDuration"])


if __name__ == "__main__":
    main()
