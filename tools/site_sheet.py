"""A contact sheet of the documentation: ten pages on a desktop and on a phone, light and dark.

make docs && python tools/site_sheet.py     # writes docs/site-sheet.png; needs Chromium and playwright
"""

from __future__ import annotations

import io
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

from figure_sheet import ROOT, save, sheet

sys.path.insert(0, str(ROOT / "tests"))

from _helpers.browser import FLAGS, installed

SITE = ROOT / "out" / "docs"
PAGES = (
    "index",
    "start/first-front",
    "start/do-i-need-it",
    "guides/your-model",
    "guides/choosing",
    "guides/explorer",
    "guides/gallery",
    "concepts/front",
    "evidence/index",
    "reference/commands",
)
WINDOWS = {"desktop": (1250, 1000), "phone": (390, 700)}
THEMES = ("light", "dark")


def main() -> None:
    rows = []
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=installed(), args=FLAGS)
        for page in PAGES:
            row = []
            for window, (width, height) in WINDOWS.items():
                for theme in THEMES:
                    context = browser.new_context(
                        viewport={"width": width, "height": height},
                        color_scheme=theme,  # type: ignore[arg-type]
                    )
                    tab = context.new_page()
                    tab.goto(f"file://{SITE / page}.html")
                    shot = Image.open(io.BytesIO(tab.screenshot()))
                    row.append((f"{page}, {window}, {theme}", shot))
                    context.close()
            rows.append(row)
        browser.close()
    save(sheet(rows), Path(ROOT / "docs" / "site-sheet.png"))


if __name__ == "__main__":
    main()
