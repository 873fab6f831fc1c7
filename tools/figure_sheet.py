"""Contact sheets of all figures of the README and of the docs.

    python tools/figure_sheet.py --before COMMIT   # docs/figures-sheet.png: each at that commit, and now light and dark
    python tools/figure_sheet.py --vision          # docs/vision-sheet.png: some of them as other eyes see them

Figures are shown at half of the width of a web page. The sheets are PNG files with a palette.
"""

from __future__ import annotations

import argparse
import io
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from vision import KINDS, simulate

ROOT = Path(__file__).parents[1]
WIDE, GAP, LETTERS, COLOURS = 365, 14, 13, 128  # pixels of a figure, between figures, of letters; colours of a sheet
GROUND, INK = "#b9bdc2", "#101214"
PICTURE = re.compile(r'!\[[^\]]*\]\(([^)\s]+\.png)\)|\{figure\} (\S+\.png)|<img[^>]* src="([^"]+\.png)"')
SEEN = (
    "experiments/results/synthetic-convergence.png",
    "experiments/results/multi-digits/compare.png",
    "experiments/results/images-lenet-accuracy.png",
    "experiments/results/multi-digits-cost/compare-cost.png",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", help="commit whose figures are shown at the left")
    parser.add_argument("--vision", action="store_true", help="make the sheet of other eyes")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    if asked.vision:
        save(sheet(vision_rows()), asked.out or ROOT / "docs" / "vision-sheet.png")
    else:
        save(sheet(figure_rows(asked.before)), asked.out or ROOT / "docs" / "figures-sheet.png")


def shown_figures() -> list[Path]:
    """The figures of all pages, in the order in which pages show them; sheets are left out."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    found: dict[Path, None] = {}
    for page in pages:
        for groups in PICTURE.findall(page.read_text(encoding="utf-8")):
            path = (page.parent / next(filter(None, groups))).resolve()
            if not path.name.endswith(("-sheet.png", "-dark.png")):
                found[path.relative_to(ROOT)] = None
    return list(found)


def figure_rows(before: str | None) -> list[list[tuple[str, Image.Image]]]:
    """For each figure a row: before, light and dark. With a commit, figures that it lacks are left out."""
    rows = []
    for path in shown_figures():
        row = [(f"{path.name}, light", Image.open(ROOT / path)), (f"{path.name}, dark", dark_of(path))]
        old = None if before is None else at_commit(before, path)
        if before is None or old is not None:  # new figures have no before
            rows.append([*([] if old is None else [(f"{path.name}, before", old)]), *row])
    return rows


def dark_of(path: Path) -> Image.Image:
    dark = (ROOT / path).with_name(f"{path.stem}-dark.png")
    return Image.open(dark if dark.exists() else ROOT / path)


def at_commit(commit: str, path: Path) -> Image.Image | None:
    """A figure at a commit; None if it was not there."""
    found = subprocess.run(["git", "-C", str(ROOT), "show", f"{commit}:{path}"], capture_output=True, check=False)
    return Image.open(io.BytesIO(found.stdout)) if found.returncode == 0 else None


def vision_rows() -> list[list[tuple[str, Image.Image]]]:
    """For each of some figures a row: as it is, for three kinds of colour blindness, and in grey."""
    rows = []
    for name in SEEN:
        image = fitted(Image.open(ROOT / name))
        pixels = np.asarray(image, dtype=np.float64) / 255
        kinds = [(kind, simulate(kind, pixels)) for kind in (*KINDS, "grey")]
        seen = [(kind, Image.fromarray((255 * some).round().astype(np.uint8))) for kind, some in kinds]
        rows.append([(f"{Path(name).stem}, all colours", image), *seen])
    return rows


def fitted(image: Image.Image) -> Image.Image:
    image = image.convert("RGB")
    return image.resize((WIDE, round(image.height * WIDE / image.width)), Image.Resampling.LANCZOS)


def sheet(rows: Sequence[Sequence[tuple[str, Image.Image]]]) -> Image.Image:
    """Put rows of figures below each other, each figure under its name."""
    font = ImageFont.load_default(LETTERS)
    small = [[(name, fitted(image)) for name, image in row] for row in rows]
    heights = [max(image.height for _, image in row) + LETTERS + 2 * GAP for row in small]
    width = GAP + max(len(row) for row in small) * (WIDE + GAP)
    made = Image.new("RGB", (width, sum(heights) + GAP), GROUND)
    draw, top = ImageDraw.Draw(made), GAP // 2
    for row, height in zip(small, heights, strict=True):
        for place, (name, image) in enumerate(row):
            left = GAP + place * (WIDE + GAP)
            draw.text((left, top), name, fill=INK, font=font)
            made.paste(image, (left, top + LETTERS + GAP // 2))
        top += height
    return made


def save(made: Image.Image, path: Path) -> None:
    made.quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)
    print(f"{path}: {path.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
