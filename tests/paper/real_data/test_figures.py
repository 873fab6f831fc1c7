"""Figures of all studies on real data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from _helpers.study_figures import (
    check_drawn_reproducibly,
    check_not_finite_left_out,
    check_nothing_drawn_of_nothing,
    check_parts_drawn,
)
from _helpers.study_rows import fill_cells, without_solutions
from paretomtl.compare import Row
from paretomtl.paper import STUDIES
from paretomtl.paper.real_data.cells import EXPERTS
from paretomtl.paper.runner import run_study

pyplot = pytest.importorskip(
    "matplotlib.pyplot", reason="matplotlib is not installed: pip install 'paretomtl[figures]'"
)
TRAINED = {
    "census": "shared trunk / uncertainty",
    "three-digits": "mgda",
    "faces": "scaled by gradnorm",
    "localization": "/ uncertainty",
}
"""Cells that are trained quickly; the rows of the others have the same fields."""
_SCALED = ("scaled by running", "scaled by gradnorm", "scaled by uncertainty", "scaled by points")
NAMES = tuple(TRAINED)


@pytest.fixture(scope="module")
def smoke(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Row]]:
    """Of each study: those of a cell, and with made-up numbers those of all cells."""
    folder = tmp_path_factory.mktemp("rows")
    trained = {
        name: run_study(name, STUDIES[name], folder, size="smoke", only=only).rows for name, only in TRAINED.items()
    }
    return {name: fill_cells(name, mine) for name, mine in trained.items()}


@pytest.mark.parametrize("name", NAMES)
def test_figures_are_drawn_from_rows_alone_and_reproducibly(
    smoke: dict[str, list[Row]], tmp_path: Path, name: str
) -> None:
    shown = [row for row in smoke[name] if row["part"] != EXPERTS and row["note"] not in _SCALED]
    check_drawn_reproducibly(name, shown, tmp_path)


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_drawn_of_nothing(tmp_path: Path, name: str) -> None:
    check_nothing_drawn_of_nothing(name, tmp_path)


@pytest.mark.parametrize("name", NAMES)
def test_what_there_is_is_drawn(
    smoke: dict[str, list[Row]], unsaved: dict[str, Any], tmp_path: Path, name: str
) -> None:
    check_parts_drawn(name, smoke[name], unsaved, tmp_path, step=2)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_not_finite_is_left_out(
    smoke: dict[str, list[Row]], unsaved: dict[str, Any], tmp_path: Path, name: str
) -> None:
    check_not_finite_left_out(name, smoke[name], unsaved, tmp_path, without_solutions)
