from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from paretomtl.problems import Canvases
from paretomtl.problems._multi_mnist.canvases import MIXES
from paretomtl.report import draw_sheet

pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install 'paretomtl[figures]'")


@pytest.mark.study
@pytest.mark.parametrize("name", MIXES)
@pytest.mark.parametrize("count", [12, 240])
def test_a_sheet_is_drawn_of_every_set(tmp_path: Path, name: str, count: int) -> None:
    random = np.random.default_rng(0)
    images = random.integers(0, 256, (count, 36, 36)).astype(np.uint8)
    labels = random.integers(0, 10, (count, len(MIXES[name]))).astype(np.uint8)
    canvases = Canvases(name, 3, images, labels, images, labels)
    draw_sheet(canvases, tmp_path / "new" / "sheet.png")
    first = (tmp_path / "new" / "sheet.png").read_bytes()
    assert first.startswith(b"\x89PNG")
    assert len(first) > 20_000
    draw_sheet(canvases, tmp_path / "again.png")
    assert (tmp_path / "again.png").read_bytes() == first, "the same canvases, the same bytes"


@pytest.mark.parametrize(
    ("name", "classes", "expected"),
    [
        ("multi-fashion-mnist", [3, 9], "3 · boot"),
        ("multi-mnist-3", [3, 9, 0], "3 · 9 · 0"),
        ("multi-fashion-3", [1, 2, 0], "trousers · pullover\n· T-shirt"),
    ],
)
def test_the_sheet_shows_canvases_of_the_whole_set_with_their_labels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, classes: list[int], expected: str
) -> None:
    from matplotlib.axes import Axes

    shown: list[int] = []
    words: list[str] = []
    monkeypatch.setattr(Axes, "imshow", lambda axis, image, **options: shown.append(int(image[0, 0])))
    monkeypatch.setattr(Axes, "set_xlabel", lambda axis, text, **options: words.append(text))
    images = np.broadcast_to(np.arange(240, dtype=np.uint8)[:, None, None], (240, 36, 36))
    labels = np.tile(np.array([classes], dtype=np.uint8), (240, 1))
    draw_sheet(Canvases(name, 0, images, labels, images, labels), tmp_path / "sheet.png")
    assert len(shown) == len(set(shown)) == 24
    assert (shown[0], shown[-1]) == (0, 239)
    assert words == [expected] * 24
