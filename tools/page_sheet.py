"""A contact sheet of the page: pages of different size in windows of different width, light, dark and on paper.

    python tools/page_sheet.py                               # writes docs/page-sheet.png; needs Chromium and playwright
    python tools/page_sheet.py --keep FOLDER                 # and all screenshots at full size, and more pages of paper
    python tools/page_sheet.py --demo out/demo/report.html   # the page of `make demo`; left out if there is none

Screens show what is visible without scrolling. Paper is the first page of the PDF that a dark window of 1440 pixels
prints, without scrolling first; Chromium's own viewer rasterises it. All fronts but those of the demo are invented. The
sheet is a PNG with a palette, below 1.5 MB.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import itertools
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from PIL import Image, ImageDraw, ImageFont
from playwright.sync_api import Browser, Page, sync_playwright

from _helpers.browser import FLAGS, installed
from _helpers.pages import page_front
from _helpers.screen import settled
from paretomtl.report import write_page

ROOT = Path(__file__).parents[1]
WINDOWS = {1440: 900, 1024: 768, 390: 844}  # width and height
THEMES = ("light", "dark")
HEIGHT, GAP, CAPTION, LETTERS = 400, 16, 34, 15  # pixels of the sheet
GROUND, INK, FRAME = "#8b9097", "#101214", "#5c6166"
BEYOND_PAPER = 80  # the viewer's ground is darker than this, paper is not
MOST_PAGES, MOST_BYTES, COLOURS = 12, 1_500_000, 96
FEED = ("clicks", "likes", "shares", "watch time", "follows")


@dataclass(frozen=True)
class Shot:
    """A screenshot and the words under it."""

    caption: str
    name: str
    image: Image.Image


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--demo", type=Path, default=ROOT / "out" / "demo" / "report.html")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "page-sheet.png")
    parser.add_argument("--keep", type=Path, help="folder for the screenshots at full size")
    asked = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=installed(), args=list(FLAGS))
        for words, path in pages(Path(folder), asked.demo):
            print(words)
            sheets = MOST_PAGES if asked.keep else 1
            rows.append([*screens(browser, path, words), *paper(browser, path, words, Path(folder), sheets)])
        browser.close()
    if asked.keep:
        asked.keep.mkdir(parents=True, exist_ok=True)
        for shot in (shot for row in rows for shot in row):
            shot.image.save(asked.keep / f"{shot.name}.png")
    whole = sheet([[shot for shot in row if not shot.name.endswith("-more")] for row in rows])
    whole.quantize(COLOURS, dither=Image.Dither.NONE).save(asked.out, optimize=True)
    size = asked.out.stat().st_size
    print(f"Written: {asked.out}, {whole.width} x {whole.height} pixels, {size / 1e6:.2f} MB")
    if size >= MOST_BYTES:
        raise SystemExit(f"'{asked.out}' must be below {MOST_BYTES / 1e6} MB. Got {size / 1e6:.2f} MB.")


def pages(folder: Path, demo: Path) -> Iterator[tuple[str, Path]]:
    """The pages of the sheet: what they are, and their files."""
    if demo.is_file():
        yield "The demo", demo.resolve()
    else:
        print(f"No demo: '{demo}' does not exist. `make demo` makes it.")
    with contextlib.chdir(folder):  # so that commands on the page have short paths
        yield "Three tasks, 25 models", invented("three", 25, ("top-left", "bottom-right", "parity"))
        yield "Five tasks, 125 models", invented("five", 125, FEED)
        yield "Two tasks, 25 models", invented("two", 25, ("clicks", "watch time"))
        yield "Eleven runs of three methods", eleven_runs()


def invented(name: str, models: int, tasks: Sequence[str]) -> Path:
    page_front(models, tasks, problem="invented").save(f"runs/{name}")
    return write_page([f"runs/{name}"], f"{name}.html").resolve()


def eleven_runs() -> Path:
    folders = []
    for method, seeds, shift in (("pareto-mtl", 4, 0.0), ("linear", 4, 0.03), ("mgda", 3, 0.08)):
        reading = "direction" if method == "pareto-mtl" else "importance"
        for seed in range(seeds):
            worse = shift + 0.012 * seed
            front = page_front(9, FEED[:2], seed=seed, shift=worse, method=method, reading=reading, problem="invented")
            folders.append(f"runs/{method}-{seed}")
            front.save(folders[-1])
    return write_page(folders, "eleven.html").resolve()


def screens(browser: Browser, path: Path, words: str) -> Iterator[Shot]:
    """The first screen of a page in every window and theme."""
    for width, height in WINDOWS.items():
        for theme in THEMES:
            with opened(browser, path, width, height, theme) as page:
                image = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
            yield Shot(f"{words}: {width} px, {theme}", f"{path.stem}-{width}-{theme}", image)


def paper(browser: Browser, path: Path, words: str, folder: Path, sheets: int) -> Iterator[Shot]:
    """What a dark window prints; names of sheets after the first end in "more"."""
    file = folder / f"{path.stem}.pdf"
    with opened(browser, path, 1440, 900, "dark") as page:
        page.pdf(path=file, format="A4")
    for number, image in enumerate(itertools.islice(rasterised(browser, file), sheets), start=1):
        yield Shot(f"{words}: A4", f"{path.stem}-paper-{number}{'-more' if number > 1 else ''}", image)


@contextlib.contextmanager
def opened(browser: Browser, path: Path, width: int, height: int, theme: str) -> Iterator[Page]:
    """A page whose charts in reach are drawn."""
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=theme)  # type: ignore[arg-type]
    try:
        page = context.new_page()
        page.goto(path.as_uri())
        settled(page)
        yield page
    finally:
        context.close()


def rasterised(browser: Browser, file: Path) -> Iterator[Image.Image]:
    """The pages of a PDF, as Chromium's viewer shows them, until they repeat."""
    before = None
    for number in itertools.count(1):
        context = browser.new_context(viewport={"width": 820, "height": 1154})
        page = context.new_page()
        page.goto(f"{file.as_uri()}#toolbar=0&page={number}&view=Fit")
        image = whole_sheet_of_paper(page)
        context.close()
        if before is not None and image.tobytes() == before:
            return
        before = image.tobytes()
        yield image


