from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

page_sheet: Any = pytest.importorskip("page_sheet", reason="Playwright or Pillow is not installed")


def test_the_sheet_has_every_shot_whole_at_one_height() -> None:
    def shot(width: int, height: int, colour: str) -> Any:
        return page_sheet.Shot(f"A page: {colour}", colour, page_sheet.Image.new("RGB", (width, height), colour))

    made = page_sheet.sheet([[shot(1440, 900, "#ff0000"), shot(390, 844, "#00ff00")], [shot(794, 1123, "#0000ff")]])
    counts = {colour: count for count, colour in made.getcolors(made.width * made.height)}
    high = page_sheet.HEIGHT
    for colour, shape in (((255, 0, 0), 1440 / 900), ((0, 255, 0), 390 / 844), ((0, 0, 255), 794 / 1123)):
        assert counts[colour] == round(high * shape) * high


def test_a_narrow_shot_keeps_the_end_of_its_caption() -> None:
    font = page_sheet.ImageFont.load_default(page_sheet.LETTERS)
    assert page_sheet.fitted("Two tasks: 390 px, dark", font, 1000) == "Two tasks: 390 px, dark"
    assert page_sheet.fitted("Two tasks: 390 px, dark", font, 120) == "390 px, dark"


def test_without_a_demo_it_says_how_to_make_one_and_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = page_sheet.pages(tmp_path, tmp_path / "demo.html")
    words, path = next(found)
    found.close()
    assert "`make demo`" in capsys.readouterr().out
    assert words.startswith("Three tasks")
    assert path.is_file()
