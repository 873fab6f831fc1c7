"""Pictures of the explorer page for docs/guides/explorer.md: a desktop, light and dark, and a phone.

    paretomtl run multi-digits
    paretomtl run multi-digits --method pareto-mtl
    paretomtl report runs/multi-digits-* --out report.html
    python tools/explorer_shots.py report.html               # writes docs/guides/explorer*.png

Needs Chromium and playwright. Each picture is a PNG with a palette, below 150 kB.
"""

from __future__ import annotations

import argparse
import io
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from PIL import Image
from playwright.sync_api import sync_playwright

from _helpers.browser import FLAGS, installed
from page_sheet import opened

ROOT = Path(__file__).parents[1]
SHOTS = {  # width and height of the window, theme
    "explorer": (1280, 900, "light"),
    "explorer-dark": (1280, 900, "dark"),
    "explorer-phone": (390, 844, "light"),
}
COLOURS, MOST_BYTES = 256, 150_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("page", type=Path, help="HTML file that paretomtl report has written")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "guides", help="folder of the pictures")
    asked = parser.parse_args()
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=installed(), args=list(FLAGS))
        for name, (width, height, theme) in SHOTS.items():
            with opened(browser, asked.page.resolve(), width, height, theme) as page:
                image = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
            path = asked.out / f"{name}.png"
            small = image.quantize(COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)  # keeps rare colours
            small.save(path, optimize=True)
            size = path.stat().st_size
            print(f"Written: {path}, {image.width} x {image.height} pixels, {size / 1e3:.0f} kB")
            if size >= MOST_BYTES:
                sys.exit(f"'{path}' must be below {MOST_BYTES / 1e3:.0f} kB. Got {size / 1e3:.0f} kB.")
        browser.close()


if __name__ == "__main__":
    main()
