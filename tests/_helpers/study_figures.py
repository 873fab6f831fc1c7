"""Checks of the figures of any study."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from paretomtl.compare import Row
from paretomtl.paper import STUDIES
from paretomtl.paper.panels import draw_figures


def draw_study(name: str, rows: Sequence[Row], folder: Path) -> list[Path]:
    pytest.importorskip("matplotlib.pyplot", reason="matplotlib is not installed: pip install 'paretomtl[figures]'")
    return draw_figures(rows, folder, STUDIES[name].figures)


def check_drawn_reproducibly(name: str, rows: Sequence[Row], folder: Path) -> None:
    """All figures are drawn from rows alone, for light and dark pages, with the same bytes each time."""
    first, second = (draw_study(name, rows, folder / which) for which in ("one", "two"))
    stems = list(STUDIES[name].figures)
    assert [path.name for path in first] == [f"{stem}{end}" for stem in stems for end in (".png", "-dark.png", ".svg")]
    for one, two in zip(first, second, strict=True):
        assert one.stat().st_size > 5000
        assert one.read_bytes() == two.read_bytes()


def check_nothing_drawn_of_nothing(name: str, folder: Path) -> None:
    assert draw_study(name, [], folder / "new") == []
    assert not (folder / "new").exists()


def check_parts_drawn(name: str, rows: Sequence[Row], unsaved: dict[str, Any], folder: Path, *, step: int) -> None:
    """The rows of any one cell, of all but one, of one seed, of one stage; rows in another order."""
    cells = list(dict.fromkeys(_cell(row) for row in rows))
    parts = [[row for row in rows if _cell(row) == each] for each in cells[::step]]
    parts += [[row for row in rows if _cell(row) != each] for each in cells[:2]]
    parts += [[row for row in rows if row["seed"] == seed] for seed in (0, 1)]
    parts += [[row for row in rows if row["stage"] == "snapshot"]]
    parts += [random.Random(0).sample(rows, len(rows))]
    for part in parts:
        unsaved.clear()
        drawn = draw_study(name, part, folder)
        assert bool(drawn) == bool(part)
        for figure in unsaved.values():
            assert all(axis.has_data() for axis in figure.axes), "no panel without rows"


def _cell(row: Row) -> tuple[Any, ...]:
    return tuple(row.get(field) for field in ("cell", "problem", "part", "method", "note"))


def check_not_finite_left_out(
    name: str,
    rows: Sequence[Row],
    unsaved: dict[str, Any],
    folder: Path,
    broken: Callable[[Row, Callable[..., bool]], Row],
) -> None:
    """Solutions that are not finite, some and all of them, and rows without indicators."""
    assert draw_study(name, [broken(row, lambda k, seed=row["seed"]: k == seed) for row in rows], folder)
    assert f"{name}-hypervolume" not in unsaved, "None without moocore"
    for figure in unsaved.values():
        figure.canvas.draw()
    draw_study(name, [broken(row, lambda k: True) for row in rows], folder)
    for figure in unsaved.values():
        figure.canvas.draw()
