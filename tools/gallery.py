"""The gallery of examples: its pictures, and what each example prints.

    python tools/gallery.py             # runs every example: a minute on two cores
    python tools/gallery.py fairness    # one of them

Each example has a function `main`, which prints its result and returns a front. This front is drawn for light and dark
pages, docs/guides/gallery-NAME.png and gallery-NAME-dark.png. What was printed replaces the output on
docs/guides/gallery.md; longer lines than fit there are wrapped.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import re
import runpy
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

from PIL import Image

if TYPE_CHECKING:
    from paretomtl import Front

ROOT = Path(__file__).parents[1]
EXAMPLES, GUIDES = ROOT / "examples", ROOT / "docs" / "guides"
WIDE, COLOURS = 88, 64  # letters in a line of the page; colours of a picture


def main() -> None:
    names = sorted(path.stem for path in EXAMPLES.glob("*.py"))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=names, metavar="NAME", help=f"of {', '.join(names)}")
    page = GUIDES / "gallery.md"
    for name in parser.parse_args().names:
        front, printed = run(name)
        if not front.complete:  # Ctrl-C ends an example with a front, but not this script
            raise SystemExit(f"{name}.py was interrupted.")
        draw(front, GUIDES / f"gallery-{name}.png")
        text = page.read_text(encoding="utf-8")
        page.write_text(with_output(text, name, printed), encoding="utf-8")
        print(printed)


def run(name: str) -> tuple[Front, str]:
    """The front of an example, and what it printed."""
    space = runpy.run_path(str(EXAMPLES / f"{name}.py"))
    with contextlib.redirect_stdout(io.StringIO()) as stdout:
        front = space["main"]()
    return front, stdout.getvalue()


def draw(front: Front, path: Path) -> None:
    """Draw a front on the split that models are chosen on, for light and for dark pages, with a palette."""
    for dark in (False, True):
        picture = path.with_name(f"{path.stem}-dark.png") if dark else path
        front.plot(picture, split=front.ranking_split, dark=dark)
        with Image.open(picture) as image:
            small = image.convert("RGB").quantize(COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
            dots = image.info["dpi"]
        small.save(picture, optimize=True, dpi=dots)


def with_output(page: str, name: str, printed: str) -> str:
    """The page with what an example printed: the first block of text after its code."""
    block = re.compile(rf"(\{{literalinclude\}} \S*/{name}\.py\n.*?```text\n).*?(?=```)", re.DOTALL)
    if not block.search(page):
        raise SystemExit(f"gallery.md has no section with the code of {name}.py, or no block of text after it.")
    return block.sub(lambda found: found.group(1) + wrapped(printed), page, count=1)


def wrapped(printed: str) -> str:
    """Printed lines, none of them wider than the page."""
    lines = []
    for line in printed.rstrip().splitlines():
        margin = re.match(" *", line).group()  # type: ignore[union-attr]
        fits = len(line) <= WIDE
        lines += [line] if fits else textwrap.wrap(line.strip(), WIDE, initial_indent=margin, subsequent_indent="    ")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