def whole_sheet_of_paper(page: Page) -> Image.Image:
    """The viewer draws some time after it has loaded: wait for paper that stays the same."""
    before = b""
    for _ in range(40):
        page.wait_for_timeout(250)
        image = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
        bright = image.convert("L").point(lambda value: 255 if value > BEYOND_PAPER else 0).getbbox()
        now = image.tobytes()
        if bright and now == before:
            return image.crop(bright)
        before = now
    raise RuntimeError("Chromium's viewer must show the PDF. Got no still picture in ten seconds.")


def sheet(rows: Sequence[Sequence[Shot]]) -> Image.Image:
    """All shots at one height, a row per page, each with its caption."""
    font = ImageFont.load_default(LETTERS)
    thumbnails = [[(shot.caption, thumbnail(shot.image)) for shot in row] for row in rows]
    width = max(GAP + sum(image.width + GAP for _, image in row) for row in thumbnails)
    made = Image.new("RGB", (width, GAP + len(rows) * (HEIGHT + CAPTION + GAP)), GROUND)
    pen = ImageDraw.Draw(made)
    for at, row in enumerate(thumbnails):
        x, y = GAP, GAP + at * (HEIGHT + CAPTION + GAP)
        for caption, image in row:
            made.paste(image, (x, y))
            pen.rectangle((x - 1, y - 1, x + image.width, y + HEIGHT), outline=FRAME)
            pen.text((x, y + HEIGHT + 6), fitted(caption, font, image.width), fill=INK, font=font)
            x += image.width + GAP
    return made


def thumbnail(image: Image.Image) -> Image.Image:
    return image.resize((round(image.width * HEIGHT / image.height), HEIGHT), Image.Resampling.LANCZOS)


def fitted(caption: str, font: ImageFont.FreeTypeFont | ImageFont.ImageFont, width: int) -> str:
    """The caption, or its end alone if a thumbnail is too narrow for it."""
    return caption if font.getlength(caption) <= width else caption.rpartition(": ")[2]


if __name__ == "__main__":
    main()
