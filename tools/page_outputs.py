"""What the Python code of the documentation prints, below each block of it.

    python tools/page_outputs.py                        # every page: minutes on two cores
    python tools/page_outputs.py docs/guides/units.md   # one page

A block of text right after a block of Python is what that code prints. It is renewed where its words have changed. A
line of three dots stands for lines that are left out, and stays. Output of commands is not renewed.
"""

from __future__ import annotations

import contextlib
import difflib
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from _helpers.doc_pages import PAGES, WIDE, fit_lines, is_shown, run_blocks
from _helpers.places import ROOT


def main() -> None:
    for path in [Path(word).resolve() for word in sys.argv[1:]] or PAGES:
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            blocks = list(run_blocks(path))
        for block in reversed(blocks):
            if block.shown is not None and block.place is not None and not is_shown(block.printed, block.shown):
                lines[slice(*block.place)] = fit_lines(block.printed, block.shown, WIDE).splitlines(keepends=True)
        old, new = path.read_text(encoding="utf-8"), "".join(lines)
        if old != new:
            name = str(path.relative_to(ROOT))
            sys.stdout.writelines(difflib.unified_diff(old.splitlines(True), new.splitlines(True), name, name, n=0))
            path.write_text(new, encoding="utf-8")


if __name__ == "__main__":
    main()
